"""Two vectors and their sum as three rows of bars, one bar a dimension, on one scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.widgets.number_text import value_text
from explorer.widgets.themed import ThemedWidget

_PAD = 8.0
_LEFT, _MIDDLE = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True, eq=False)
class Addend:
    """A vector (width,), its name, and the theme role of its colour."""

    name: str
    values: NDArray[np.floating]
    role: str


class SumBars(ThemedWidget):
    """Three aligned rows, the third the sum of the others. The pointer reads out one dimension."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Token embedding, position and their sum", parent)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # nothing to do here with a keyboard
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._rows: tuple[Addend, ...] = ()
        self._lengths: tuple[float, ...] = ()
        self._largest = 1.0
        self._hover = -1

    def set_rows(self, rows: tuple[Addend, Addend, Addend] | tuple[()]) -> None:
        """Show two vectors and their sum; () shows the empty text."""
        self._rows = rows
        self._lengths = tuple(float(np.linalg.norm(row.values.astype(np.float64))) for row in rows)
        self._largest = max((float(np.abs(row.values).max()) for row in rows), default=1.0) or 1.0
        self._hover = -1
        said = (f"{row.name} length {value_text(n)}" for row, n in zip(rows, self._lengths, strict=True))
        self.setAccessibleDescription(", ".join(said))
        self.updateGeometry()
        self.update()

    @property
    def lengths(self) -> tuple[float, ...]:
        """The Euclidean length of each row, as written beside it."""
        return self._lengths

    def readout(self) -> str:
        if not 0 <= self._hover < self._width():
            return f"{self._width()} dimensions: point at one" if self._rows else ""
        first, second, total = (value_text(float(row.values[self._hover])) for row in self._rows)
        return f"dimension {self._hover}:  {first} + {second} = {total}"

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
        if 0 <= self._hover < self._width():
            x = room.left() + (self._hover + 0.5) * room.width() / self._width()
            painter.setPen(QPen(QColor(self._theme.text), 1, Qt.PenStyle.DotLine))
            painter.drawLine(QPointF(x, room.top()), QPointF(x, room.bottom()))

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

    # pointer

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        room = self._room()
        inside = self._rows and room.contains(event.position())
        self._highlight(int((event.position().x() - room.left()) / room.width() * self._width()) if inside else -1)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._highlight(-1)

    def _highlight(self, dimension: int) -> None:
        if dimension != self._hover:
            self._hover = dimension
            self.update()
