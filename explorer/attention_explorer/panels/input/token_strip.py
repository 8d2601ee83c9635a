"""A token strip in a scroll area of a bounded height."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, overload

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.look.text_size import line_scale
from attention_explorer.look.theme import Theme
from attention_explorer.panels.input.chip_pictures import (
    CORNER,
    SIDE,
    Chip,
    ChipLook,
    ChipPictures,
    draw_ground,
    draw_label,
)
from attention_explorer.widgets.cell_image import is_of_other_scale
from attention_explorer.widgets.scroll_areas import BoundedArea, scroll_to
from attention_explorer.widgets.themed import ThemedWidget

# Where the chips of a token strip lie, and the paths of the arcs between them. Pure geometry, no widget.
# Every line of chips has a gutter above it. Arcs run in the gutters only, so that they never cross a token's text: an
# arc to another line leaves through its own gutter, follows the nearer margin, and comes back through the other gutter.


_TURN = 9.0  # radius of the turns of an arc between lines


@dataclass(frozen=True)
class Spacing:
    """Distances in logical pixels."""

    gap: float = 6.0  # between chips
    margin: float = 16.0  # left and right of the chips, where arcs pass from line to line
    pad: float = 2.0  # above the first gutter and below the last line
    tall_gutter: float = 46.0  # above a single line
    low_gutter: float = 24.0  # above each of several lines


class ChipRects(Sequence[QRectF]):
    """Where chips lie; a rectangle is made when it is asked for, since of a long text few are seen."""

    def __init__(
        self, left: NDArray[np.float64], top: NDArray[np.float64], width: NDArray[np.float64], height: float
    ) -> None:
        self._left, self._top, self._width, self._height = left, top, width, height  # (chips,) each

    def __len__(self) -> int:
        return len(self._left)

    @overload
    def __getitem__(self, chip: int) -> QRectF: ...

    @overload
    def __getitem__(self, chip: slice) -> list[QRectF]: ...

    def __getitem__(self, chip: int | slice) -> QRectF | list[QRectF]:
        if isinstance(chip, slice):
            return [self[one] for one in range(*chip.indices(len(self)))]
        return QRectF(float(self._left[chip]), float(self._top[chip]), float(self._width[chip]), self._height)


@dataclass(frozen=True)
class StripLayout:
    """Chips placed on lines. Lines are (first chip, one past the last)."""

    chips: ChipRects
    lines: tuple[tuple[int, int], ...]
    line_of: tuple[int, ...]
    gutter: float
    width: float
    height: float
    spacing: Spacing

    def chip_at(self, position: QPointF) -> int:
        """The chip under a position, or -1."""
        for line in self.lines_within(QRectF(position, QSizeF(0, 0))):
            first, end = self.lines[line]
            if self.chips[first].top() <= position.y() <= self.chips[first].bottom():
                hits = (chip for chip in range(first, end) if self.chips[chip].contains(position))
                return next(hits, -1)
        return -1

    def line_rect(self, line: int) -> QRectF:
        """A line with its gutter, over the whole width."""
        chip = self.chips[self.lines[line][0]]
        return QRectF(0, chip.top() - self.gutter, self.width, chip.height() + self.gutter + self.spacing.pad)

    def lines_within(self, area: QRectF) -> range:
        """The lines of which a part lies in `area`, their gutters and frames included."""
        if not self.lines:
            return range(0)
        height = self.gutter + self.chips[0].height()
        first = int((area.top() - 2 * self.spacing.pad) / height) - 1
        return range(max(0, first), min(len(self.lines), int(area.bottom() / height) + 2))

    def neighbour(self, chip: int, lines_down: int) -> int:
        """The chip nearest below (or above) `chip`, or `chip` itself at the first and last line."""
        line = self.line_of[chip] + lines_down
        if not 0 <= line < len(self.lines):
            return chip
        x = self.chips[chip].center().x()
        return min(range(*self.lines[line]), key=lambda other: abs(self.chips[other].center().x() - x))

    def arc(self, source: int, target: int) -> QPainterPath:
        """The path from the top of one chip to the top of another."""
        start, end = _top(self.chips[source]), _top(self.chips[target])
        if source == target:
            return _loop(start, self.gutter)
        if self.line_of[source] == self.line_of[target]:
            return _bow(start, end, self.gutter)
        return self._around(start, end)

    def _around(self, start: QPointF, end: QPointF) -> QPainterPath:
        """Up into the gutter, along it to the nearer margin, along the margin, and the same way back."""
        inset = self.spacing.margin / 2
        by_left = start.x() + end.x() <= 2 * self.width - start.x() - end.x()
        margin = inset if by_left else self.width - inset
        lift = self.gutter * 0.55
        corners = [
            QPointF(start.x(), start.y() - lift),
            QPointF(margin, start.y() - lift),
            QPointF(margin, end.y() - lift),
            QPointF(end.x(), end.y() - lift),
        ]
        return _rounded(start, corners, end)


def flow(widths: Sequence[float], available: float, chip_height: float, spacing: Spacing | None = None) -> StripLayout:
    """Place chips of the given widths on as many lines of `available` pixels as they need."""
    spacing = spacing or Spacing()
    limit = available - 2 * spacing.margin
    spans = _lines(widths, limit, spacing.gap)
    gutter = spacing.tall_gutter if len(spans) <= 1 else spacing.low_gutter
    width = np.clip(np.asarray(widths, dtype=np.float64), 1.0, max(1.0, limit))
    line_of = np.repeat(np.arange(len(spans)), [end - first for first, end in spans])
    reach = np.concatenate([[0.0], np.cumsum(width + spacing.gap)])  # where each would begin on one endless line
    begins = np.array([reach[first] for first, _ in spans])
    top = np.asarray(spacing.pad + gutter + line_of * (gutter + chip_height), np.float64)
    chips = ChipRects(spacing.margin + reach[:-1] - begins[line_of], top, width, chip_height)
    height = flow_height(len(spans), chip_height, spacing)
    return StripLayout(chips, spans, tuple(line_of.tolist()), gutter, available, height, spacing)


def line_count(widths: Sequence[float], available: float, spacing: Spacing) -> int:
    """How many lines `flow` would make, without placing a chip: layouts ask for many widths."""
    return len(_lines(widths, available - 2 * spacing.margin, spacing.gap))


def flow_height(lines: int, chip_height: float, spacing: Spacing) -> float:
    """How high so many lines of chips are."""
    gutter = spacing.tall_gutter if lines <= 1 else spacing.low_gutter
    return 2 * spacing.pad + max(1, lines) * (gutter + chip_height)


def _lines(widths: Sequence[float], limit: float, gap: float) -> tuple[tuple[int, int], ...]:
    """(first chip, one past the last) of each line: as many as fit, but at least one."""
    ends = np.cumsum(np.minimum(np.asarray(widths, dtype=np.float64), limit) + gap)
    spans: list[tuple[int, int]] = []
    first = 0
    while first < len(widths):
        before = float(ends[first - 1]) if first else 0.0
        end = int(np.searchsorted(ends, before + limit + gap + 1e-9, side="right"))
        spans.append((first, max(end, first + 1)))
        first = spans[-1][1]
    return tuple(spans)


def _top(chip: QRectF) -> QPointF:
    return QPointF(chip.center().x(), chip.top())


def _bow(start: QPointF, end: QPointF, gutter: float) -> QPainterPath:
    """Half an ellipse: the farther apart, the higher, up to the top of the gutter."""
    span = abs(end.x() - start.x())
    rise = min(gutter - 3, 8 + span * 0.09)
    box = QRectF(min(start.x(), end.x()), start.y() - rise, span, 2 * rise)
    path = QPainterPath(start)
    leftwards = end.x() < start.x()
    path.arcTo(box, 0 if leftwards else 180, 180 if leftwards else -180)
    return path


def _loop(top: QPointF, gutter: float) -> QPainterPath:
    """A token that attends to itself."""
    size = min(14.0, gutter - 6)
    path = QPainterPath(QPointF(top.x() + size * 0.35, top.y()))
    path.cubicTo(
        QPointF(top.x() + size, top.y() - size * 1.4),
        QPointF(top.x() - size, top.y() - size * 1.4),
        QPointF(top.x() - size * 0.35, top.y()),
    )
    return path


def _rounded(start: QPointF, corners: list[QPointF], end: QPointF) -> QPainterPath:
    """Straight runs between the corners, each corner turned with a curve."""
    path = QPainterPath(start)
    stops = [start, *corners, end]
    for before, corner, after in zip(stops, stops[1:], stops[2:], strict=False):
        path.lineTo(_toward(corner, before))
        path.quadTo(corner, _toward(corner, after))
    path.lineTo(end)
    return path


def _toward(corner: QPointF, other: QPointF) -> QPointF:
    """The point on the way from a corner to another, a turn's radius (or half the way) off."""
    dx, dy = other.x() - corner.x(), other.y() - corner.y()
    length = max((dx * dx + dy * dy) ** 0.5, 1e-6)
    part = min(_TURN / length, 0.5)
    return QPointF(corner.x() + dx * part, corner.y() + dy * part)


