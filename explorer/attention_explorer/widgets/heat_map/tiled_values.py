"""A map too large to hold: it is drawn from tiles that come when they are seen."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from attention_explorer.widgets import cell_image
from attention_explorer.widgets.heat_map.readout import Piece, Wording, cell_pieces, square_pieces
from attention_explorer.widgets.heat_map.tile_cache import Sight, TileCache, ancestor, composed, level_for
from attention_explorer.widgets.heat_map.view import Axis, MapView
from attention_models.protocol.values import TILE, Tile

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
