"""Where the chips of a token strip lie, and the paths of the arcs between them. Pure geometry, no widget.

Every line of chips has a gutter above it. Arcs run in the gutters only, so that they never cross a token's text: an arc
to another line leaves through its own gutter, follows the nearer margin, and comes back through the other gutter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSizeF
from PySide6.QtGui import QPainterPath

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