LEAST_WEIGHT = 0.01  # arcs below this weight are not drawn
Selects = Literal["both", "query", "key"]

Room = Literal["tall", "low", "none"]

_SPACINGS: dict[Room, Spacing] = {
    "tall": Spacing(),
    "low": Spacing(tall_gutter=Spacing.low_gutter),
    "none": Spacing(tall_gutter=4.0, low_gutter=4.0),
}
_FROM_AFAR = 1.2
"""How much wider than all other lines arcs are that the last row is to see."""
_CLOSE, _CLOSE_SIDE = 4.0, 5.0  # between chips, and beside their text, where text is large
_CLOSEST_SIDE, _CLOSE_MARGIN = 3.0, 4.0  # where there are no arcs either: two texts stand in one line
_GUTTER = 14.0  # for arcs, where text is large: so many pixels for each time that lines are as wide

_WIDEST_CHIP = 220.0
_NARROWEST_CHIP = 24.0
_DARKEST = 0.48  # of a shade: the text upon it stays legible


class TokenStrip(ThemedWidget):
    """Chips that wrap over lines, in a height that follows the width.

    Click or Left and Right choose the query; Shift+click, right click or Shift+Left and Shift+Right choose the key.
    """

    token_selected = Signal(int)  # the query
    key_selected = Signal(int)
    hovered = Signal(int)  # the token under the pointer; -1 when it leaves
    look_changed = Signal()  # theme, font or screen: the height it needs may be another one

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Tokens", parent)
        self.setAccessibleDescription("Left and Right choose the query, with Shift the key.")
        self.setMouseTracking(True)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.note_of: Callable[[int], str] = lambda token: ""
        """What a token's tooltip adds."""
        self._tokens: tuple[Chip, ...] = ()
        self._query, self._key, self._hover = -1, -1, -1
        self._weights: NDArray[np.float32] | None = None  # (tokens,)
        self._source = -1
        self._shades: NDArray[np.float32] | None = None  # (tokens,)
        self._selects: Selects = "both"
        self._room: Room = "tall"
        self._dims_special = True
        self._widths: list[float] | None = None
        self._layout: StripLayout | None = None
        self._line_counts: dict[int, int] = {}  # by width: a layout asks for the same few again and again
        self._arcs: list[tuple[int, QPainterPath]] | None = None
        self._pictures = ChipPictures()
        self._from_afar = False

    @property
    def count(self) -> int:
        """How many tokens are shown."""
        return len(self._tokens)

    @property
    def chips(self) -> tuple[Chip, ...]:
        """What is shown."""
        return self._tokens

    # what to show

    def set_tokens(self, tokens: Sequence[Chip]) -> None:
        """Show these tokens; arcs belong to the tokens they were given for and go."""
        if tuple(tokens) == self._tokens:
            return
        self._tokens = tuple(tokens)
        self._query, self._key = self._within(self._query), self._within(self._key)
        self._hover = self._within(self._hover)
        self._weights, self._source, self._shades = None, -1, None
        self._widths = None
        self._line_counts = {}
        self._drop_layout()

    def set_room(self, room: Room) -> bool:
        """How much room arcs have above the chips; whether that is new.

        "low" gives a single line of chips no more than each of several lines has, "none" is for a strip without arcs.
        """
        if room == self._room:
            return False
        self._room = room
        self._widths = None
        self._line_counts = {}
        self._drop_layout()
        return True

    def set_selects(self, selects: Selects) -> None:
        """What may be chosen here: one of two texts may hold all the queries, the other all the keys."""
        self._selects = selects

    def set_selection(self, query: int, key: int) -> None:
        """Frame the query and the key in their accents; -1 for none. Emits nothing."""
        query, key = self._within(query), self._within(key)
        if (query, key) != (self._query, self._key):
            touched = {self._query, self._key, query, key}
            self._query, self._key = query, key
            for chip in touched:
                self._update_chip(chip)

    def set_hover(self, token: int) -> None:
        """Light up a token pointed at elsewhere; -1 for none. Emits nothing."""
        token = self._within(token)
        if token != self._hover:
            old, self._hover = self._hover, token
            self._update_chip(old)
            self._update_chip(token)

    def set_shades(self, weights: NDArray[np.float32] | None) -> None:
        """Fill each chip in the key's accent by its weight, (tokens,) between 0 and 1; None fills none.

        For weights from a token of another strip. Raises ValueError when there is not one weight a token.
        """
        if weights is not None and weights.shape != (len(self._tokens),):
            raise ValueError(f"There are {len(self._tokens)} tokens, the weights have shape {weights.shape}.")
        self._shades = weights
        self.update()

    def set_arcs(self, weights: NDArray[np.float32] | None, source: int) -> None:
        """Draw an arc from `source` to every token, (tokens,) weights between 0 and 1; None draws none.

        Raises ValueError when there is not one weight a token.
        """
        if weights is not None and weights.shape != (len(self._tokens),):
            raise ValueError(f"There are {len(self._tokens)} tokens, the weights have shape {weights.shape}.")
        self._weights, self._source = weights, self._within(source)
        self._arcs = None
        self.update()

    def set_from_afar(self, from_afar: bool) -> None:
        """Draw arcs, and the frames of the selected tokens, to be seen from the last row; and chips close together."""
        if from_afar != self._from_afar:
            self._from_afar = from_afar
            self._widths = None
            self._line_counts = {}
            self._drop_layout()

    @property
    def is_from_afar(self) -> bool:
        return self._from_afar

    @property
    def _side(self) -> float:
        """Between a chip's frame and its text."""
        if not self._from_afar:
            return SIDE
        return _CLOSEST_SIDE if self._room == "none" else _CLOSE_SIDE

    @property
    def _line_scale(self) -> float:
        return _FROM_AFAR * line_scale() if self._from_afar else 1.0

    @property
    def _spacing(self) -> Spacing:
        if not self._from_afar:
            return _SPACINGS[self._room]
        if self._room == "none":
            gutter = _SPACINGS["none"].low_gutter
            return Spacing(gap=_CLOSE, margin=_CLOSE_MARGIN, tall_gutter=gutter, low_gutter=gutter)
        gutter = _GUTTER * line_scale()
        return Spacing(gap=_CLOSE, tall_gutter=gutter, low_gutter=gutter)

    def set_dim_special(self, dim: bool) -> None:
        """Draw special tokens, and the arcs to them, fainter than the others."""
        if dim != self._dims_special:
            self._dims_special = dim
            self.update()

    # geometry

    def sizeHint(self) -> QSize:
        width = max(self.width(), 480)
        return QSize(width, self.heightForWidth(width))

    def minimumSizeHint(self) -> QSize:
        return QSize(160, self.heightForWidth(max(self.width(), 160)))

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        if self._layout is not None and self._layout.width == width:
            return round(self._layout.height)
        return round(self.height_of(self.lines_for(width)))

    def lines_of(self, chips: int, width: int) -> int:
        """How many lines the first `chips` of them take in a strip of this width."""
        return line_count(self._measured()[:chips], width, self._spacing)

    def lines_for(self, width: int) -> int:
        """How many lines a strip of this width has."""
        if width not in self._line_counts:
            self._line_counts[width] = line_count(self._measured(), width, self._spacing)
        return self._line_counts[width]

    def width_of_line(self) -> float:
        """How wide all chips are in one line."""
        return sum(self._measured()) + self._spacing.gap * len(self._tokens) + 2 * self._spacing.margin

    def height_of(self, lines: int) -> float:
        """How high so many lines are."""
        return flow_height(lines, self._chip_height(), self._spacing)

    def chip_rect(self, token: int) -> QRectF:
        """Where a token's chip lies; an empty rectangle when there is no such token."""
        return self._placed().chips[token] if 0 <= token < len(self._tokens) else QRectF()

    def token_at(self, position: QPointF) -> int:
        """The token under a position, or -1."""
        return self._placed().chip_at(position)

    def _placed(self) -> StripLayout:
        if self._layout is None:
            self._layout = self.flow_for(self.width())
        return self._layout

    def flow_for(self, width: int) -> StripLayout:
        """Where the chips would lie in a strip of this width."""
        if self._layout is not None and self._layout.width == width:
            return self._layout
        return flow(self._measured(), width, self._chip_height(), self._spacing)

    def _measured(self) -> list[float]:
        """The width of each chip."""
        if self._widths is None:
            metrics = QFontMetricsF(self.font())
            # each label once: a long text has far more tokens than words
            words = [token.words for token in self._tokens]
            texts = {said: metrics.horizontalAdvance(said) + 2 * self._side for said in set(words)}
            self._widths = [min(_WIDEST_CHIP, max(_NARROWEST_CHIP, texts[said])) for said in words]
        return self._widths

    def _chip_height(self) -> float:
        return QFontMetricsF(self.font()).height() + 12

    def _drop_layout(self) -> None:
        self._layout = None
        self._pictures.forget()
        self._arcs = None
        self.updateGeometry()
        self.update()

    def _look_changed(self) -> None:
        self._widths = None
        self._line_counts = {}
        self._drop_layout()
        super()._look_changed()
        self.look_changed.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._drop_layout()

    def _within(self, token: int) -> int:
        return token if 0 <= token < len(self._tokens) else -1

    def _update_chip(self, token: int) -> None:
        if token >= 0:
            self.update(self.chip_rect(token).toAlignedRect().adjusted(-4, -4, 4, 4))

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if not self._tokens:
            self._draw_empty_text(painter)
        else:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            exposed = QRectF(event.rect())
            self._draw_arcs(painter, exposed)
            lines = self._placed().lines_within(exposed)
            look = ChipLook(self._theme, self.font(), self._dims_special, self.devicePixelRatioF(), self._side)
            if is_of_other_scale(painter, look.ratio):
                self._draw_anew(painter, exposed, look, [chip for line in lines for chip in self._chips_of(line)])
            else:
                pictures = [self._pictures.line(line, self._chips_of(line), look) for line in lines]
                for picture in pictures:
                    painter.drawPixmap(picture.corner, picture.grounds)
                self._draw_between(painter, exposed, look)
                for picture in pictures:
                    painter.drawPixmap(picture.corner, picture.labels)
        self._draw_focus_ring(painter)

    def _chips_of(self, line: int) -> list[tuple[Chip, QRectF]]:
        layout = self._placed()
        return [(self._tokens[token], layout.chips[token]) for token in range(*layout.lines[line])]

    def _draw_anew(
        self, painter: QPainter, exposed: QRectF, look: ChipLook, chips: Sequence[tuple[Chip, QRectF]]
    ) -> None:
        for chip, rect in chips:
            draw_ground(painter, chip, rect, look)
        self._draw_between(painter, exposed, look)
        for chip, rect in chips:
            draw_label(painter, chip, rect, look)

    def _draw_between(self, painter: QPainter, exposed: QRectF, look: ChipLook) -> None:
        """What lies on the grounds of chips, and below what they say."""
        self._draw_hover(painter, look)
        self._draw_shades(painter, exposed)
        self._draw_frames(painter)

    def _draw_hover(self, painter: QPainter, look: ChipLook) -> None:
        if self._hover >= 0:
            draw_ground(painter, self._tokens[self._hover], self.chip_rect(self._hover), look, hovered=True)

    def _draw_shades(self, painter: QPainter, exposed: QRectF) -> None:
        if self._shades is None:
            return
        painter.setPen(Qt.PenStyle.NoPen)
        shade, layout = QColor(self._theme.key), self._placed()
        for line in layout.lines_within(exposed):
            for token in range(*layout.lines[line]):
                shade.setAlphaF(_DARKEST * min(1.0, float(self._shades[token])) ** 0.7)
                painter.setBrush(shade)
                painter.drawRoundedRect(layout.chips[token].adjusted(1, 1, -1, -1), CORNER - 0.5, CORNER - 0.5)

    def _draw_frames(self, painter: QPainter) -> None:
        """The key in its accent and the query in its own; a token that attends to itself has one inside the other."""
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if self._key >= 0 and self._key != self._query:
            self._draw_frame(painter, self._key, self._theme.key, 2.0, 1.0, CORNER)
        if self._query >= 0:
            self._draw_frame(painter, self._query, self._theme.query, 2.0, 1.0, CORNER)
            if self._key == self._query:
                self._draw_frame(painter, self._query, self._theme.key, 1.5, 3.5, 4.0)

    def _draw_frame(
        self, painter: QPainter, token: int, colour: str, width: float, inset: float, corner: float
    ) -> None:
        painter.setPen(QPen(QColor(colour), width * self._line_scale))
        painter.drawRoundedRect(self.chip_rect(token).adjusted(inset, inset, -inset, -inset), corner, corner)

    def _draw_arcs(self, painter: QPainter, exposed: QRectF) -> None:
        if self._weights is None or self._source < 0:
            return
        if self._arcs is None:
            strong = [int(token) for token in np.argsort(self._weights) if self._weights[token] >= LEAST_WEIGHT]
            self._arcs = [(token, self._placed().arc(self._source, token)) for token in strong]
        painter.save()
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for token, path in self._arcs:
            if path.controlPointRect().adjusted(-3, -3, 3, 3).intersects(exposed):
                weight = min(1.0, float(self._weights[token]))
                width = self._line_scale * (0.8 + 4.2 * weight)
                painter.setPen(QPen(self._arc_colour(token, weight), width, c=Qt.PenCapStyle.FlatCap))
                painter.drawPath(path)
        painter.restore()

    def _arc_colour(self, token: int, weight: float) -> QColor:
        """The fainter, the smaller the weight; from afar faint lines are not seen, and their width says it alone."""
        is_dim = self._dims_special and self._tokens[token].special
        if self._from_afar:
            return QColor(self._theme.text_dim if is_dim else self._theme.query)
        colour = QColor(self._theme.query)
        colour.setAlphaF((0.16 + 0.84 * weight**0.5) * (0.4 if is_dim else 1.0))
        return colour

    # pointer and keyboard

    def mousePressEvent(self, event: QMouseEvent) -> None:
        token = self.token_at(event.position())
        if token < 0:
            event.ignore()
        elif event.button() == Qt.MouseButton.RightButton or (
            event.button() == Qt.MouseButton.LeftButton and event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        ):
            self._choose_key(token)
        elif event.button() == Qt.MouseButton.LeftButton:
            self._choose_query(token)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._point_at(self.token_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._point_at(-1)

    def _point_at(self, token: int) -> None:
        if token != self._hover:
            self.set_hover(token)
            said = () if token < 0 else (self._tokens[token].tooltip, self.note_of(token))
            self.setToolTip("\n".join(filter(None, said)))
            self.hovered.emit(token)

    def _choose_query(self, token: int) -> None:
        if self._selects == "key":
            self._choose_key(token)
        elif token != self._query:
            self.set_selection(token, self._key)
            self.token_selected.emit(token)

    def _choose_key(self, token: int) -> None:
        if self._selects == "query":
            self._choose_query(token)
        elif token != self._key:
            self.set_selection(self._query, token)
            self.key_selected.emit(token)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        moves_key = modifiers == Qt.KeyboardModifier.ShiftModifier
        current = self._key if self._selects == "key" or (moves_key and self._selects == "both") else self._query
        target = self._target(Qt.Key(event.key()), current)
        if target is None or not (moves_key or modifiers == Qt.KeyboardModifier.NoModifier):
            event.ignore()
            return
        if moves_key:
            self._choose_key(target)
        else:
            self._choose_query(target)
        self._keep_visible(self.chip_rect(target))

    def _target(self, key: Qt.Key, current: int) -> int | None:
        """Where a key leads from a token; None when it leads nowhere."""
        last = len(self._tokens) - 1
        if last < 0:
            return None
        if key == Qt.Key.Key_Left:
            return max(0, current - 1)
        if key == Qt.Key.Key_Right:
            return min(last, current + 1)
        if key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            return self._placed().neighbour(max(0, current), 1 if key == Qt.Key.Key_Down else -1)
        if key == Qt.Key.Key_Home:
            return 0
        return last if key == Qt.Key.Key_End else None


_MANY = 40  # lines
_LINES_OF_MANY = 2


class TokenStripArea(BoundedArea):
    """Holds a `strip`, as high as its tokens need up to `most_lines` lines; beyond them it scrolls."""

    def __init__(self, most_lines: int = 3, parent: QWidget | None = None) -> None:
        self.strip = TokenStrip()
        super().__init__(self.strip, parent)
        self._most_lines = most_lines
        self._high_as = 0
        self.strip.look_changed.connect(self.fit_height)  # its font may come after that of the area
        self._in_view = -1  # the token that was asked for last, until somebody scrolls
        bar = self.verticalScrollBar()
        bar.rangeChanged.connect(self._lay_in_view)  # a strip takes its height when it is laid out, which comes later
        bar.actionTriggered.connect(self._let_go)

    def set_theme(self, theme: Theme) -> None:
        self.strip.set_theme(theme)

    def set_tokens(self, tokens: Sequence[Chip], high_as: int = 0) -> None:
        """Show these tokens and take the height they need. Use this rather than the strip's own.

        Where `high_as` is given only that many of the first count: those that come behind them move nothing below.
        """
        self._high_as = high_as
        self._let_go()
        self.strip.set_tokens(tokens)
        self.fit_height()

    def set_room(self, room: Room) -> None:
        """As the strip's own, with the height that it then needs."""
        if self.strip.set_room(room):
            self.fit_height()

    def set_from_afar(self, from_afar: bool) -> None:
        """As the strip's own, with the height that it then needs."""
        self.strip.set_from_afar(from_afar)
        self.fit_height()

    def set_most_lines(self, lines: int) -> None:
        """How many lines are seen at once."""
        if lines != self._most_lines:
            self._most_lines = lines
            self.fit_height()

    def show_token(self, token: int) -> None:
        """Scroll, if need be, until a token's chip can be seen; it stays so when lines move, until somebody scrolls."""
        self._in_view = token
        self._lay_in_view()

    def _let_go(self) -> None:
        self._in_view = -1

    def _lay_in_view(self) -> None:
        rect = self.strip.chip_rect(self._in_view)
        if not rect.isEmpty():
            scroll_to(self, rect.center().toPoint(), 0, round(rect.height()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_in_view()

    def sizeHint(self) -> QSize:
        return QSize(480, self.height())

    def minimumSizeHint(self) -> QSize:
        return QSize(160, 60)

    def wanted_height(self) -> int:
        width = self.width()
        few = self._high_as and not self.strip.is_from_afar  # nobody scrolls from there
        lines = self.strip.lines_of(self._high_as, width) if few else self.strip.lines_for(width)
        if lines > self._most_lines:  # a page of tokens is read by scrolling anyway: the room is for the map
            lines = min(self._most_lines, _LINES_OF_MANY) if lines > _MANY else self._most_lines
        return round(self.strip.height_of(lines))
