"""One row of an attention matrix, key by key: raw products, what enters the softmax, and weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.widgets.items_widget import ItemsWidget
from attention_explorer.widgets.number_text import value_text

FEW = 32
"""A longer row is cut to this many keys, unless all of them are asked for."""

HEADINGS = ("q · k", "into softmax", "weight")
_PAD = 8.0
_TINT = 0.45  # how much of its colour a bar has: the numbers are read upon it
_NONE = np.zeros(0, np.float32)


class RowBars(ItemsWidget):
    """A line a key with three bars. A click, or Up and Down, chooses a key.

    Of a long row only the keys with the largest weights are listed, in the order of the text, with the chosen key and
    its neighbours; a dotted line stands where keys are left out.
    """

    key_selected = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("The whole row, key by key", parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._columns: tuple[np.ndarray, np.ndarray, np.ndarray] = (_NONE, _NONE, _NONE)
        self._spans = ((0.0, 0.0), (0.0, 0.0), (0.0, 0.0))
        self._masked = np.zeros(0, bool)
        self._labels: Sequence[str] = ()
        self._headings: Sequence[str] = HEADINGS
        self._shown = np.zeros(0, int)  # the keys that have a line
        self._all = False

    def set_row(
        self,
        raw: np.ndarray,
        scores: np.ndarray,
        masked: np.ndarray,
        weights: np.ndarray,
        labels: Sequence[str],
        key: int,
    ) -> None:
        """Show a row of which `key` is chosen. Arrays are (keys,); `labels` has a text for each key."""
        self._columns = (raw, scores, weights)
        # a masked score may be of any size: it does not set the scale
        open_scores = scores[~masked]
        self._spans = (_span(raw), _span(open_scores), _span(weights))
        self._masked, self._labels, self._current = masked, labels, key
        self._choose_lines()

    def set_headings(self, headings: Sequence[str]) -> None:
        """What the three columns hold; `HEADINGS` at first."""
        if tuple(headings) != tuple(self._headings):
            self._headings = headings
            self.update()

    def set_all(self, everything: bool) -> None:
        """Give every key a line, however many there are."""
        if everything != self._all:
            self._all = everything
            self._choose_lines()

    @property
    def keys(self) -> int:
        return len(self._masked)

    @property
    def shown(self) -> list[int]:
        """The keys that have a line, from above."""
        return [int(key) for key in self._shown]

    @property
    def selected(self) -> int:
        return self._current

    def key_rect(self, key: int) -> QRectF:
        """The line of a key; empty where it has none."""
        place = int(np.searchsorted(self._shown, key))
        if place >= len(self._shown) or self._shown[place] != key:
            return QRectF()
        return QRectF(0, (place + 1) * self._line(), self.width(), self._line())

    def _choose_lines(self) -> None:
        lines = len(self._shown)
        if self._all or self.keys <= FEW:
            self._shown = np.arange(self.keys)
        else:
            first = np.clip(np.arange(self._current - 1, self._current + 2), 0, self.keys - 1)
            wanted = self._columns[2].astype(float)
            wanted[first] = np.inf  # always the same number of lines, so that the height stays
            self._shown = np.sort(np.argsort(-wanted, kind="stable")[:FEW])
        if self._hover >= 0 and self.key_rect(self._hover).isEmpty():
            self._hover = -1
        if len(self._shown) != lines:
            self.updateGeometry()
        self.update()

    # geometry

    def sizeHint(self) -> QSize:
        return QSize(400, round((len(self._shown) + 1) * self._line()) + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(240, self.sizeHint().height())

    def _line(self) -> float:
        return float(round(QFontMetricsF(self.font()).height() + 6))

    def _label_width(self) -> float:
        return QFontMetricsF(self.font()).averageCharWidth() * (9 if self.keys <= FEW else 12) + _PAD

    def column_rect(self, column: int) -> QRectF:
        """The horizontal place of column 0 to 2, over the whole height."""
        left = self._label_width() + _PAD
        width = (self.width() - left) / len(HEADINGS)
        return QRectF(left + column * width, 0, width - _PAD, self.height())

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        line = self._line()
        if event.rect().top() < line:
            self._draw_headings(painter, line)
        first = max(0, int(event.rect().top() / line) - 1)
        last = min(len(self._shown), int(event.rect().bottom() / line) + 1)
        for place in range(first, last):
            self._draw_key(painter, int(self._shown[place]), QRectF(0, (place + 1) * line, self.width(), line))
            if place and self._shown[place] != self._shown[place - 1] + 1:
                painter.setPen(QPen(QColor(self._theme.border_strong), 1, Qt.PenStyle.DotLine))
                y = round((place + 1) * line)
                painter.drawLine(0, y, self.width(), y)
        self._draw_focus_ring(painter)

    def _draw_headings(self, painter: QPainter, line: float) -> None:
        painter.setFont(self.font())
        painter.setPen(QColor(self._theme.text_dim))
        right = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        painter.drawText(QRectF(0, 0, self._label_width(), line), right, "key")
        for column, heading in enumerate(self._headings):
            place = self.column_rect(column)
            rect = QRectF(place.left(), 0, place.width(), line)
            text = QFontMetricsF(self.font()).elidedText(heading, Qt.TextElideMode.ElideRight, rect.width())
            painter.drawText(rect, right, text)

    def _draw_key(self, painter: QPainter, key: int, rect: QRectF) -> None:
        theme, chosen = self._theme, key == self._current
        if chosen or key == self._hover:
            painter.fillRect(rect, QColor(theme.surface_hover))
        if chosen:
            painter.fillRect(QRectF(rect.left(), rect.top(), 3, rect.height()), QColor(theme.key))
        masked = bool(self._masked[key])
        font = self.bold_font() if chosen else self.font()
        painter.setFont(font)
        painter.setPen(QColor(theme.key if chosen else theme.text_dim if masked else theme.text))
        label = QRectF(rect.left() + 6, rect.top(), self._label_width() - 6, rect.height())
        metrics = QFontMetricsF(font)
        number = metrics.horizontalAdvance(f"{key} ") if self.keys > FEW else 0.0
        text = metrics.elidedText(self._labels[key], Qt.TextElideMode.ElideRight, label.width() - number)
        painter.drawText(label, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, text)
        painter.setFont(self.font())
        if self.keys > FEW:  # then the same word may come many times
            painter.setPen(QColor(theme.text_dim))
            painter.drawText(label, Qt.AlignmentFlag.AlignVCenter, str(key))
        for column in range(len(HEADINGS)):
            place = self.column_rect(column)
            cell = QRectF(place.left(), rect.top() + 3, place.width(), rect.height() - 6)
            self._draw_value(painter, column, key, cell, masked)

    def _draw_value(self, painter: QPainter, column: int, key: int, cell: QRectF, masked: bool) -> None:
        theme, value, (low, high) = self._theme, float(self._columns[column][key]), self._spans[column]
        if masked and column:
            painter.fillRect(cell, QBrush(QColor(theme.hatch), Qt.BrushStyle.BDiagPattern))
        elif high > low:
            colour = QColor(theme.key if column == 2 else theme.border_strong)
            colour.setAlphaF(_TINT / 2 if masked else _TINT)
            start, end = sorted(cell.left() + (end - low) / (high - low) * cell.width() for end in (0.0, value))
            painter.fillRect(QRectF(start, cell.top(), max(1.0, end - start), cell.height()), colour)
        text = "masked" if masked and column == 1 else "0" if masked and column == 2 else value_text(value)
        painter.setPen(QColor(theme.text_dim if masked else theme.text))
        painter.drawText(cell.adjusted(0, 0, -3, 0), Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, text)

    # pointer and keyboard

    def item_count(self) -> int:
        return self.keys

    def item_rect(self, item: int) -> QRectF:
        return self.key_rect(item)

    def _item_at(self, position: QPointF) -> int:
        place = int(position.y() // self._line()) - 1
        inside = 0 <= place < len(self._shown) and 0 <= position.x() < self.width()
        return int(self._shown[place]) if inside else -1

    def set_hover(self, item: int) -> None:
        """Highlight a key that is pointed at elsewhere, if it has a line."""
        super().set_hover(-1 if self.key_rect(item).isEmpty() else item)

    def _choose(self, item: int) -> None:
        self.key_selected.emit(item)


def _span(values: np.ndarray) -> tuple[float, float]:
    """What a column's bars reach from and to: 0 is always within."""
    return float(values.min(initial=0.0)), float(values.max(initial=0.0))
