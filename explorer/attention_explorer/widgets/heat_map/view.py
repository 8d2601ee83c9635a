"""Where the cells of a heat map lie: fitting, zooming and panning. Pure geometry, no widget.

All positions are in logical pixels; a cell has an index, and the left or top edge of cell i lies at edge(i).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QRectF

NOWHERE = (-1, -1)
"""The (query, key) of no cell."""

LARGEST_FITTED = 120.0  # pixels a cell takes at most before anybody zooms
LARGEST_ZOOMED = 96.0  # pixels beyond which zooming in stops
SMALLEST_BAND = 24.0  # pixels a cell may take whatever its aspect, so that one row of 300 keys is still a band
ASPECT = 1.4  # how far cells may leave the square to fill the room


@dataclass(frozen=True)
class Bounds:
    """How far cells may leave the square to fill the room, and how many pixels they take at most."""

    aspect: float
    largest: float


NEARLY_SQUARE = Bounds(ASPECT, LARGEST_FITTED)
FILLING = Bounds(aspect=2.4, largest=math.inf)
"""For a map that is read from afar."""


@dataclass(frozen=True)
class Axis:
    """One axis: `count` cells of `size` pixels from `origin`, in `room` pixels, of which cell `offset` comes first.

    Of a block that is shown alone only the cells from `start` on, up to `stop`, can be scrolled to.
    """

    count: int
    origin: float
    room: float
    fitted: float  # the size at which the whole axis shows
    size: float
    start: int
    stop: int
    offset: float

    @classmethod
    def fit(cls, count: int, block: range, origin: float, room: float, size: float) -> Axis:
        """The cells of `block`, each of `size` pixels."""
        return cls(count, origin, room, size, size, block.start, block.stop, float(block.start))

    @property
    def extent(self) -> float:
        """Pixels that the visible cells take."""
        return min(self.room, (self.stop - self.start) * self.size)

    @property
    def end(self) -> float:
        return self.origin + self.extent

    def edge(self, cell: float) -> float:
        return self.origin + (cell - self.offset) * self.size

    def centre(self, cell: int) -> float:
        return self.edge(cell + 0.5)

    def cell_at(self, position: float) -> int:
        """The cell under a position, or -1 outside the visible part."""
        if not self.origin <= position < self.end:
            return -1
        return min(self.stop - 1, int(self.offset + (position - self.origin) / self.size))

    def within(self, cell: int) -> int:
        """`cell`, or the nearest that can be scrolled to."""
        return min(max(cell, self.start), self.stop - 1)

    def visible(self) -> range:
        """The cells of which at least a part shows."""
        last = math.ceil(self.offset + self.extent / self.size - 1e-6)
        return range(int(self.offset + 1e-6), min(self.stop, last))

    def panned(self, pixels: float) -> Axis:
        """Moved by `pixels`: a positive number brings earlier cells in."""
        return self._at(self.size, self.offset - pixels / self.size)

    def resized(self, size: float, about: float) -> Axis:
        """With cells of another size; what lies at the position `about` stays there as far as the ends allow."""
        inside = min(max(about, self.origin), self.end) - self.origin
        return self._at(size, self.offset + inside / self.size - inside / size)

    def showing(self, cell: int) -> Axis:
        """Scrolled by as little as brings `cell` wholly in, if it can be."""
        shown = self.extent / self.size
        if cell < self.offset:
            return self._at(self.size, cell)
        if cell + 1 > self.offset + shown:
            return self._at(self.size, cell + 1 - shown)
        return self

    def _at(self, size: float, offset: float) -> Axis:
        cells = self.stop - self.start
        hidden = cells - min(self.room, cells * size) / size
        offset = min(max(offset, float(self.start)), self.start + max(hidden, 0.0))
        return replace(self, size=size, offset=offset)


@dataclass(frozen=True)
class MapView:
    """What part of the map shows, and how large."""

    rows: Axis
    columns: Axis
    zoom: float = 1.0

    @classmethod
    def fit(
        cls,
        rows: int,
        columns: int,
        left: float,
        top: float,
        width: float,
        height: float,
        pixel: float = 1.0,
        block: tuple[range, range] | None = None,
        bounds: Bounds = NEARLY_SQUARE,
    ) -> MapView:
        """The whole map in a room of width by height, centred across, on whole device pixels of size `pixel`.

        Of a `block`, (rows, columns), only that part.
        """
        down, across = block or (range(rows), range(columns))
        x, y = _snapped(left, pixel), _snapped(top, pixel)
        right = max(_snapped(left + width, pixel), x + pixel)
        bottom = max(_snapped(top + height, pixel), y + pixel)
        width, height = right - x, bottom - y
        wide, high = width / len(across), height / len(down)
        reach = max(min(wide, high) * bounds.aspect, SMALLEST_BAND)
        cell_width = min(wide, reach, bounds.largest)
        cell_height = min(high, reach, bounds.largest)
        x += math.floor((width - len(across) * cell_width) / 2 / pixel + 1e-9) * pixel
        return cls(Axis.fit(rows, down, y, height, cell_height), Axis.fit(columns, across, x, right - x, cell_width))

    @property
    def largest_zoom(self) -> float:
        return max(1.0, LARGEST_ZOOMED / min(self.rows.fitted, self.columns.fitted))

    def zoomed(self, factor: float, x: float, y: float) -> MapView:
        """Larger by `factor`, between the whole map and LARGEST_ZOOMED; the point (x, y) stays where it is."""
        zoom = min(max(self.zoom * factor, 1.0), self.largest_zoom)
        return MapView(
            self.rows.resized(_zoomed_size(self.rows.fitted, zoom), y),
            self.columns.resized(_zoomed_size(self.columns.fitted, zoom), x),
            zoom,
        )

    def like(self, other: MapView) -> MapView:
        """Zoomed as another view is, with the same first cells."""
        return self.at(*other.place)

    @property
    def place(self) -> tuple[float, float, float]:
        """How far it is zoomed, and how many rows and columns lie before the first that shows: whatever the room."""
        return self.zoom, self.rows.offset - self.rows.start, self.columns.offset - self.columns.start

    def at(self, zoom: float, down: float, right: float) -> MapView:
        """The view of this `place`, as far as the room allows."""
        whole = self.zoomed(0.0, self.columns.origin, self.rows.origin)
        view = whole.zoomed(max(zoom, 1.0), self.columns.origin, self.rows.origin)
        return view.panned(-right * view.columns.size, -down * view.rows.size)

    def panned(self, right: float, down: float) -> MapView:
        return replace(self, rows=self.rows.panned(down), columns=self.columns.panned(right))

    def showing(self, row: int, column: int) -> MapView:
        return replace(self, rows=self.rows.showing(row), columns=self.columns.showing(column))

    def neighbour(self, cell: tuple[int, int], down: int, right: int) -> tuple[int, int]:
        """The cell so far from `cell`, as far as can be scrolled to; the first one from NOWHERE."""
        if cell == NOWHERE:
            return self.rows.start, self.columns.start
        return self.rows.within(cell[0] + down), self.columns.within(cell[1] + right)

    def part(self) -> QRectF:
        """The part of the map that shows, in shares of its width and height."""
        rows, columns = self.rows, self.columns
        return QRectF(
            columns.offset / columns.count,
            rows.offset / rows.count,
            columns.extent / columns.size / columns.count,
            rows.extent / rows.size / rows.count,
        )

    def centred_on(self, across: float, down: float) -> MapView:
        """With a place in the middle, as far as the ends allow; in shares of the map's width and height."""
        middle, rows, columns = self.part().center(), self.rows, self.columns
        return self.panned(
            (middle.x() - across) * columns.count * columns.size, (middle.y() - down) * rows.count * rows.size
        )

    def centred_on_cell(self, row: int, column: int, size: float) -> MapView:
        """With a cell in the middle, zoomed in until cells take `size` pixels where they take less."""
        view, smallest = self, min(self.rows.size, self.columns.size)
        if smallest < size:
            view = view.zoomed(size / smallest, view.columns.centre(column), view.rows.centre(row))
        right = view.columns.origin + view.columns.extent / 2 - view.columns.centre(column)
        down = view.rows.origin + view.rows.extent / 2 - view.rows.centre(row)
        return view.panned(right, down)

    def zoomed_about(self, factor: float, row: int, column: int) -> MapView:
        """Zoomed about a cell, or about the middle where it is out of view."""
        rows, columns = self.rows, self.columns
        x = columns.centre(column) if column in columns.visible() else columns.origin + columns.extent / 2
        y = rows.centre(row) if row in rows.visible() else rows.origin + rows.extent / 2
        return self.zoomed(factor, x, y)

    def cell_at(self, x: float, y: float) -> tuple[int, int]:
        """The (row, column) under a point, or NOWHERE off the map."""
        row, column = self.rows.cell_at(y), self.columns.cell_at(x)
        return (row, column) if row >= 0 and column >= 0 else NOWHERE


