"""The key/value cache, a bar a layer: what earlier steps had left, and what this step added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.widgets.themed import ThemedWidget

_PAD = 8.0
_MOST_HEADS = 32  # squares drawn; more are told in numbers only
_SQUARE = 9.0


@dataclass(frozen=True)
class CacheBar:
    label: str
    reused: int  # tokens
    computed: int  # tokens
    stored: int  # tokens: a sliding window keeps fewer than it reused and computed
    text: str  # bytes, at the right end
    heads: int
    key_heads: int


class CacheView(ThemedWidget):
    """Of the stored tokens, reused ones in the key colour, computed ones in the query colour.

    One cell a token where there is room.

    Before each bar a square a query head; squares that touch read the same stored keys and values.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Key/value cache", parent)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._bars: tuple[CacheBar, ...] = ()

    def set_bars(self, bars: Sequence[CacheBar]) -> None:
        self._bars = tuple(bars)
        self.setAccessibleDescription(
            "; ".join(f"{bar.label}: {bar.reused} reused, {bar.computed} computed, {bar.text}" for bar in bars)
        )
        self._look_changed()

    @property
    def bars(self) -> tuple[CacheBar, ...]:
        return self._bars

    def _row_height(self) -> float:
        return QFontMetricsF(self.font()).height() + 10

    def sizeHint(self) -> QSize:
        return QSize(360, round(max(2, len(self._bars)) * self._row_height()))

    def minimumSizeHint(self) -> QSize:
        return QSize(240, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self._bars:
            self._draw_empty_text(painter)
            return
        metrics = QFontMetricsF(self.font())
        label = max(metrics.horizontalAdvance(bar.label) for bar in self._bars)
        text = max(metrics.horizontalAdvance(bar.text) for bar in self._bars)
        heads = max(_heads_width(bar) for bar in self._bars)
        most = max(bar.stored for bar in self._bars)
        for index, bar in enumerate(self._bars):
            rect = QRectF(0, index * self._row_height(), self.width(), self._row_height())
            painter.setPen(QColor(self._theme.text_dim))
            painter.drawText(rect.adjusted(_PAD, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, bar.label)
            flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
            painter.drawText(rect.adjusted(0, 0, -_PAD, 0), flags, bar.text)
            self._draw_heads(painter, bar, label + 2 * _PAD, rect)
            start = label + 2 * _PAD + heads + (_PAD if heads else 0)
            room = QRectF(start, rect.top() + 5, rect.width() - start - text - 2 * _PAD, rect.height() - 10)
            self._draw_tokens(painter, bar, room, most)

    def _draw_heads(self, painter: QPainter, bar: CacheBar, left: float, rect: QRectF) -> None:
        if not _heads_width(bar):
            return
        group = max(1, bar.heads // max(1, bar.key_heads))
        painter.setPen(QPen(QColor(self._theme.surface), 1))
        painter.setBrush(QColor(self._theme.border_strong))
        x = left
        for head in range(bar.heads):
            painter.drawRect(QRectF(x, rect.center().y() - _SQUARE / 2, _SQUARE, _SQUARE))
            x += _SQUARE + (3 if (head + 1) % group == 0 else 0)

    def _draw_tokens(self, painter: QPainter, bar: CacheBar, room: QRectF, most: int) -> None:
        cell = room.width() / max(1, most)
        new = min(bar.computed, bar.stored)
        old = bar.stored - new
        for first, length, colour in ((0, old, self._theme.key), (old, new, self._theme.query)):
            if not length:
                continue
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colour))
            part = QRectF(room.left() + first * cell, room.top(), max(2.0, length * cell), room.height())
            painter.drawRect(part)
            if cell >= 5:
                painter.setPen(QPen(QColor(self._theme.surface), 1))
                for token in range(1, length + 1):
                    x = part.left() + token * cell
                    painter.drawLine(round(x), round(part.top()), round(x), round(part.bottom()))


def _heads_width(bar: CacheBar) -> float:
    return bar.heads * _SQUARE + bar.key_heads * 3 if bar.heads <= _MOST_HEADS else 0.0
