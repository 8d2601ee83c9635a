"""A lookup as a table: a row a key, and for each way to compare one column with its score and its weight as a bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.look.text_size import smaller
from attention_explorer.widgets.items_widget import ItemsWidget

_GAP = 10.0
_WIDEST_NAME = 0.34  # of the width, where names would leave no room for the bars
_BAR = 7.0  # height of a bar


@dataclass(frozen=True)
class WeightCell:
    """One key under one comparison. `weight` is between 0 and 1; `score` may be empty."""

    weight: float
    weight_text: str
    score: str = ""


@dataclass(frozen=True)
class WeightRow:
    """One key. `colour` ("#rrggbb") is that of its value; `value` is written beside the name."""

    name: str
    cells: tuple[WeightCell, ...]
    value: str = ""
    colour: str = ""
    tooltip: str = ""


class WeightTable(ItemsWidget):
    """A click or the arrow keys choose a row, a click on a column (or Left and Right) the column in use.

    With `headings` of one entry there is one column, always in use.
    """

    row_selected = Signal(int)
    column_selected = Signal(int)

    def __init__(self, headings: Sequence[str], names: str, values: str = "", parent: QWidget | None = None) -> None:
        """`names` and `values` stand above the keys and above their values."""
        super().__init__("Weights", parent)
        self._headings = tuple(headings)
        self._names, self._values = names, values
        self._rows: tuple[WeightRow, ...] = ()
        self._column = 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    @property
    def row(self) -> int:
        return self._current

    @property
    def column(self) -> int:
        return self._column

    def _score_width(self, metrics: QFontMetricsF) -> float:
        """Room for every score, so that the bars begin below one another."""
        scores = (cell.score for row in self._rows for cell in row.cells)
        return max(metrics.horizontalAdvance(score) for score in ("−00.00", *scores))

    def set_rows(self, rows: Sequence[WeightRow]) -> None:
        """Show `rows`, each with as many cells as there are headings."""
        fresh, count = tuple(rows), len(self._rows)
        if fresh == self._rows:
            return
        self._rows = fresh
        self._current = min(self._current, len(fresh) - 1)
        self._keep_items()
        column = self._column
        heard = (f"{r.name} {r.cells[column].score} {r.cells[column].weight_text}".replace("  ", " ") for r in fresh)
        self.setAccessibleDescription(", ".join(heard))
        if len(fresh) != count:
            self.updateGeometry()
        self.update()

    def set_headings(self, headings: Sequence[str]) -> None:
        """Rename the columns."""
        self._headings = tuple(headings)
        self.update()

    def set_row(self, row: int) -> None:
        """Mark a row, -1 for none. Says nothing to anyone."""
        if row != self._current:
            self._current = row
            self.update()

    def set_column(self, column: int) -> None:
        """Mark the column in use. Says nothing to anyone."""
        if column != self._column:
            self._column = column
            self.update()

    def cell_rect(self, row: int, column: int = 0) -> QRectF:
        """Where a cell lies; row -1 is the heading."""
        left, width = self._columns()
        height = self._head_height() if row < 0 else self._row_height()
        return QRectF(left + column * width, self._top(row), width, height)

    # geometry

    def _row_height(self) -> float:
        line = QFontMetricsF(self.font()).height()
        return {"line": line + 10, "above": line + 12, "stack": 2 * line + 12}[self._layout()]

    def _head_height(self) -> float:
        return QFontMetricsF(self.font()).height() + 10

    def _top(self, row: int) -> float:
        return 0.0 if row < 0 else self._head_height() + row * self._row_height()

    def _layout(self) -> str:
        """How a cell is laid out: numbers and bar in one "line", numbers "above" the bar, or one on the other."""
        metrics, room = QFontMetricsF(self.font()), self._columns()[1] - _GAP
        score = max((metrics.horizontalAdvance(c.score) for r in self._rows for c in r.cells), default=0.0)
        need = score + metrics.horizontalAdvance("100 %") + 6
        if len(self._headings) == 1 and room >= need + _GAP + 60:
            return "line"
        return "above" if room >= need else "stack"

    def _name_widths(self) -> tuple[float, float]:
        """Of the names and of the values, gaps included."""
        metrics = QFontMetricsF(self.bold_font())
        names = max((metrics.horizontalAdvance(r.name) for r in self._rows), default=0.0)
        swatch = self._swatch() if any(row.colour for row in self._rows) else 0.0
        names = min(max(names, metrics.horizontalAdvance(self._names)) + swatch + 1, self.width() * _WIDEST_NAME)
        values = max((metrics.horizontalAdvance(r.value) for r in self._rows), default=0.0)
        if values or self._values:
            values = max(values, metrics.horizontalAdvance(self._values)) + _GAP
        return names + _GAP, values

    def _swatch(self) -> float:
        return QFontMetricsF(self.font()).ascent() + 6

    def _columns(self) -> tuple[float, float]:
        """The left end of the first column, and the width of each."""
        left = sum(self._name_widths()) + _GAP
        return left, (self.width() - left) / len(self._headings)

    def sizeHint(self) -> QSize:
        return QSize(360, round(self._top(len(self._rows))) + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(240, self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.updateGeometry()  # rows are taller in a narrow table

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self._rows:
            self._draw_empty_text(painter)
            return
        self._draw_headings(painter)
        height = self._row_height()
        first = max(0, int((event.rect().top() - self._head_height()) / height))
        last = int((event.rect().bottom() - self._head_height()) / height) + 1
        for index in range(first, min(len(self._rows), last)):
            self._draw_row(painter, index)
        self._draw_focus_ring(painter)

    def _draw_headings(self, painter: QPainter) -> None:
        theme, height = self._theme, self._head_height()
        names, values = self._name_widths()
        middle, right = Qt.AlignmentFlag.AlignVCenter, Qt.AlignmentFlag.AlignRight
        painter.setFont(self.font())
        painter.setPen(QColor(theme.text_dim))
        painter.drawText(QRectF(_GAP / 2, 0, names, height), middle, self._names)
        painter.drawText(QRectF(names, 0, values, height), middle | right, self._values)
        for column, heading in enumerate(self._headings):
            rect = self.cell_rect(-1, column).adjusted(_GAP / 2, 0, -_GAP / 2, 0)
            used = column == self._column and len(self._headings) > 1
            painter.setFont(self.bold_font() if used else self.font())
            painter.setPen(QColor(theme.text if used else theme.text_dim))
            self._draw_fitting(painter, rect, heading)
            if used:
                painter.fillRect(QRectF(rect.left(), rect.bottom() - 3, rect.width(), 3), QColor(theme.focus))

    def _draw_fitting(self, painter: QPainter, rect: QRectF, text: str) -> None:
        """At the left of `rect`; a little smaller, then cut, where it is too long."""
        if QFontMetricsF(painter.font()).horizontalAdvance(text) > rect.width():
            painter.setFont(smaller(painter.font(), 0.85))
        shown = QFontMetricsF(painter.font()).elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
        painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter, shown)

    def _draw_row(self, painter: QPainter, index: int) -> None:
        theme, row, height = self._theme, self._rows[index], self._row_height()
        chosen = index == self._current
        rect = QRectF(0, self._top(index), self.width(), height)
        if chosen or index == self._hover:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.surface_hover if chosen else theme.surface_alt))
            painter.drawRoundedRect(rect.adjusted(0, 1, 0, -1), 5, 5)
        left = _GAP / 2
        if row.colour:
            size = self._swatch() - 8
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(row.colour))
            painter.drawEllipse(QRectF(left, rect.center().y() - size / 2, size, size))
            left += self._swatch()
        names, values = self._name_widths()
        painter.setFont(self.bold_font() if chosen else self.font())
        metrics = QFontMetricsF(painter.font())
        middle, right = Qt.AlignmentFlag.AlignVCenter, Qt.AlignmentFlag.AlignRight
        painter.setPen(QColor(theme.key if chosen else theme.text))
        name = QRectF(left, rect.top(), names - left, height)
        painter.drawText(name, middle, metrics.elidedText(row.name, Qt.TextElideMode.ElideRight, name.width()))
        painter.setFont(self.font())
        painter.setPen(QColor(theme.text))
        painter.drawText(QRectF(names, rect.top(), values, height), middle | right, row.value)
        for column, cell in enumerate(row.cells):
            self._draw_cell(painter, cell, self.cell_rect(index, column), column == self._column)

    def _draw_cell(self, painter: QPainter, cell: WeightCell, rect: QRectF, used: bool) -> None:
        theme, rect = self._theme, rect.adjusted(_GAP / 2, 0, -_GAP / 2, 0)
        metrics = QFontMetricsF(self.font())
        middle, right = Qt.AlignmentFlag.AlignVCenter, Qt.AlignmentFlag.AlignRight
        painter.setPen(QColor(theme.text if used else theme.text_dim))
        layout = self._layout()
        if layout == "line":
            score = self._score_width(metrics) + _GAP if cell.score else 0.0
            text = metrics.horizontalAdvance("100.0 %")
            painter.drawText(QRectF(rect.left(), rect.top(), score - _GAP, rect.height()), middle | right, cell.score)
            painter.drawText(rect, middle | right, cell.weight_text)
            track = QRectF(rect.left() + score, rect.center().y() - 6, rect.width() - score - text - _GAP, 12)
        else:
            numbers = rect.adjusted(0, 1, 0, -_BAR)
            stacked = layout == "stack"
            painter.drawText(numbers, Qt.AlignmentFlag.AlignTop if stacked else middle, cell.score)
            painter.drawText(numbers, Qt.AlignmentFlag.AlignBottom if stacked else middle | right, cell.weight_text)
            track = QRectF(rect.left(), rect.bottom() - _BAR, rect.width(), _BAR - 3)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.border))
        painter.drawRoundedRect(track, 2, 2)
        track.setWidth(track.width() * min(1.0, max(0.0, cell.weight)))
        if track.width() >= 1:
            painter.setBrush(QColor(theme.bar if used else theme.border_strong))
            painter.drawRoundedRect(track, 2, 2)

    # pointer and keyboard

    def item_count(self) -> int:
        return len(self._rows)

    def item_rect(self, item: int) -> QRectF:
        return QRectF(0, self._top(item), self.width(), self._row_height())

    def tooltip_of(self, item: int) -> str:
        return self._rows[item].tooltip

    def mousePressEvent(self, event: QMouseEvent) -> None:
        left, width = self._columns()
        is_left = event.button() == Qt.MouseButton.LeftButton
        if is_left and self._rows and len(self._headings) > 1 and event.position().x() >= left:
            self._choose_column(int((event.position().x() - left) // width))
        super().mousePressEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if len(self._headings) > 1 and step is not None:
            self._choose_column(self._column + step)
        else:
            super().keyPressEvent(event)

    def _choose(self, item: int) -> None:
        if item != self._current:
            self.set_row(item)
            self.row_selected.emit(item)

    def _choose_column(self, column: int) -> None:
        if column != self._column and 0 <= column < len(self._headings):
            self.set_column(column)
            self.column_selected.emit(column)