def _zoomed_size(fitted: float, zoom: float) -> float:
    return max(fitted, min(fitted * zoom, LARGEST_ZOOMED))


def _snapped(position: float, pixel: float) -> float:
    return round(position / pixel) * pixel


def labelled(axis: Axis, spacing: float, emphasised: Sequence[int] = ()) -> list[int]:
    """The visible cells that get a label when labels need `spacing` pixels.

    The emphasised ones come first, in their order; one that would overlap an earlier one is left out, and so is one of
    whose cell less than a label needs shows.
    """
    step = _round_step(spacing / axis.size)
    visible = axis.visible()
    first = -(-visible.start // step) * step
    kept: list[int] = []
    for cell in emphasised:
        if cell in visible and all(_apart(axis, cell, other, spacing) for other in kept):
            kept.append(cell)
    clear = [
        cell
        for cell in range(first, visible.stop, step)
        if _has_room(axis, cell, spacing) and all(_apart(axis, cell, other, spacing) for other in kept)
    ]
    return sorted([*kept, *clear])


def label_centre(axis: Axis, cell: int, spacing: float) -> float:
    """Where a label of `spacing` pixels stands: in the middle of its cell, or of the part of it that shows."""
    if axis.edge(cell) >= axis.origin and axis.edge(cell + 1) <= axis.end:
        return axis.centre(cell)
    return max(axis.origin + spacing / 2, min(axis.centre(cell), axis.end - spacing / 2))


def _has_room(axis: Axis, cell: int, spacing: float) -> bool:
    """Whether all of the cell shows, or as much of it as a label needs."""
    shown = min(axis.edge(cell + 1), axis.end) - max(axis.edge(cell), axis.origin)
    return shown >= min(spacing, axis.size) - 1e-6


def _apart(axis: Axis, cell: int, other: int, spacing: float) -> bool:
    return abs(label_centre(axis, cell, spacing) - label_centre(axis, other, spacing)) >= spacing - 1e-6


def _round_step(least: float) -> int:
    """The smallest of 1, 2, 5, 10, 20, 50 ... that is not below `least`."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if factor * power >= least - 1e-9:
                return factor * power
        power *= 10
