"""The sentence about one cell in the strip below the map: its pieces, and how they are made to fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter

from attention_explorer.look.theme import Theme
from attention_explorer.widgets.heat_map.frame import Frame
from attention_explorer.widgets.number_text import value_text

_NARROWEST = 16.0  # pixels of a piece that is cut: room for its dots
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignAbsolute

Role = Literal["query", "key", "text", "text_dim"]


class Piece(NamedTuple):
    """A part of the sentence, in the theme's colour for its role."""

    text: str
    role: Role


_LOOKS_AT = Piece(" looks at ", "text_dim")
_TO = Piece(" → ", "text_dim")
"""The same, where words would be cut for it."""


@dataclass(frozen=True)
class Wording:
    """What a readout calls the cell's tokens and its value."""

    query: str
    key: str
    value_name: str = ""  # "" for a weight
    note: str = ""  # of the cell, before its value
    absent_name: str = ""  # what is said of a cell without a value, where there is more to say than that
    is_brief: bool = False  # for a narrow map, beside which it is said what a square stands for


def cell_pieces(words: Wording, value: float | None) -> list[Piece]:
    """What is said of a cell whose value is known; None is a masked one."""
    query, key = Piece(f"“{words.query}”", "query"), Piece(f"“{words.key}”", "key")
    if value is None:
        return [query, Piece(" cannot look at ", "text_dim"), key, Piece(": masked", "text")]
    if math.isnan(value) and words.absent_name:
        return [query, Piece(" and ", "text_dim"), key, Piece(f": {words.absent_name}", "text")]
    # never cut: without its name a difference reads as a weight
    said = f"{words.value_name} {value_text(value)}".lstrip()
    return [query, _LOOKS_AT, key, Piece(f"{words.note}: ", "text_dim"), Piece(said, "text")]


def square_pieces(words: Wording, value: float | None, side: int, pooled: str) -> list[Piece]:
    """What is said of a square of `side` x `side` cells about one of them, `pooled` as named; None: all are masked."""
    around = [Piece("around ", "text_dim")]  # in pieces, since a long one is cut in its middle
    if not words.is_brief:
        around.insert(0, Piece(f"{side} × {side} ", "text_dim"))
    cell = [
        Piece(f"“{words.query}”", "query"),
        Piece(", ", "text_dim"),
        Piece(f"“{words.key}”", "key"),
        Piece(": ", "text_dim"),
    ]
    if value is None:
        return [*around, *cell, Piece("all masked", "text")]
    of = [] if words.is_brief else [Piece(f"{pooled} of ", "text_dim")]
    return [*of, *around, *cell, Piece(value_text(value), "text")]


def draw_readout(painter: QPainter, theme: Theme, frame: Frame, pieces: Sequence[Piece], hint: str) -> None:
    """The sentence, each piece in the colour of its role; `hint`, what the pointer can do, where there is room."""
    painter.save()
    strip = frame.strip
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(theme.surface_alt))
    painter.drawRoundedRect(strip, 6, 6)
    painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # the sentence, whatever the script of its tokens
    painter.setFont(frame.bold)
    metrics = QFontMetricsF(frame.bold)
    x, room = strip.left() + 10, strip.width() - 20
    widths = [metrics.horizontalAdvance(piece.text) for piece in pieces]
    if sum(widths) > room:
        pieces = [_TO if piece == _LOOKS_AT else piece for piece in pieces]
        widths = [metrics.horizontalAdvance(piece.text) for piece in pieces]
    limits = piece_limits(widths, [piece.role == "text_dim" for piece in pieces], room)
    for piece, limit in zip(pieces, limits, strict=True):
        shown = metrics.elidedText(piece.text, Qt.TextElideMode.ElideMiddle, limit)
        width = metrics.horizontalAdvance(shown)
        painter.setPen(QColor(getattr(theme, piece.role)))
        painter.drawText(QRectF(x, strip.top(), width + 2, strip.height()), Qt.AlignmentFlag.AlignVCenter, shown)
        x += width
    painter.setFont(frame.font)
    hint_width = QFontMetricsF(frame.font).horizontalAdvance(hint) + 10
    if strip.right() - x > hint_width + 16:
        painter.setPen(QColor(theme.text_dim))
        painter.drawText(strip.adjusted(0, 0, -10, 0), _RIGHT, hint)
    painter.restore()


def piece_limits(widths: list[float], minor: list[bool], room: float) -> list[float]:
    """How wide each piece of a readout may be so that all fit.

    The longest are cut, those that are `minor` first, and the last, a value, never.
    """
    limits = list(widths)
    for cut in (True, False):
        these = [i for i, is_minor in enumerate(minor[:-1]) if is_minor is cut]
        left = room - sum(limits) + sum(limits[i] for i in these)
        low, high = _NARROWEST if cut else 0.0, max((limits[i] for i in these), default=0.0)
        if sum(limits[i] for i in these) <= left:
            continue
        for _ in range(20):  # to a thousandth of a pixel
            middle = (low + high) / 2
            fits = sum(min(limits[i], middle) for i in these) <= left
            low, high = (middle, high) if fits else (low, middle)
        for i in these:
            limits[i] = min(limits[i], low)
    return [limit + 1 for limit in limits]
