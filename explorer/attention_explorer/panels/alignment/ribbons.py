"""Two sentences side by side, and ribbons between them as wide as the weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFontMetricsF,
    QKeyEvent,
    QLinearGradient,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy

from attention_explorer.look.text_size import solid, wide
from attention_explorer.widgets.labels import elided
from attention_explorer.widgets.themed import ThemedWidget
from attention_explorer.widgets.token_text import ARROW

LEAST_WEIGHT = 0.02  # thinner ribbons are not drawn
_WIDEST_WORD = 0.36  # of the width
_SIDE = 10.0  # between a word's frame and its text
_HEADINGS = ("source", "target")


class Ribbons(ThemedWidget):
    """Source words at the left, target words at the right, one below the other.

    A click chooses a word, Up and Down the target word, with Shift the source word. The pointer over a word leaves only
    that word's ribbons; numbers stand at the other end of the ribbons of the word pointed at, else of the chosen one.
    """

    target_selected = Signal(int)
    source_selected = Signal(int)
    hovered = Signal(int, int)  # target, source; -1 for none

    def __init__(self) -> None:
        super().__init__("Alignment of two sentences")
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._weights: NDArray[np.float32] | None = None  # (targets, sources)
        self._words: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())  # sources, targets
        self._chosen = [-1, -1]  # source, target
        self._hover = [-1, -1]

    # what to show

    def set_alignment(
        self, weights: NDArray[np.float32] | None, sources: Sequence[str], targets: Sequence[str]
    ) -> None:
        """Show (targets, sources) weights between 0 and 1; None shows nothing. Of "El → gato" the first part is dim.

        Raises ValueError where the weights are not one a pair of words.
        """
        if weights is not None and weights.shape != (len(targets), len(sources)):
            raise ValueError(
                f"{len(targets)} target and {len(sources)} source words have no weights of shape {weights.shape}."
            )
        words = (tuple(sources), tuple(targets))
        if words != self._words:
            self._words, self._hover = words, [-1, -1]
            self.updateGeometry()
        self._weights = weights
        self.setAccessibleDescription(self._heard())
        self.update()

    def set_selection(self, target: int, source: int) -> None:
        """Frame a word on each side, -1 for none. Emits nothing."""
        if [source, target] != self._chosen:
            self._chosen = [source, target]
            self.update()

    def set_hover(self, target: int, source: int) -> None:
        """Highlight words that are pointed at elsewhere, -1 for none; emits nothing."""
        within = [
            word if 0 <= word < len(words) else -1 for word, words in zip((source, target), self._words, strict=True)
        ]
        if within != self._hover:
            self._hover = within
            self.update()

    def words(self, side: int) -> tuple[str, ...]:
        """What stands on the source's side (0) or the target's (1)."""
        return self._words[side]

    def ribbons(self) -> list[tuple[int, int]]:
        """(target, source) of every ribbon drawn now, the thinnest first."""
        if self._weights is None:
            return []
        source, target = self._hover
        weights = self._weights
        order = np.argsort(weights, axis=None, kind="stable")
        pairs = zip(*(axis.tolist() for axis in np.unravel_index(order, weights.shape)), strict=True)
        return [(t, s) for t, s in pairs if weights[t, s] >= LEAST_WEIGHT and target in (-1, t) and source in (-1, s)]

    # where things are

    def word_rect(self, side: int, word: int) -> QRectF:
        """The frame of a source (side 0) or target (side 1) word."""
        metrics, room = QFontMetricsF(self.font()), self.width() * _WIDEST_WORD
        width = min(room, metrics.horizontalAdvance(self._words[side][word]) + 2 * _SIDE)
        right = min(room, self._widest(side)) if side == 0 else float(self.width())
        left = right - width if side == 0 else self.width() - min(room, self._widest(1))
        return QRectF(left, self._row_height() * (word + 1) + 2, width, self._row_height() - 4)

    def _row_height(self) -> float:
        return QFontMetricsF(self.font()).height() + 12

    def _widest(self, side: int) -> float:
        metrics = QFontMetricsF(self.font())
        words = (*self._words[side], _HEADINGS[side])
        return max(metrics.horizontalAdvance(word) for word in words) + 2 * _SIDE

    def sizeHint(self) -> QSize:
        rows = max(len(words) for words in self._words) + 1
        return QSize(380, round(rows * self._row_height()) + 2 if self._words[0] else 120)

    def minimumSizeHint(self) -> QSize:
        return QSize(220, self.sizeHint().height())

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._weights is None:
            self._draw_empty_text(painter)
        else:
            exposed = QRectF(event.rect())
            self._draw_headings(painter)
            for target, source in self.ribbons():
                self._draw_ribbon(painter, target, source, exposed)
            for side in (0, 1):
                for word in range(len(self._words[side])):
                    if self.word_rect(side, word).adjusted(-4, -4, 4, 4).intersects(exposed):
                        self._draw_word(painter, side, word)
            self._draw_numbers(painter)
        self._draw_focus_ring(painter)

    def _accents(self) -> tuple[str, str]:
        return self._theme.key, self._theme.query

    def _draw_headings(self, painter: QPainter) -> None:
        painter.setPen(QColor(self._theme.text_dim))
        room = self.width() * _WIDEST_WORD
        height = self._row_height()
        left = QRectF(0, 0, min(room, self._widest(0)) - _SIDE, height)
        start = self.width() - min(room, self._widest(1)) + _SIDE
        painter.drawText(left, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, _HEADINGS[0])
        painter.drawText(
            QRectF(start, 0, self.width() - start, height),
            Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter,
            _HEADINGS[1],
        )

    def _draw_ribbon(self, painter: QPainter, target: int, source: int, exposed: QRectF) -> None:
        assert self._weights is not None
        weight = min(1.0, float(self._weights[target, source]))
        start, end = self.word_rect(0, source), self.word_rect(1, target)
        first = QPointF(start.right(), start.center().y())
        last = QPointF(end.left(), end.center().y())
        path = QPainterPath(first)
        middle = (first.x() + last.x()) / 2
        path.cubicTo(QPointF(middle, first.y()), QPointF(middle, last.y()), last)
        width = max(wide(0.8), weight * start.height())
        if not path.controlPointRect().adjusted(-width, -width, width, width).intersects(exposed):
            return
        gradient = QLinearGradient(first, last)
        for at, accent in zip((0.0, 1.0), self._accents(), strict=True):
            colour = QColor(accent)
            colour.setAlphaF(solid(0.10 + 0.68 * weight))
            gradient.setColorAt(at, colour)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QBrush(gradient), width, c=Qt.PenCapStyle.FlatCap))
        painter.drawPath(path)

    def _draw_word(self, painter: QPainter, side: int, word: int) -> None:
        theme, rect, text = self._theme, self.word_rect(side, word), self._words[side][word]
        chosen, under = word == self._chosen[side], word == self._hover[side]
        width = 2.0 if chosen else 1.0
        frame = self._accents()[side] if chosen else theme.border_strong if under else theme.border
        painter.setPen(QPen(QColor(frame), wide(width)))
        painter.setBrush(QColor(theme.surface_hover if under else theme.surface_alt))
        painter.drawRoundedRect(rect.adjusted(width / 2, width / 2, -width / 2, -width / 2), 6, 6)
        room = rect.width() - 2 * _SIDE + 1
        metrics = QFontMetricsF(self.font())
        read, arrow, wrote = elided(metrics, text, room).partition(ARROW)
        if not arrow:
            painter.setPen(QColor(theme.text))
            painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, read)
            return
        lead = metrics.horizontalAdvance(read + arrow)
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # the arrow's, whatever the script of the words
        line = rect.adjusted(_SIDE, 0, 0, 0)
        painter.setPen(QColor(theme.text_dim))  # what went in; the ribbons are of what it wrote
        painter.drawText(line, Qt.AlignmentFlag.AlignVCenter, read + arrow)
        painter.setPen(QColor(theme.text))
        painter.drawText(line.adjusted(lead, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, wrote)

    def _draw_numbers(self, painter: QPainter) -> None:
        """The weights of one word, each at the far end of its ribbon."""
        assert self._weights is not None
        source, target = self._hover if self._hover != [-1, -1] else (-1, self._chosen[1])
        if not -1 < target < len(self._words[1]) and source < 0:
            return
        side = 0 if target >= 0 else 1  # of the numbers
        row = self._weights[target] if side == 0 else self._weights[:, source]
        for word, weight in enumerate(row):
            if weight < LEAST_WEIGHT or (side == 0 and source not in (-1, word)):
                continue
            self._draw_number(painter, self.word_rect(side, word), side, f"{weight:.2f}")

    def _draw_number(self, painter: QPainter, word: QRectF, side: int, text: str) -> None:
        width = QFontMetricsF(self.font()).horizontalAdvance(text) + 8
        left = word.right() + 4 if side == 0 else word.left() - 4 - width
        rect = QRectF(left, word.top() + 3, width, word.height() - 6)
        behind = QColor(self._theme.surface)
        behind.setAlphaF(0.85)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(behind)
        painter.drawRoundedRect(rect, 4, 4)
        painter.setPen(QColor(self._theme.text))
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, text)

    def _heard(self) -> str:
        """For a screen reader: each target word with the source word of its largest weight."""
        if self._weights is None or not self._words[0]:
            return ""
        best = self._weights.argmax(axis=1)
        sources, targets = self._words
        return ", ".join(f"{targets[t]} from {sources[s]} {self._weights[t, s]:.2f}" for t, s in enumerate(best))

    # pointer and keyboard

    def _word_at(self, position: QPointF) -> tuple[int, int]:
        """(source, target) under a position, -1 where there is none."""
        if self._weights is None:
            return -1, -1
        word = int(position.y() // self._row_height()) - 1
        found = [-1, -1]
        for side in (0, 1):
            if 0 <= word < len(self._words[side]) and self.word_rect(side, word).contains(position):
                found[side] = word
        return found[0], found[1]

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._point_at(*self._word_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._point_at(-1, -1)

    def _point_at(self, source: int, target: int) -> None:
        if [source, target] != self._hover:
            self.set_hover(target, source)
            self.hovered.emit(target, source)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        source, target = self._word_at(event.position())
        if event.button() != Qt.MouseButton.LeftButton or (source < 0 and target < 0):
            event.ignore()
        elif target >= 0:
            self._choose(1, target)
        else:
            self._choose(0, source)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        by = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()))
        side = 0 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1
        if by is None or not self._words[side]:
            event.ignore()
            return
        word = max(0, min(len(self._words[side]) - 1, self._chosen[side] + by))
        self._choose(side, word)
        self._keep_visible(self.word_rect(side, word))

    def _choose(self, side: int, word: int) -> None:
        if word != self._chosen[side]:
            self._chosen[side] = word
            self.update()
            (self.source_selected, self.target_selected)[side].emit(word)
