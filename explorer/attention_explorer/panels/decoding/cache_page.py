"""Keys and values: what is stored, what this step reused and computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.panels.decoding.situation import column, count, say
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.themed import ThemedWidget
from attention_models.files.memory import in_bytes
from attention_models.protocol.decoding import DecodeStepView

# The key/value cache, a bar a layer: what earlier steps had left, and what this step added.


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


class CachePage(QWidget):
    """Keys and values that are kept, so that each step computes those of one token only."""

    def __init__(self) -> None:
        super().__init__()
        self.bars = CacheView()
        self.words = wrapped()
        self.sharing = wrapped(role="dim")
        column(self, self.words, self.bars, self.sharing)

    def show_step(self, view: DecodeStepView | None, silent: bool = False) -> None:
        """Show what is kept after a step; a `silent` model takes none."""
        self.bars.set_empty_text("" if silent else _empty_text(view))
        layers = view.cache if view is not None else ()
        several = len({layer.stack for layer in layers}) > 1
        self.bars.set_bars(
            [
                CacheBar(
                    label=f"{'Source, layer' if layer.stack == 'cross' else 'Layer'} {layer.layer}"
                    if several
                    else f"Layer {layer.layer}",
                    reused=layer.reused,
                    computed=layer.computed,
                    stored=layer.stored,
                    text=in_bytes(layer.bytes),
                    heads=layer.heads,
                    key_heads=layer.key_heads,
                )
                for layer in layers
            ]
        )
        say(self.words, cache_text(view) if view is not None else "")
        say(self.sharing, sharing_text(view) if view is not None else "")


def _empty_text(view: DecodeStepView | None) -> str:
    if view is None:
        return "Press Step: what the model keeps for the next step appears here."
    if view.prevents_caching is not None:
        return "Nothing is kept: under this mask each token that is written changes what was computed of the others."
    if view.place is not None:
        return "A masked model keeps nothing: each word that comes in changes every other."
    if view.cache_bytes:
        return "No keys and values: a recurrent model goes on from its state, and from what its encoder has read."
    return "Nothing is kept: this model reads the whole text again at each step."


def cache_text(view: DecodeStepView) -> str:
    if not view.cache:
        return f"{in_bytes(view.cache_bytes)} are kept for the next step." if view.cache_bytes else ""
    own = [layer for layer in view.cache if layer.stack != "cross"] or list(view.cache)
    first, layers = own[0], count(len(own), "layer")
    several = f", of {first.texts} texts side by side" if first.texts > 1 else ""
    stored = f"{in_bytes(view.cache_bytes)} of keys and values are stored{several}. This step "
    reused = Counter(layer.reused for layer in own)
    if len(reused) == 1:
        said = f"reused those of {count(first.reused, 'token')} and computed those of"
        words = f"{stored}{said} {count(first.computed, 'token')}, in each of {layers}."
    else:
        most, *fewer = sorted(reused.items(), reverse=True)
        parts = [f"{count(most[0], 'token')} in {count(most[1], 'layer')}"]
        parts += [f"of {tokens:,} in {many}" for tokens, many in fewer]
        said = f"computed those of {count(first.computed, 'token')} and reused those of"
        words = f"{stored}{said} {', '.join(parts[:-1])} and {parts[-1]}."
    forgetful = min(own, key=lambda layer: layer.stored)
    if forgetful.stored < forgetful.reused + forgetful.computed:
        words += f" A layer that looks through a sliding window keeps the last {forgetful.stored:,}."
    return words


def sharing_text(view: DecodeStepView) -> str:
    """How many query heads read one stored head."""
    if not view.cache:
        return ""
    layer = view.cache[0]
    if layer.heads == layer.key_heads:
        return (
            f"Blue: reused, orange: computed now. Each of the {layer.heads} query heads has keys and values of its own."
        )
    return (
        f"Blue: reused, orange: computed now. {layer.heads} query heads share {count(layer.key_heads, 'stored head')} "
        f"(squares that touch): the cache is {layer.heads / layer.key_heads:g} times smaller."
    )
