"""Words that changed places, and how far the output of each moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.widgets.number_text import value_text
from explorer.widgets.themed import ThemedWidget

_PAD = 6.0
_LINKS = 36.0  # pixels across which a word is followed to its new place
_WIDEST_WORD = 110.0
_LEFT, _RIGHT, _MIDDLE = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight, Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True, eq=False)
class Measured:
    """A column of bars: `values` (tokens,) by new place."""

    title: str
    values: NDArray[np.floating]


class OrderMap(ThemedWidget):
    """As written at the left, the new order beside it, and for each token of that one bar a column, on one scale."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Words in another order", parent)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # nothing to do here with a keyboard
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._words: tuple[str, ...] = ()
        self._order: tuple[int, ...] = ()
        self._fixed: tuple[bool, ...] = ()
        self._columns: tuple[Measured, ...] = ()

    def set_order(
        self, words: Sequence[str], order: Sequence[int], fixed: Sequence[bool], columns: Sequence[Measured]
    ) -> None:
        """`order` says which of `words` stands at each new place; `fixed` words (by old place) are drawn dim."""
        self._words, self._order, self._fixed = tuple(words), tuple(order), tuple(fixed)
        self._columns = tuple(columns)
        said = ", ".join(f"{c.title}: at most {value_text(float(c.values.max(initial=0.0)))}" for c in self._columns)
        self.setAccessibleDescription(f"{' '.join(self._words[i] for i in self._order)}. {said}")
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(380, round(self._top() + max(2, len(self._words)) * self._row_height()))

    def minimumSizeHint(self) -> QSize:
        return QSize(260, self.sizeHint().height())

    def _line(self) -> float:
        return QFontMetricsF(self.font()).height()

    def _top(self) -> float:
        return 2 * self._line() + 6

    def _row_height(self) -> float:
        return self._line() + 5

    def _y(self, row: int) -> float:
        return self._top() + row * self._row_height()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self._words:
            self._draw_empty_text(painter)
            return
        metrics = QFontMetricsF(self.font())
        widest = max(metrics.horizontalAdvance(word) for word in (*self._words, "written", "shuffled")) + 2
        word = min(widest, _WIDEST_WORD, self.width() * 0.22)
        written, shuffled = QRectF(0, 0, word, 0), QRectF(word + _LINKS, 0, word, 0)
        self._draw_words(painter, written, shuffled)
        start = shuffled.right() + 2 * _PAD
        for index, column in enumerate(self._columns):
            width = (self.width() - start) / len(self._columns)
            self._draw_column(painter, column, QRectF(start + index * width, 0, width - _PAD, 0))

    def _draw_words(self, painter: QPainter, written: QRectF, shuffled: QRectF) -> None:
        theme, metrics, height = self._theme, QFontMetricsF(self.font()), self._row_height()
        painter.setPen(QColor(theme.text_dim))
        above = self._line() + 2
        painter.drawText(QRectF(written.left(), above, written.width(), self._line()), _RIGHT | _MIDDLE, "written")
        painter.drawText(QRectF(shuffled.left(), above, shuffled.width(), self._line()), _LEFT | _MIDDLE, "shuffled")
        for place, source in enumerate(self._order):
            moved = place != source
            path = QPainterPath(QPointF(written.right() + _PAD, self._y(source) + height / 2))
            end = QPointF(shuffled.left() - _PAD, self._y(place) + height / 2)
            bend = (path.currentPosition().x() + end.x()) / 2
            path.cubicTo(QPointF(bend, path.currentPosition().y()), QPointF(bend, end.y()), end)
            painter.setPen(QPen(QColor(theme.bar if moved else theme.border_strong), 1.6 if moved else 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawPath(path)
            for rect, row, side in ((written, source, _RIGHT), (shuffled, place, _LEFT)):
                painter.setPen(QColor(theme.text_dim if self._fixed[source] else theme.text))
                text = metrics.elidedText(self._words[source], Qt.TextElideMode.ElideRight, rect.width())
                painter.drawText(QRectF(rect.left(), self._y(row), rect.width(), height), side | _MIDDLE, text)

    def _draw_column(self, painter: QPainter, column: Measured, rect: QRectF) -> None:
        theme, metrics, height = self._theme, QFontMetricsF(self.font()), self._row_height()
        painter.setPen(QColor(theme.text_dim))
        flags = Qt.AlignmentFlag.AlignBottom.value | Qt.TextFlag.TextWordWrap.value
        painter.drawText(QRectF(rect.left(), 0, rect.width(), 2 * self._line() + 2), flags, column.title)
        largest = max((float(c.values.max(initial=0.0)) for c in self._columns), default=0.0) or 1.0
        numbers = (distance_text(value) for c in self._columns for value in c.values.tolist())
        number = max(map(metrics.horizontalAdvance, numbers), default=0) + _PAD  # the same for all: one scale
        full = max(4.0, rect.width() - number)
        for place, value in enumerate(column.values.tolist()):
            y = self._y(place)
            length = max(1.0, full * value / largest)
            painter.fillRect(QRectF(rect.left(), y + 3, length, height - 6), QColor(theme.bar))
            painter.setPen(QColor(theme.text_dim))
            text = QRectF(rect.left() + length + _PAD, y, number, height)
            painter.drawText(text, _LEFT | _MIDDLE, distance_text(value))


def distance_text(value: float) -> str:
    """Three digits, or a power of ten for what is rounding only: 12.3, 0.042, 9e-7."""
    if value == 0:
        return "0"
    return f"{value:.3g}" if value >= 0.001 else f"{value:.0e}".replace("e-0", "e-")
