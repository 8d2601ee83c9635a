"""Two vectors and their sum as three rows of bars, one bar a dimension, on one scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.widgets.items_widget import ItemsWidget
from attention_explorer.widgets.number_text import value_text

_PAD = 8.0
_LEFT, _MIDDLE = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True, eq=False)
class Addend:
    """A vector (width,), its name, and the theme role of its colour."""

    name: str
    values: NDArray[np.floating]
    role: str


class SumBars(ItemsWidget):
    """Three aligned rows, the third the sum of the others. The pointer and the arrow keys read out one dimension."""

    axis = Qt.Orientation.Horizontal

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Token embedding, position and their sum", parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._rows: tuple[Addend, ...] = ()
        self._lengths: tuple[float, ...] = ()
        self._largest = 1.0

    def set_rows(self, rows: tuple[Addend, Addend, Addend] | tuple[()]) -> None:
        """Show two vectors and their sum; () shows the empty text."""
        self._rows = rows
        self._lengths = tuple(float(np.linalg.norm(row.values.astype(np.float64))) for row in rows)
        self._largest = max((float(np.abs(row.values).max()) for row in rows), default=1.0) or 1.0
        self._keep_items()
        said = (f"{row.name} length {value_text(n)}" for row, n in zip(rows, self._lengths, strict=True))
        self.setAccessibleDescription(", ".join(said))
        self.updateGeometry()
        self.update()

    @property
    def lengths(self) -> tuple[float, ...]:
        """The Euclidean length of each row, as written beside it."""
        return self._lengths

    def readout(self) -> str:
        read = self._read()
        if read < 0:
            return f"{self._width()} dimensions: point at one" if self._rows else ""
        first, second, total = (value_text(float(row.values[read])) for row in self._rows)
        return f"dimension {read}:  {first} + {second} = {total}"

    # geometry

    def sizeHint(self) -> QSize:
        return QSize(380, round(self._line() * 1.3 + 3 * self._row_height()))

    def minimumSizeHint(self) -> QSize:
        return QSize(240, self.sizeHint().height())

    def _line(self) -> float:
        return QFontMetricsF(self.font()).height()

    def _row_height(self) -> float:
        return 2 * self._line() + 12

    def _width(self) -> int:
        return len(self._rows[0].values) if self._rows else 0

    def _room(self) -> QRectF:
        metrics = QFontMetricsF(self.bold_font())
        names = [*(row.name for row in self._rows), "length 00.00"]
        left = max(metrics.horizontalAdvance(name) for name in names) + _PAD
        return QRectF(left, self._line() * 1.3, max(20.0, self.width() - left - 2), 3 * self._row_height())

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if not self._rows:
            self._draw_empty_text(painter)
            return
        room, line = self._room(), self._line()
        painter.setPen(QColor(self._theme.text))
        painter.drawText(QRectF(0, 0, self.width(), line), _LEFT | _MIDDLE, self.readout())
        for index, row in enumerate(self._rows):
            middle = room.top() + (index + 0.5) * self._row_height()
            name = QRectF(0, middle - line, room.left(), line)
            painter.setFont(self.bold_font())
            painter.setPen(QColor(getattr(self._theme, row.role)))
            painter.drawText(name, _LEFT | _MIDDLE, row.name)
            painter.setFont(self.font())
            painter.setPen(QColor(self._theme.text_dim))
            painter.drawText(name.translated(0, line), _LEFT | _MIDDLE, f"length {value_text(self._lengths[index])}")
            self._draw_bars(painter, row, room, middle)
        read = self._read()
        if read >= 0:
            x = self.item_rect(read).center().x()
            painter.setPen(QPen(QColor(self._theme.text), 1, Qt.PenStyle.DotLine))
            painter.drawLine(QPointF(x, room.top()), QPointF(x, room.bottom()))
        self._draw_focus_ring(painter)

    def _draw_bars(self, painter: QPainter, row: Addend, room: QRectF, middle: float) -> None:
        painter.setPen(QPen(QColor(self._theme.border), 1))
        painter.drawLine(QPointF(room.left(), round(middle) + 0.5), QPointF(room.right(), round(middle) + 0.5))
        half = self._row_height() / 2 - 3
        columns = min(self._width(), round(room.width()))  # where dimensions are narrower than a pixel: the extremes
        starts = np.arange(columns) * self._width() // columns
        highs = np.maximum(np.maximum.reduceat(row.values, starts), 0) / self._largest * half
        lows = np.minimum(np.minimum.reduceat(row.values, starts), 0) / self._largest * half
        size = room.width() / columns
        gap = 0.25 * size if size > 3 else 0.0
        colour = QColor(getattr(self._theme, row.role))
        for column, (high, low) in enumerate(zip(highs.tolist(), lows.tolist(), strict=True)):
            bar = QRectF(room.left() + column * size + gap / 2, middle - high, size - gap, high - low)
            painter.fillRect(bar, colour)

    # pointer and keyboard

    def _read(self) -> int:
        """The dimension under the pointer, else the chosen one."""
        return self._hover if self._hover >= 0 else self._current

    def item_count(self) -> int:
        return self._width()

    def item_rect(self, item: int) -> QRectF:
        room = self._room()
        width = room.width() / max(1, self._width())
        return QRectF(room.left() + item * width, room.top(), width, room.height())

    def _item_at(self, position: QPointF) -> int:
        room, count = self._room(), self._width()
        inside = self._rows and room.contains(position)
        return min(int((position.x() - room.left()) / room.width() * count), count - 1) if inside else -1

    def _choose(self, item: int) -> None:
        self._hover = -1
        self._move(item)
