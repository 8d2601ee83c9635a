"""The names of tokens beside the matrices, or upon them where their place is scrolled out of sight."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter

from attention_explorer.panels.flow.matrices_look import Look
from attention_explorer.panels.flow.matrices_scene import SIDES, Name

_ANGLE = -45.0
_CENTRE = Qt.AlignmentFlag.AlignCenter


@dataclass(frozen=True)
class MatricesLabels(Look):
    """Those of `cell`, a query and a key, are bold and in the accents."""

    seen: QRectF  # what of the widget is in sight
    cell: tuple[int, int]

    def draw(self, painter: QPainter, name: Name) -> None:
        """Token names beside a matrix, or, where these are scrolled out of sight, at the edge of what shows of it."""
        rows, columns = SIDES[name]
        rect, seen = self.layout.rects[name], self.seen
        shown = rect.intersected(seen)
        if rows != "dim":
            beside = self.layout.begins_band(name) or name == "v"
            inside = shown.left() > rect.left() and not shown.isEmpty()
            if beside or inside:
                self._draw_row_labels(painter, name, shown.left() if inside else None)
        if columns == "key":
            above, inside = self.layout.is_topmost(name), shown.top() > rect.top() and not shown.isEmpty()
            if inside:
                self._draw_column_labels_inside(painter, shown)
            elif above:
                self._draw_column_labels(painter, name)

    def _draw_row_labels(self, painter: QPainter, name: Name, inside: float | None) -> None:
        """`inside` is where what shows of the matrix begins, where its names have to stand upon it."""
        side = SIDES[name][0]
        labels, chosen = (self.scene.queries, self.cell[0]) if side == "query" else (self.scene.keys, self.cell[1])
        rect, width, line = self.layout.rects[name], self.layout.room.row_label - 8, self.line
        for row in _thinned(len(labels), self.layout.token, line * 0.95, chosen):
            middle = rect.top() + (row + 0.5) * self.layout.token
            place = QRectF(rect.left() - width - 6, middle - line / 2, width, line)
            if inside is not None:
                place = self._draw_plate(painter, QPointF(inside + 2, middle), labels[row], width)
            self._take_pen(painter, row == chosen, side == "query")
            text = painter.fontMetrics().elidedText(labels[row], Qt.TextElideMode.ElideMiddle, ceil(width) + 1)
            painter.drawText(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)

    def _draw_plate(self, painter: QPainter, left: QPointF, label: str, most: float) -> QRectF:
        """What a name stands on that lies upon cells; where it is to be written."""
        width = min(most, QFontMetricsF(self.bold).horizontalAdvance(label))
        plate = QRectF(left.x(), left.y() - self.line / 2, width + 8, self.line)
        painter.fillRect(plate, QColor(self.theme.surface))
        return plate.adjusted(4, 0, -4, 0)

    def _draw_column_labels_inside(self, painter: QPainter, shown: QRectF) -> None:
        chosen, line, size = self.cell[1], self.line, self.layout.token
        rect = next(r for n, r in self.layout.rects.items() if SIDES[n][1] == "key" and r.contains(shown.center()))
        if size < self.layout.room.number:
            return  # names do not fit side by side
        for column, label in enumerate(self.scene.keys):
            x = rect.left() + column * size
            if x >= shown.left() - size and x < shown.right():
                painter.fillRect(QRectF(x + 1, shown.top() + 1, size - 2, line), QColor(self.theme.surface))
                self._take_pen(painter, column == chosen, is_query=False)
                text = painter.fontMetrics().elidedText(label, Qt.TextElideMode.ElideMiddle, round(size - 4))
                painter.drawText(QRectF(x, shown.top() + 1, size, line), _CENTRE, text)

    def _draw_column_labels(self, painter: QPainter, name: Name) -> None:
        rect, line, chosen = self.layout.rects[name], self.line, self.cell[1]
        width = self.layout.room.row_label - 8
        for column in _thinned(len(self.scene.keys), self.layout.token, line, chosen):
            painter.save()
            self._take_pen(painter, column == chosen, is_query=False)
            text = painter.fontMetrics().elidedText(
                self.scene.keys[column], Qt.TextElideMode.ElideMiddle, ceil(width) + 1
            )
            painter.translate(
                rect.left() + (column + 0.5) * self.layout.token + line * 0.2, rect.top() - line * 0.2 - 3
            )
            painter.rotate(_ANGLE)
            painter.drawText(QRectF(0, -line / 2, width + 4, line), Qt.AlignmentFlag.AlignVCenter, text)
            painter.restore()

    def _take_pen(self, painter: QPainter, accented: bool, is_query: bool) -> None:
        painter.setFont(self.bold if accented else self.font)
        accent = self.theme.query if is_query else self.theme.key
        painter.setPen(QColor(accent if accented else self.theme.text))


def _thinned(count: int, size: float, spacing: float, chosen: int) -> list[int]:
    """Which of `count` labels there is room for, the chosen one in any case."""
    step = 1
    while step * size < spacing:
        step += 1
    kept = [i for i in range(0, count, step) if i == chosen or abs(i - chosen) * size >= spacing or chosen < 0]
    return kept if not 0 <= chosen < count or chosen in kept else [*kept, chosen]
