"""What a map of tiles remembers, and how its pixels are put together from whatever is there. No widget.

The tile used least recently goes first when the bytes are used up. Where a sharp tile is missing, the
finest coarser one that is there stands in for it, so that a map is never blank.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from attention_explorer.widgets import cell_image
from attention_models.protocol.values import TILE, Tile, top_level

Values = NDArray[np.float32]

MOST_BYTES = 64 << 20


@dataclass(slots=True)
class _Entry:
    values: Values  # (down, across)
    span: tuple[float, float] = (math.nan, math.nan)  # what the codes were made for
    codes: cell_image.Codes = field(default_factory=lambda: np.zeros((0, 0), np.uint8))


class TileCache:
    """Tiles of many maps; a map is named by anything that can be compared."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._entries: OrderedDict[tuple[Hashable, Tile], _Entry] = OrderedDict()
        self._bytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the values kept, and of their codes."""
        return self._bytes

    def put(self, name: Hashable, tile: Tile, values: Values) -> None:
        if (name, tile) in self._entries:
            self._bytes -= _bytes(self._entries.pop((name, tile)))
        self._entries[name, tile] = entry = _Entry(values)
        self._bytes += _bytes(entry)
        while self._bytes > self._most_bytes and len(self._entries) > 1:
            self._bytes -= _bytes(self._entries.popitem(last=False)[1])

    def keep_only(self, wanted: Callable[[Hashable], bool]) -> None:
        """Forget the maps whose name is not `wanted`."""
        for key in [key for key in self._entries if not wanted(key[0])]:
            self._bytes -= _bytes(self._entries.pop(key))

    def has(self, name: Hashable, tile: Tile) -> bool:
        return (name, tile) in self._entries

    def values(self, name: Hashable, tile: Tile) -> Values | None:
        """A tile's pixels, None where it is not here. This counts as a use."""
        entry = self._entry(name, tile)
        return None if entry is None else entry.values

    def codes(self, name: Hashable, tile: Tile, low: float, high: float) -> cell_image.Codes | None:
        """A tile coloured from `low` to `high`."""
        entry = self._entry(name, tile)
        if entry is None:
            return None
        if entry.span != (low, high):
            entry.span, entry.codes = (low, high), cell_image.encode(entry.values, low, high)
        return entry.codes

    def _entry(self, name: Hashable, tile: Tile) -> _Entry | None:
        entry = self._entries.get((name, tile))
        if entry is not None:
            self._entries.move_to_end((name, tile))
        return entry


def _bytes(entry: _Entry) -> int:
    return entry.values.nbytes + entry.values.size  # a code is a byte


@dataclass(frozen=True)
class Sight:
    """What part of a map shows: for each device pixel the query (down) or key (across) that it falls on."""

    shape: tuple[int, int]  # (queries, keys) of the whole map
    rows: NDArray[np.intp]  # (pixels down,), rising
    columns: NDArray[np.intp]  # (pixels across,), rising
    level: int

    @property
    def tiles(self) -> list[Tile]:
        """The tiles of `level` that show, those nearest to the middle first."""
        side = TILE << self.level
        down = range(int(self.rows[0]) // side, int(self.rows[-1]) // side + 1)
        across = range(int(self.columns[0]) // side, int(self.columns[-1]) // side + 1)
        middle = [float(pixels[len(pixels) // 2]) / side - 0.5 for pixels in (self.rows, self.columns)]
        tiles = [Tile(self.level, row, column) for row in down for column in across]
        return sorted(tiles, key=lambda tile: (tile.row - middle[0]) ** 2 + (tile.column - middle[1]) ** 2)

    @property
    def top(self) -> Tile:
        """The tile that holds the whole map."""
        return Tile(top_level(*self.shape), 0, 0)


def level_for(cell_pixels: float, shape: tuple[int, int]) -> int:
    """The finest level whose squares take a device pixel or more, when one weight takes `cell_pixels`."""
    level = max(0, math.ceil(-math.log2(cell_pixels) - 1e-9))
    return min(level, top_level(*shape))


def ancestor(tile: Tile, level: int) -> Tile:
    """The tile of a coarser level that holds `tile`."""
    up = level - tile.level
    return Tile(level, tile.row >> up, tile.column >> up)


def composed(
    cache: TileCache, name: Hashable, sight: Sight, low: float, high: float, backdrop: Values | None = None
) -> cell_image.Codes:
    """One code a device pixel, (down, across): sharp tiles, coarser ones where they are missing, else the backdrop.

    `backdrop` is a small picture of the whole map, (down, across). What nothing is known of is 0, as a masked cell is.
    """
    pixels = np.zeros((len(sight.rows), len(sight.columns)), np.uint8)
    drawn = {_nearest(cache, name, tile, sight.top.level) for tile in sight.tiles}
    if backdrop is not None and None in drawn:
        cell = -(-max(sight.shape) // max(backdrop.shape))
        codes = cell_image.encode(backdrop, low, high)
        pixels[:] = codes[
            np.ix_(
                np.minimum(sight.rows // cell, codes.shape[0] - 1),
                np.minimum(sight.columns // cell, codes.shape[1] - 1),
            )
        ]
    for tile in sorted((t for t in drawn if t is not None), key=lambda t: -t.level):
        codes_of = cache.codes(name, tile, low, high)
        if codes_of is None:
            continue
        down, across = tile.rows(sight.shape[0]), tile.columns(sight.shape[1])
        y0, y1 = np.searchsorted(sight.rows, (down.start, down.stop))
        x0, x1 = np.searchsorted(sight.columns, (across.start, across.stop))
        rows = (sight.rows[y0:y1] - down.start) >> tile.level
        columns = (sight.columns[x0:x1] - across.start) >> tile.level
        pixels[y0:y1, x0:x1] = codes_of[np.ix_(rows, columns)]
    return pixels


def _nearest(cache: TileCache, name: Hashable, tile: Tile, top: int) -> Tile | None:
    """The finest tile that is there and holds `tile`."""
    candidates = (ancestor(tile, level) for level in range(tile.level, top + 1))
    return next((t for t in candidates if cache.has(name, t)), None)
