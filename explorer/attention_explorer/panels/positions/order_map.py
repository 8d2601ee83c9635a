"""Words that changed places, and how far the output of each moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.look.text_size import wide
from attention_explorer.widgets.number_text import value_text
from attention_explorer.widgets.themed import ThemedWidget

_PAD = 6.0
_LINKS = 36.0  # pixels across which a word is followed to its new place
_FOLLOWED = 60  # places that a word may move to be followed; of one that went further both ends say which way
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
        self._place: dict[int, int] = {}  # of each word: where it stands now
        self._numbers: set[str] = set()  # what stands beside the bars: of a long text few are different
        self._largest = 1.0  # of all bars

    def set_order(
        self, words: Sequence[str], order: Sequence[int], fixed: Sequence[bool], columns: Sequence[Measured]
    ) -> None:
        """`order` says which of `words` stands at each new place; `fixed` words (by old place) are drawn dim."""
        self._words, self._order, self._fixed = tuple(words), tuple(order), tuple(fixed)
        self._columns = tuple(columns)
        self._place = {source: place for place, source in enumerate(self._order)}
        self._numbers = {distance_text(value) for c in self._columns for value in c.values.tolist()}
        self._largest = max((float(c.values.max(initial=0.0)) for c in self._columns), default=0.0) or 1.0
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
        widest = max(metrics.horizontalAdvance(word) for word in {*self._words, "written", "shuffled"}) + 2
        word = min(widest, _WIDEST_WORD, self.width() * 0.22)
        written, shuffled = QRectF(0, 0, word, 0), QRectF(word + _LINKS, 0, word, 0)
        rows = self._rows_within(event.rect())
        self._draw_words(painter, written, shuffled, rows)
        start = shuffled.right() + 2 * _PAD
        for index, column in enumerate(self._columns):
            width = (self.width() - start) / len(self._columns)
            self._draw_column(painter, column, QRectF(start + index * width, 0, width - _PAD, 0), rows)

    def _rows_within(self, area: QRect) -> range:
        """The rows of which something lies in `area`: a long text has thousands, and a window shows some."""
        first = int((area.top() - self._top()) / self._row_height()) - 1
        last = int((area.bottom() - self._top()) / self._row_height()) + 2
        return range(max(0, first), min(len(self._words), max(0, last)))

    def _draw_words(self, painter: QPainter, written: QRectF, shuffled: QRectF, rows: range) -> None:
        theme, metrics, height = self._theme, QFontMetricsF(self.font()), self._row_height()
        painter.setPen(QColor(theme.text_dim))
        above = self._line() + 2
        painter.drawText(QRectF(written.left(), above, written.width(), self._line()), _RIGHT | _MIDDLE, "written")
        painter.drawText(QRectF(shuffled.left(), above, shuffled.width(), self._line()), _LEFT | _MIDDLE, "shuffled")
        painter.setBrush(Qt.BrushStyle.NoBrush)
        left, right = written.right() + _PAD, shuffled.left() - _PAD
        for place in range(max(0, rows.start - _FOLLOWED), min(len(self._words), rows.stop + _FOLLOWED)):
            source = self._order[place]
            if abs(place - source) <= _FOLLOWED:
                self._draw_link(painter, QPointF(left, self._y(source) + height / 2), right, place, source)
        for row in rows:
            place, source = self._place[row], self._order[row]
            for x, toward, other in ((left, right, place), (right, left, source)):
                if abs(row - other) > _FOLLOWED:
                    self._draw_stub(painter, QPointF(x, self._y(row) + height / 2), toward, other > row)
            for rect, word, side in ((written, row, _RIGHT), (shuffled, source, _LEFT)):
                painter.setPen(QColor(theme.text_dim if self._fixed[word] else theme.text))
                text = metrics.elidedText(self._words[word], Qt.TextElideMode.ElideRight, rect.width())
                painter.drawText(QRectF(rect.left(), self._y(row), rect.width(), height), side | _MIDDLE, text)

    def _draw_link(self, painter: QPainter, start: QPointF, right: float, place: int, source: int) -> None:
        """A line from where a word was written to where it stands now."""
        moved = place != source
        end = QPointF(right, self._y(place) + self._row_height() / 2)
        bend = (start.x() + end.x()) / 2
        path = QPainterPath(start)
        path.cubicTo(QPointF(bend, start.y()), QPointF(bend, end.y()), end)
        painter.setPen(QPen(QColor(self._theme.bar if moved else self._theme.border_strong), wide(1.6 if moved else 1)))
        painter.drawPath(path)

    def _draw_stub(self, painter: QPainter, start: QPointF, toward: float, down: bool) -> None:
        """The beginning of a line that is too long to be followed."""
        middle, away = (start.x() + toward) / 2, self._row_height() * (0.45 if down else -0.45)
        path = QPainterPath(start)
        path.quadTo(QPointF(middle, start.y()), QPointF(middle, start.y() + away))
        painter.setPen(QPen(QColor(self._theme.bar), wide(1.6)))
        painter.drawPath(path)

    def _draw_column(self, painter: QPainter, column: Measured, rect: QRectF, rows: range) -> None:
        theme, metrics, height = self._theme, QFontMetricsF(self.font()), self._row_height()
        painter.setPen(QColor(theme.text_dim))
        flags = Qt.AlignmentFlag.AlignBottom.value | Qt.TextFlag.TextWordWrap.value
        painter.drawText(QRectF(rect.left(), 0, rect.width(), 2 * self._line() + 2), flags, column.title)
        # the same room for all: one scale
        number = max(map(metrics.horizontalAdvance, self._numbers), default=0) + _PAD
        full = max(4.0, rect.width() - number)
        for place in rows:
            value, y = float(column.values[place]), self._y(place)
            length = max(1.0, full * value / self._largest)
            painter.fillRect(QRectF(rect.left(), y + 3, length, height - 6), QColor(theme.bar))
            painter.setPen(QColor(theme.text_dim))
            text = QRectF(rect.left() + length + _PAD, y, number, height)
            painter.drawText(text, _LEFT | _MIDDLE, distance_text(value))


def distance_text(value: float) -> str:
    """Three digits, or a power of ten for what is rounding only: 12.3, 0.042, 9e-7."""
    if value == 0:
        return "0"
    return f"{value:.3g}" if value >= 0.001 else f"{value:.0e}".replace("e-0", "e-")
