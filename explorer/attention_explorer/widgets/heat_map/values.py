"""A map too large to hold: it is drawn from tiles that come when they are seen."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from attention_explorer.widgets import cell_image
from attention_explorer.widgets.heat_map.readout import Piece, Wording, cell_pieces, square_pieces
from attention_explorer.widgets.heat_map.view import Axis, MapView
from attention_models.protocol.values import TILE, Tile, top_level


@dataclass(frozen=True, eq=False)
class WholeValues:
    """Values (queries, keys), coloured over `span`; a masked cell, and one that is NaN, has no colour."""

    values: NDArray[np.float32]  # (queries, keys)
    masked: NDArray[np.bool_] | None  # (queries, keys)
    span: tuple[float, float]
    codes: cell_image.Codes  # (queries, keys)
    has_gaps: bool

    @classmethod
    def of(
        cls,
        values: NDArray[np.float32],
        masked: NDArray[np.bool_] | None,
        row_labels: Sequence[str],
        column_labels: Sequence[str],
        span: tuple[float, float],
    ) -> WholeValues | None:
        """None where there is no cell. Raises ValueError when the shapes do not agree."""
        values = np.asarray(values, dtype=np.float32)
        if values.ndim != 2 or values.shape != (len(row_labels), len(column_labels)):
            raise ValueError(
                f"The map has shape {values.shape}, its labels name "
                f"{len(row_labels)} queries and {len(column_labels)} keys."
            )
        if masked is not None and masked.shape != values.shape:
            raise ValueError(f"The mask has shape {masked.shape}, the map has shape {values.shape}.")
        if values.size == 0:
            return None
        codes = cell_image.encode(values, *span, masked)
        return cls(values, masked, span, codes, not bool(codes.all()))

    @property
    def shape(self) -> tuple[int, int]:
        """(queries, keys)"""
        queries, keys = self.values.shape
        return queries, keys

    def pixels(self, view: MapView, ratio: float) -> cell_image.Codes:
        """One code a device pixel of the visible cells, (down, across)."""
        pixels = self.codes
        for index, axis in enumerate((view.rows, view.columns)):
            length = max(1, round(axis.extent * ratio))
            pixels = cell_image.stretch(pixels, index, axis.offset, axis.size * ratio, length)
        return pixels

    def value_of(self, query: int, key: int, view: MapView, ratio: float) -> float | None:
        """The value of a cell; None of one that has no colour."""
        is_masked = self.masked is not None and bool(self.masked[query, key])
        value = float(self.values[query, key])
        return None if is_masked or not math.isfinite(value) else value

    def pieces(self, query: int, key: int, words: Wording) -> list[Piece]:
        """What the readout says of a cell."""
        is_masked = self.masked is not None and bool(self.masked[query, key])
        return cell_pieces(words, None if is_masked else float(self.values[query, key]))


# What a map of tiles remembers, and how its pixels are put together from whatever is there. No widget.
# The tile used least recently goes first when the bytes are used up. Where a sharp tile is missing, the finest coarser
# one that is there stands in for it, so that a map is never blank.


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


Pooling = Literal["max", "mean"]

_POOLED = {"max": "largest", "mean": "mean"}


class TiledValues:
    """One map of (queries, keys), whose tiles lie in a cache that it shares with other maps.

    A `signed` one shows changes, coloured as far below 0 as above; a square is that which is furthest from 0.
    Colours reach up to `high`, or to the largest value if None.
    """

    has_gaps = True

    def __init__(
        self,
        cache: TileCache,
        name: Hashable,
        shape: tuple[int, int],
        pooling: Pooling = "max",
        signed: bool = False,
        high: float | None = None,
    ) -> None:
        self.name = name
        self.shape = shape  # (queries, keys)
        self.backdrop: NDArray[np.float32] | None = None  # (down, across), a small picture of the whole map
        self.span = (0.0, 1.0)
        """The values that the first and the last colour stand for."""
        self.follows_view = pooling == "mean" and high is None
        """Whether `span` depends on what is seen."""
        self._cache = cache
        self._pooling: Pooling = pooling
        self._signed = signed
        self._high = high

    def level(self, view: MapView, ratio: float) -> int:
        """The level of detail at this zoom: a square stands for 2^level x 2^level weights."""
        return level_for(min(view.rows.size, view.columns.size) * ratio, self.shape)

    def missing(self, view: MapView, ratio: float) -> list[Tile]:
        """The tiles that a view lacks: the whole map first, which everything else can be shown from meanwhile."""
        sight = self._sight(view, ratio)
        return [tile for tile in dict.fromkeys((sight.top, *sight.tiles)) if not self._cache.has(self.name, tile)]

    def overview(self, view: MapView) -> NDArray[np.float32] | None:
        """The whole map in one tile, (down, across), or the backdrop; None while there is neither."""
        whole = self._cache.values(self.name, self._sight(view, 1.0).top)
        return self.backdrop if whole is None else whole

    def value_at(self, query: int, key: int, view: MapView, ratio: float) -> tuple[float, int] | None:
        """What is known of a cell: its own value and 1, or the value of a square and its side.

        NaN where all is masked; None while nothing is known.
        """
        sight = self._sight(view, ratio)
        cell = Tile(0, query // TILE, key // TILE)
        for level in range(sight.level, sight.top.level + 1):
            tile = ancestor(cell, level)
            values = self._cache.values(self.name, tile)
            if values is not None:
                row, column = query - tile.rows(self.shape[0]).start, key - tile.columns(self.shape[1]).start
                return float(values[row >> level, column >> level]), tile.cell
        return None

    def value_of(self, query: int, key: int, view: MapView, ratio: float) -> float | None:
        """The value of a cell; None of a masked one, and where no more than that of a square is known."""
        known = self.value_at(query, key, view, ratio)
        return None if known is None or known[1] > 1 or not math.isfinite(known[0]) else known[0]

    def pieces(self, known: tuple[float, int] | None, words: Wording) -> list[Piece]:
        """What the readout says of a cell of which that much is known."""
        if known is None:
            return []
        value, side = None if np.isnan(known[0]) else known[0], known[1]
        if side == 1:
            return cell_pieces(words, value)
        pooled = "largest change" if self._signed else f"{_POOLED[self._pooling]} {words.value_name}".rstrip()
        return square_pieces(words, value, side, pooled)

    def pixels(self, view: MapView, ratio: float) -> cell_image.Codes:
        """One code a device pixel of the visible cells, (down, across)."""
        return composed(self._cache, self.name, self._sight(view, ratio), *self.span, self.backdrop)

    def measure(self, view: MapView, ratio: float) -> None:
        """Let `span` reach as far as the values: of the whole map, or of what is shown where means are pooled."""
        high = self._largest(view, ratio) if self._high is None else self._high
        self.span = (-high if self._signed else 0.0, high)

    def _largest(self, view: MapView, ratio: float) -> float:
        sight = self._sight(view, ratio)
        tiles = [sight.top] if self._pooling == "max" else sight.tiles
        pictures = [p for p in (self._cache.values(self.name, tile) for tile in tiles) if p is not None]
        if not pictures and (overview := self.overview(view)) is not None:
            pictures = [overview]
        return max((float(np.nanmax(np.abs(p))) for p in pictures if not np.isnan(p).all()), default=0.0) or 1.0

    def _sight(self, view: MapView, ratio: float) -> Sight:
        return Sight(self.shape, _cells(view.rows, ratio), _cells(view.columns, ratio), self.level(view, ratio))


def _cells(axis: Axis, ratio: float) -> NDArray[np.intp]:
    """The cell that each device pixel of an axis falls on."""
    pixels = max(1, round(axis.extent * ratio))
    cells = np.floor(axis.offset + (np.arange(pixels) + 0.5) / (axis.size * ratio)).astype(np.intp)
    kept: NDArray[np.intp] = np.clip(cells, 0, axis.count - 1)
    return kept
