"""Lines of chips as pictures, drawn once: a ground for each chip, and apart from it what the chip says."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen, QPixmap

from attention_explorer.look.theme import Theme
from attention_explorer.panels.input.turn_mark import draw_turn_line, turn_ground

ChipRole = Literal["", "ok", "warning", "error", "key", "query"]

SIDE = 10.0
"""Pixels between a chip's frame and its text."""

CORNER = 6.0
"""Radius of a chip's corners."""

_MOST_LINES = 48  # kept: more than a screen has


@dataclass(frozen=True)
class Chip:
    """One token: what it says, what its tooltip adds, and a theme colour for a line along its foot.

    `turn` is the role of who said it, in a conversation; `tag` is what the model calls it, one that labels tokens.
    """

    label: str
    tooltip: str = ""
    special: bool = False
    role: ChipRole = ""
    turn: str = ""
    tag: str = ""

    @property
    def words(self) -> str:
        """All that it says."""
        return f"{self.label}  {self.tag}" if self.tag else self.label


@dataclass(frozen=True)
class ChipLook:
    """What the pictures of chips depend on beside their tokens and places."""

    theme: Theme
    font: QFont
    dims_special: bool
    ratio: float  # device pixels a logical one
    side: float = SIDE


class LinePicture(NamedTuple):
    """A line of chips; both pictures are drawn at `corner`."""

    corner: QPointF
    grounds: QPixmap
    labels: QPixmap


class ChipPictures:
    """Keeps the pictures of the lines that were shown last. What lies between both layers is up to the strip."""

    def __init__(self) -> None:
        self._lines: OrderedDict[int, LinePicture] = OrderedDict()
        self._look: ChipLook | None = None

    def forget(self) -> None:
        """Tokens or places are others now."""
        self._lines.clear()

    def line(self, number: int, chips: Sequence[tuple[Chip, QRectF]], look: ChipLook) -> LinePicture:
        """The picture of line `number`, which holds `chips` at these places; drawn where it is not kept."""
        if look != self._look:
            self._look = look
            self._lines.clear()
        picture = self._lines.get(number)
        if picture is None:
            picture = self._lines[number] = self._draw(chips, look)
            while len(self._lines) > _MOST_LINES:
                self._lines.popitem(last=False)
        self._lines.move_to_end(number)
        return picture

    def _draw(self, chips: Sequence[tuple[Chip, QRectF]], look: ChipLook) -> LinePicture:
        left, top = chips[0][1].left(), chips[0][1].top()
        right, bottom = chips[-1][1].right(), chips[-1][1].bottom()
        # on whole device pixels, so that a picture looks as if it were drawn in place
        corner = QPointF(math.floor(left * look.ratio) / look.ratio, math.floor(top * look.ratio) / look.ratio)
        size = QSize(
            math.ceil((right - corner.x()) * look.ratio) + 1, math.ceil((bottom - corner.y()) * look.ratio) + 1
        )
        return LinePicture(
            corner, _layer(size, corner, chips, look, draw_ground), _layer(size, corner, chips, look, draw_label)
        )


def _layer(
    size: QSize,
    corner: QPointF,
    chips: Sequence[tuple[Chip, QRectF]],
    look: ChipLook,
    draw: Callable[[QPainter, Chip, QRectF, ChipLook], None],
) -> QPixmap:
    pixmap = QPixmap(size)
    pixmap.setDevicePixelRatio(look.ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.translate(-corner)
    for chip, rect in chips:
        draw(painter, chip, rect, look)
    painter.end()
    return pixmap


def draw_ground(painter: QPainter, chip: Chip, rect: QRectF, look: ChipLook, hovered: bool = False) -> None:
    """A chip without its text; one that is pointed at is lit up."""
    theme = look.theme
    frame = QPen(QColor(theme.border_strong if hovered else theme.border), 1.0)
    painter.setPen(frame)
    painter.setBrush(QColor(theme.surface_hover if hovered else theme.surface_alt))
    inner = rect.adjusted(0.5, 0.5, -0.5, -0.5)
    painter.drawRoundedRect(inner, CORNER, CORNER)
    if chip.turn:
        painter.setBrush(turn_ground(theme, chip.turn))
        painter.drawRoundedRect(inner, CORNER, CORNER)
        draw_turn_line(painter, theme, chip.turn, rect.left() + 6, rect.right() - 6, rect.bottom() - 4)


def draw_label(painter: QPainter, chip: Chip, rect: QRectF, look: ChipLook) -> None:
    """What a chip says, as much of it as fits, and the line along its foot."""
    theme = look.theme
    if chip.role:
        painter.setPen(QPen(QColor(getattr(theme, chip.role)), 2.0))
        painter.drawLine(QPointF(rect.left() + 7, rect.bottom() - 4), QPointF(rect.right() - 7, rect.bottom() - 4))
    painter.setPen(QColor(theme.text_dim if chip.special and look.dims_special else theme.text))
    painter.setFont(look.font)
    room = rect.width() - 2 * look.side + 1
    metrics = QFontMetricsF(look.font)
    text = metrics.elidedText(chip.words, Qt.TextElideMode.ElideRight, room)
    if not chip.tag or text != chip.words:
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, text)
        return
    start = rect.center().x() - metrics.horizontalAdvance(text) / 2
    painter.drawText(rect.adjusted(start - rect.left(), 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, chip.label)
    painter.setPen(QColor(theme.text_dim))
    start += metrics.horizontalAdvance(f"{chip.label}  ")
    painter.drawText(rect.adjusted(start - rect.left(), 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, chip.tag)
