"""A table of numbers as a picture: one colour a number, with the scale beside it and a cross that can be moved."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.look.colour_maps import ColourTable, diverging
from attention_explorer.look.text_size import wide
from attention_explorer.widgets import cell_image
from attention_explorer.widgets.number_text import nice_ticks, tick_texts, value_text
from attention_explorer.widgets.themed import ThemedWidget

_PAD = 6.0
_SCALE = 12.0
_RIGHT, _MIDDLE = Qt.AlignmentFlag.AlignRight, Qt.AlignmentFlag.AlignVCenter


class TableImage(ThemedWidget):
    """Rows down, columns across. Click, drag and arrow keys move the cross; the line above says what is under it."""

    chosen = Signal(int, int)  # row, column, by pointer or keyboard

    def __init__(self, name: str, *, square: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(name, parent)
        self.setMouseTracking(True)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(square)
        self.setSizePolicy(policy)
        self._square = square
        self._values: NDArray[np.float32] | None = None  # (rows, columns)
        self._range = (-1.0, 1.0)
        self._table = diverging()
        self._step = 1
        self._titles = ("", "")
        self._say: Callable[[int, int, str], str] = lambda row, column, value: f"{row}, {column}: {value}"
        self._cross = (-1, -1)
        self._hover = (-1, -1)
        self._codes: cell_image.Codes | None = None
        self._picture: QImage | None = None

    def set_values(
        self,
        values: NDArray[np.floating] | None,
        low: float,
        high: float,
        table: ColourTable | None = None,
        step: int = 1,
    ) -> None:
        """Show (rows, columns) values coloured from low to high; None shows the empty text.

        Every row (and in a square picture every column) stands for `step` of what the axes count.
        """
        self._values = None if values is None or values.size == 0 else np.asarray(values, dtype=np.float32)
        self._range, self._table, self._step = (low, high), diverging() if table is None else table, step
        self._codes = None if self._values is None else cell_image.encode(self._values, low, high)
        self._picture = None
        self._cross, self._hover = self._within(self._cross), (-1, -1)
        self.update()

    def set_titles(self, rows: str, columns: str) -> None:
        self._titles = (rows, columns)
        self.update()

    def set_sentence(self, say: Callable[[int, int, str], str]) -> None:
        """How to say one cell: from its row, column (as the axes count) and its value as text."""
        self._say = say
        self.update()

    def set_cross(self, row: int, column: int) -> None:
        """Draw the cross through a cell, -1 on an axis for no line there; emits nothing."""
        if (row, column) != self._cross:
            self._cross = (row, column)
            self.setAccessibleDescription(self.readout())
            self.update()

    @property
    def cross(self) -> tuple[int, int]:
        return self._cross

    def readout(self) -> str:
        """The sentence about the cell under the pointer, else under the cross."""
        row, column = self._hover if self._hover != (-1, -1) else self._cross
        if self._values is None or self._within((row, column)) == (-1, -1):
            return ""
        across = self._step if self._square else 1
        return self._say(row * self._step, column * across, value_text(float(self._values[row, column])))

    def cell_centre(self, row: int, column: int) -> QPointF:
        """Where a cell lies in the widget."""
        assert self._values is not None
        room = self._room()
        rows, columns = self._values.shape
        return QPointF(
            room.left() + (column + 0.5) * room.width() / columns, room.top() + (row + 0.5) * room.height() / rows
        )

    # geometry

    def sizeHint(self) -> QSize:
        return QSize(360, self.heightForWidth(360) if self._square else self._line() * 14)

    def minimumSizeHint(self) -> QSize:
        return QSize(200, self.heightForWidth(200) if self._square else self._line() * 14)

    def hasHeightForWidth(self) -> bool:
        return self._square

    def heightForWidth(self, width: int) -> int:
        left, right = self._margins()
        return round(min(width - left - right, 300.0) + 3.4 * self._line() + _PAD) if self._square else -1

    def _line(self) -> int:
        return round(QFontMetricsF(self.font()).height())

    def _margins(self) -> tuple[float, float]:
        metrics = QFontMetricsF(self.font())
        count = (len(self._values) if self._values is not None else 100) * self._step
        left = metrics.horizontalAdvance(f"{max(count, 10):,}") + self._line() + 2 * _PAD
        texts = tick_texts(nice_ticks(*self._range, 3))
        return left, _PAD + _SCALE + _PAD + max(metrics.horizontalAdvance(text) for text in [*texts, "0.0"])

    def _room(self) -> QRectF:
        left, right = self._margins()
        line = self._line()
        width = max(20.0, self.width() - left - right)
        height = max(20.0, self.height() - 3.4 * line - _PAD)
        if self._square:
            width = height = min(width, height)
        return QRectF(round(left), round(line * 1.4), round(width), round(height))

    def _within(self, cell: tuple[int, int]) -> tuple[int, int]:
        if self._values is None:
            return (-1, -1)
        rows, columns = self._values.shape
        return cell if 0 <= cell[0] < rows and 0 <= cell[1] < columns else (-1, -1)

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if self._codes is None:
            self._draw_empty_text(painter)
            self._draw_focus_ring(painter)
            return
        room = self._room()
        painter.drawImage(room.topLeft(), self._image(room))
        self._draw_axes(painter, room)
        self._draw_scale(painter, room)
        self._draw_cross(painter, room)
        painter.setPen(QColor(self._theme.text))
        metrics = QFontMetricsF(self.font())
        top = QRectF(_PAD, 0, self.width() - _PAD, self._line())
        shown = metrics.elidedText(self.readout(), Qt.TextElideMode.ElideRight, top.width())
        painter.drawText(top, _MIDDLE, shown)
        self._draw_focus_ring(painter)

    def _image(self, room: QRectF) -> QImage:
        ratio = self.devicePixelRatioF()
        size = QSize(round(room.width() * ratio), round(room.height() * ratio))
        if self._picture is None or self._picture.size() != size:
            assert self._codes is not None
            pixels = self._codes
            for axis, length in ((0, size.height()), (1, size.width())):
                pixels = cell_image.stretch(pixels, axis, 0.0, length / self._codes.shape[axis], length)
            self._picture = cell_image.to_image(pixels, cell_image.colours(self._table, *self._range))
            self._picture.setDevicePixelRatio(ratio)
        return self._picture

    def _draw_axes(self, painter: QPainter, room: QRectF) -> None:
        assert self._values is not None
        rows, columns = self._values.shape
        line, metrics = self._line(), QFontMetricsF(self.font())
        across = self._step if self._square else 1
        painter.setPen(QColor(self._theme.text_dim))
        for tick in nice_ticks(0, (rows - 1) * self._step, max(2, min(6, int(room.height() / line / 2)))):
            if tick == round(tick):
                y = room.top() + (tick / self._step + 0.5) * room.height() / rows
                painter.drawText(QRectF(0, y - line / 2, room.left() - _PAD, line), _RIGHT | _MIDDLE, f"{tick:,.0f}")
        widest = metrics.horizontalAdvance(f"{columns * across:,}") * 2 + 8
        for tick in nice_ticks(0, (columns - 1) * across, max(2, int(room.width() / widest))):
            if tick == round(tick):
                x = room.left() + (tick / across + 0.5) * room.width() / columns
                text = QRectF(x - 50, room.bottom() + 2, 100, line)
                painter.drawText(text, Qt.AlignmentFlag.AlignHCenter, f"{tick:,.0f}")
        below = QRectF(room.left(), room.bottom() + 2 + line, room.width(), line)
        painter.drawText(below, Qt.AlignmentFlag.AlignHCenter, self._titles[1])
        painter.save()
        painter.translate(0, room.center().y())
        painter.rotate(-90)
        painter.drawText(
            QRectF(-room.height() / 2, 0, room.height(), line), Qt.AlignmentFlag.AlignHCenter, self._titles[0]
        )
        painter.restore()

    def _draw_scale(self, painter: QPainter, room: QRectF) -> None:
        bar = QRectF(room.right() + _PAD, room.top(), _SCALE, room.height())
        ramp = np.arange(255, -1, -1, dtype=np.uint8)[:, None]  # highest at the top
        painter.drawImage(bar, cell_image.to_image(ramp, cell_image.packed(self._table)))
        low, high = self._range
        line = self._line()
        ticks = nice_ticks(low, high, 3)
        painter.setPen(QColor(self._theme.text_dim))
        for tick, text in zip(ticks, tick_texts(ticks), strict=True):
            y = bar.bottom() - (tick - low) / (high - low or 1.0) * bar.height()
            y = min(max(y, bar.top() + line / 2 - 3), bar.bottom() - line / 2 + 3)
            painter.drawText(QRectF(bar.right() + _PAD - 2, y - line / 2, 80, line), _MIDDLE, text)

    def _draw_cross(self, painter: QPainter, room: QRectF) -> None:
        assert self._values is not None
        rows, columns = self._values.shape
        row, column = self._cross
        lines = []
        if 0 <= row < rows:
            y = room.top() + (row + 0.5) * room.height() / rows
            lines.append((QPointF(room.left(), y), QPointF(room.right(), y)))
        if 0 <= column < columns:
            x = room.left() + (column + 0.5) * room.width() / columns
            lines.append((QPointF(x, room.top()), QPointF(x, room.bottom())))
        # dark and light, so that it shows on every colour
        for colour, width in ((QColor(255, 255, 255, 170), 2.5), (QColor(20, 22, 26), 1.0)):
            painter.setPen(QPen(colour, wide(width)))
            for start, end in lines:
                painter.drawLine(start, end)

    # pointer and keyboard

    def _cell_at(self, position: QPointF, *, clamp: bool = False) -> tuple[int, int]:
        assert self._values is not None
        room = self._room()
        rows, columns = self._values.shape
        if not (clamp or room.contains(position)):
            return (-1, -1)
        row = int((position.y() - room.top()) / room.height() * rows)
        column = int((position.x() - room.left()) / room.width() * columns)
        return min(max(row, 0), rows - 1), min(max(column, 0), columns - 1)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self._values is None or event.button() != Qt.MouseButton.LeftButton:
            event.ignore()
            return
        cell = self._cell_at(event.position())
        if cell != (-1, -1):
            self._choose(cell)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._values is None:
            return
        held = bool(event.buttons() & Qt.MouseButton.LeftButton)
        self._hover = self._cell_at(event.position(), clamp=held)
        if held:
            self._choose(self._hover)
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hover = (-1, -1)
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        moves = {
            Qt.Key.Key_Up: (-1, 0),
            Qt.Key.Key_Down: (1, 0),
            Qt.Key.Key_Left: (0, -1),
            Qt.Key.Key_Right: (0, 1),
        }
        if self._values is None or Qt.Key(event.key()) not in moves:
            event.ignore()
            return
        down, right = moves[Qt.Key(event.key())]
        rows, columns = self._values.shape
        row, column = max(self._cross[0], 0), max(self._cross[1], 0)
        self._choose((min(max(row + down, 0), rows - 1), min(max(column + right, 0), columns - 1)))

    def _choose(self, cell: tuple[int, int]) -> None:
        if cell != self._cross:
            self.set_cross(*cell)
            self.chosen.emit(*cell)
