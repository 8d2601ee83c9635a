"""Draws the matrices: cells with their numbers, captions, what happens between them, and what a number was made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QPainter, QPen

from attention_explorer.colour_maps import ColourTable, diverging
from attention_explorer.panels.flow.matrices_look import Look
from attention_explorer.panels.flow.matrices_scene import SIDES, TITLES, Matrix, Name, Place, cell_text
from attention_explorer.text_size import wide
from attention_explorer.widgets import cell_image

_HATCH = 9.0
RAMP = 36.0
_BETWEEN = 16.0  # from a caption to the next
CAPTION_REST = RAMP + 14 + _BETWEEN
"""What a caption takes besides its letters."""
_PALE = 0.55  # the lightness from which on a cell is written on in black
_CENTRE = Qt.AlignmentFlag.AlignCenter
_BEFORE: dict[Name, str] = {"raw": "× Kᵀ", "masked": "mask", "weights": "softmax", "output": "× V"}


@dataclass(frozen=True)
class MatricesPainter(Look):
    """Draws everything but the names of tokens."""

    table: ColourTable  # of weights
    images: dict[Name, QImage]  # one pixel a cell; kept from paint to paint
    seen_width: float  # of the widget

    def draw_matrix(self, painter: QPainter, matrix: Matrix, dirty: QRectF) -> None:
        rect = self.layout.rects[matrix.name]
        if matrix.masked is not None and matrix.name in ("masked", "weights"):
            self._draw_hatching(painter, rect)
        painter.drawImage(rect, self._image(matrix))
        painter.setPen(QPen(QColor(self.theme.border_strong), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(rect.adjusted(-0.5, -0.5, 0.5, 0.5))
        if self.layout.has_numbers(matrix.name):
            self._draw_numbers(painter, matrix, dirty.intersected(rect))

    def _image(self, matrix: Matrix) -> QImage:
        image = self.images.get(matrix.name)
        if image is None:
            table = self._colours(matrix)
            masked = matrix.masked if matrix.name in ("masked", "weights") else None
            codes = cell_image.encode(matrix.values.astype(np.float32), matrix.low, matrix.high, masked)
            image = cell_image.to_image(codes, cell_image.colours(table, matrix.low, matrix.high))
            self.images[matrix.name] = image
        return image

    def _colours(self, matrix: Matrix) -> ColourTable:
        return self.table if matrix.name == "weights" else diverging()

    def _draw_hatching(self, painter: QPainter, rect: QRectF) -> None:
        painter.save()
        painter.setClipRect(rect)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(self.theme.hatch), 1.0))
        for step in range(1, int((rect.width() + rect.height()) / _HATCH) + 1):
            x = rect.left() + step * _HATCH
            painter.drawLine(QLineF(x, rect.top(), x - rect.height(), rect.bottom()))
        painter.restore()

    def _draw_numbers(self, painter: QPainter, matrix: Matrix, area: QRectF) -> None:
        if area.isEmpty():
            return
        rect, size = self.layout.rects[matrix.name], self.layout.cell_size(matrix.name)
        image = self._image(matrix)
        painter.setFont(self.number_font)
        first, last = area.topLeft() - rect.topLeft(), area.bottomRight() - rect.topLeft()
        rows, columns = matrix.values.shape
        for row in range(int(first.y() / size.height()), min(rows, int(last.y() / size.height()) + 1)):
            for column in range(int(first.x() / size.width()), min(columns, int(last.x() / size.width()) + 1)):
                place = Place(matrix.name, row, column)
                painter.setPen(self._ink_on(QColor(image.pixelColor(column, row))))
                painter.drawText(self.layout.cell(place), _CENTRE, cell_text(self.scene.number(place)))

    def _ink_on(self, colour: QColor) -> QColor:
        """What is read on a cell of this colour, which is transparent where the mask hides it."""
        if not colour.alpha():
            return QColor(self.theme.text_dim)
        return QColor("#101318" if colour.lightnessF() > _PALE else "#ffffff")

    def draw_caption(self, painter: QPainter, matrix: Matrix) -> None:
        """Its name, its size and what its colours reach to, as far as there is room."""
        rect, room = self.layout.rects[matrix.name], self.layout.room
        raised = room.column_label if SIDES[matrix.name][1] == "key" and self.layout.is_topmost(matrix.name) else 0.0
        width = min(rect.width() + room.gap - _BETWEEN, self.seen_width - rect.left())
        strip = QRectF(rect.left(), rect.top() - room.caption - raised, width, room.caption - 2)
        painter.setFont(self.bold)
        painter.setPen(QColor(self.theme.text))
        x = self._draw_part(painter, strip, 0.0, TITLES[matrix.name])
        painter.setFont(self.font)
        painter.setPen(QColor(self.theme.text_dim))
        x = self._draw_part(painter, strip, x, matrix.size)
        metrics = QFontMetricsF(self.font)
        if x + RAMP + 6 + metrics.horizontalAdvance(matrix.span) > strip.width():
            return
        ramp = cell_image.to_image(np.arange(256, dtype=np.uint8)[None], cell_image.packed(self._colours(matrix)))
        middle = strip.center().y()
        painter.drawImage(QRectF(strip.left() + x, middle - 4, RAMP, 8), ramp)
        self._draw_part(painter, strip, x + RAMP + 6, matrix.span)

    def _draw_part(self, painter: QPainter, strip: QRectF, x: float, text: str) -> float:
        """Draw `text` so far from the left where it has room; where the next part begins."""
        width = QFontMetricsF(painter.font()).horizontalAdvance(text)
        if x + width <= strip.width():
            painter.drawText(strip.adjusted(x, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, text)
        return x + width + 8

    def draw_steps(self, painter: QPainter) -> None:
        """What happens from each matrix to the next: an arrow and its name, in the gap or before a new band."""
        line = self.line
        for band in self.layout.bands:
            for before, name in zip((band[0], *band), band, strict=False):
                if name == "q":
                    continue
                text = self.scene.scaling if name == "scaled" else _BEFORE[name]
                text = "no mask" if name == "masked" and self.scene.view.masked is None else text
                rect, room = self.layout.rects[name], self.layout.room
                left = self.layout.rects[before].right()
                gap = QRectF(left, rect.top(), rect.left() - left, rect.height())
                gap.setWidth(gap.width() - (room.row_label if name == "output" else 0.0))  # names of V's keys
                if self.layout.begins_band(name):
                    before_it = QRectF(rect.left() - 206, rect.top() - line - 6, 200, line)
                    self._draw_step_text(painter, before_it, f"{text} →", Qt.AlignmentFlag.AlignRight)
                    continue
                y = min(gap.center().y(), gap.top() + 4 * line)
                self._draw_arrow(painter, gap.left() + 6, gap.right() - 6, y)
                over = QRectF(gap.left() + 2, y - 3.2 * line, gap.width() - 4, 3 * line)
                self._draw_step_text(painter, over, text, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignBottom)

    def _draw_step_text(self, painter: QPainter, rect: QRectF, text: str, side: Qt.AlignmentFlag) -> None:
        painter.setFont(self.font)
        painter.setPen(QColor(self.theme.text_dim))
        painter.drawText(rect, side.value | Qt.TextFlag.TextWordWrap.value, text)

    def _draw_arrow(self, painter: QPainter, left: float, right: float, y: float) -> None:
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(self.theme.text_dim), wide(1.4)))
        painter.drawLine(QPointF(left, y), QPointF(right, y))
        for up in (-4, 4):
            painter.drawLine(QPointF(right, y), QPointF(right - 5, y + up))
        painter.restore()

    def draw_lit(self, painter: QPainter, told: Place | None) -> None:
        """The number that is told of, and the rows and columns that made it."""
        if told is None:
            return
        for part in self.scene.made_of(told):
            rect, size = QRectF(self.layout.rects[part.name]), self.layout.cell_size(part.name)
            if part.row is not None:
                rect.setTop(self.layout.rects[part.name].top() + part.row * size.height())
                rect.setHeight(size.height())
            if part.column is not None:
                rect.setLeft(self.layout.rects[part.name].left() + part.column * size.width())
                rect.setWidth(size.width())
            is_row = part.column is None
            self._draw_frame(painter, rect, self.theme.query if is_row else self.theme.key)
        self._draw_frame(painter, self.layout.cell(told), self.theme.text)

    def _draw_frame(self, painter: QPainter, rect: QRectF, colour: str) -> None:
        painter.save()
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for line, width, outset in ((self.theme.surface, 1.5, 3.0), (colour, 2.0, 1.0)):
            painter.setPen(QPen(QColor(line), wide(width), j=Qt.PenJoinStyle.MiterJoin))
            painter.drawRect(rect.adjusted(-outset, -outset, outset, outset))
        painter.restore()
