"""A heat map that can also be too large to hold: it is then drawn from tiles that come when they are looked at."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF
from PySide6.QtWidgets import QWidget

from explorer.widgets import cell_image
from explorer.widgets.heat_map.brush import PaintableHeatMap
from explorer.widgets.heat_map.tile_cache import Sight, TileCache, ancestor, composed, level_for
from explorer.widgets.heat_map.view import Axis, MapView
from explorer.widgets.number_text import value_text
from models.protocol.values import TILE, Tile

_POOLED = {"max": "largest", "mean": "mean"}


class TileMap(PaintableHeatMap):
    """`set_values` shows a map that is held whole, and forgets all tiles; `set_map` one that comes in tiles.

    Of the latter, `missing` says which tiles the view lacks, those that matter most first; `add_tile` brings one. Until
    it comes the coarser ones that are there are shown, at first a small picture given with `set_backdrop`.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.cache = TileCache()
        self.is_brief = False  # for a narrow map, beside which it is said what a square stands for
        self._name: Hashable = None
        self._pooling: Literal["max", "mean"] = "max"
        self._signed = False
        self._wanted_high: float | None = None
        self._backdrop: NDArray[np.float32] | None = None  # (down, across)

    # what to show

    def set_map(
        self,
        name: Hashable,
        row_labels: Sequence[str],
        column_labels: Sequence[str],
        pooling: Literal["max", "mean"] = "max",
        signed: bool = False,
        high: float | None = None,
    ) -> None:
        """Show the map `name` of one query a row label and one key a column label, pooled as its tiles will be.

        A `signed` one shows changes, coloured as far below 0 as above; a square is that which is furthest from 0.
        Colours reach up to `high`, or to the largest value if None.
        """
        self._values = self._masked = self._codes = None
        if name != self._name:
            self._name, self._backdrop = name, None
        self._pooling, self._signed, self._wanted_high, self._has_gaps = pooling, signed, high, True
        self._set_shape((len(row_labels), len(column_labels)), row_labels, column_labels)
        self._set_high()

    def set_values(
        self,
        values: NDArray[np.float32] | None,
        masked: NDArray[np.bool_] | None,
        row_labels: Sequence[str],
        column_labels: Sequence[str],
        low: float,
        high: float,
    ) -> None:
        self._name = self._backdrop = None
        self.cache.keep_only(lambda _: False)
        super().set_values(values, masked, row_labels, column_labels, low, high)

    def set_backdrop(self, picture: NDArray[np.float32] | None) -> None:
        """A small picture of the whole map, (down, across), pooled as the tiles are: shown until one is there."""
        if picture is not self._backdrop:
            self._backdrop = picture
            self._set_high()

    def add_tile(self, name: Hashable, tile: Tile, values: NDArray[np.float32]) -> None:
        """Take a tile of any map; those of the one on screen are shown."""
        self.cache.put(name, tile, values)
        if name == self._name:
            self._set_high()

    # what is shown

    @property
    def is_tiled(self) -> bool:
        """Whether the map comes in tiles."""
        return self._name is not None

    @property
    def level(self) -> int:
        """The level of detail at this zoom: a square stands for 2^level x 2^level weights."""
        if self._shape is None or not self.is_tiled:
            return 0
        view = self.view
        return level_for(min(view.rows.size, view.columns.size) * self.devicePixelRatioF(), self._shape)

    @property
    def high(self) -> float:
        """The value that the last colour stands for."""
        return self._range[1]

    def missing(self) -> list[Tile]:
        """The tiles that the view lacks: the whole map first, which everything else can be shown from meanwhile."""
        if self._shape is None or not self.is_tiled:
            return []
        sight = self._sight(self.view, self.devicePixelRatioF())
        return [tile for tile in dict.fromkeys((sight.top, *sight.tiles)) if not self.cache.has(self._name, tile)]

    def overview(self) -> NDArray[np.float32] | None:
        """The whole map in one tile, (down, across), or the backdrop; None while there is neither."""
        if self._shape is None or not self.is_tiled:
            return None
        whole = self.cache.values(self._name, self._sight(self.view, 1.0).top)
        return self._backdrop if whole is None else whole

    def part(self) -> QRectF:
        """The part of the map that shows, in shares of its width and height."""
        rows, columns = self.view.rows, self.view.columns
        return QRectF(
            columns.offset / columns.count,
            rows.offset / rows.count,
            columns.extent / columns.size / columns.count,
            rows.extent / rows.size / rows.count,
        )

    def centre_on(self, across: float, down: float) -> None:
        """Bring a place into the middle, as far as the ends allow; in shares of the map's width and height."""
        part = self.part().center()
        rows, columns = self.view.rows, self.view.columns
        right = (part.x() - across) * columns.count * columns.size
        self._set_view(self.view.panned(right, (part.y() - down) * rows.count * rows.size))

    def value_at(self, query: int, key: int) -> tuple[float, int] | None:
        """What is known of a cell: its own value and 1, or the value of a square and its side. None: nothing yet."""
        if self._shape is None or not self.is_tiled or self._within((query, key)) == (-1, -1):
            return None
        sight = self._sight(self.view, 1.0)
        cell = Tile(0, query // TILE, key // TILE)
        for level in range(sight.level, sight.top.level + 1):
            tile = ancestor(cell, level)
            values = self.cache.values(self._name, tile)
            if values is not None:
                row, column = query - tile.rows(self._shape[0]).start, key - tile.columns(self._shape[1]).start
                return float(values[row >> level, column >> level]), tile.cell
        return None

    def _readout_parts(self, query: int, key: int) -> list[tuple[str, str]]:
        if not self.is_tiled:
            return super()._readout_parts(query, key)
        known = self.value_at(query, key)
        if known is None:
            return []
        value, cell = known
        if cell == 1:
            return self._cell_parts(query, key, None if np.isnan(value) else value)
        looks, looked_at = f"“{self._row_labels[query]}”", f"“{self._column_labels[key]}”"
        # in pieces, since a long one is cut in its middle
        around = [("around ", "text_dim")]
        if not self.is_brief:
            around.insert(0, (f"{cell} × {cell} ", "text_dim"))
        cell_name = [(looks, "query"), (", ", "text_dim"), (looked_at, "key"), (": ", "text_dim")]
        if np.isnan(value):
            return [*around, *cell_name, ("all masked", "text")]
        how = "largest change" if self._signed else f"{_POOLED[self._pooling]} {self.value_name}".rstrip()
        of = [] if self.is_brief else [(f"{how} of ", "text_dim")]
        return [*of, *around, *cell_name, (value_text(value), "text")]

    # painting

    def _set_high(self) -> None:
        """Colours reach as far as the values: of the whole map, or of what is shown where means are pooled."""
        if self._shape is None or not self.is_tiled:
            return
        if self._wanted_high is not None:
            self._range = (-self._wanted_high if self._signed else 0.0, self._wanted_high)
            self._repaint()
            return
        sight = self._sight(self.view, self.devicePixelRatioF())
        tiles = [sight.top] if self._pooling == "max" else sight.tiles
        pictures = [p for p in (self.cache.values(self._name, tile) for tile in tiles) if p is not None]
        if not pictures and (overview := self.overview()) is not None:
            pictures = [overview]
        largest = max((float(np.nanmax(np.abs(p))) for p in pictures if not np.isnan(p).all()), default=0.0) or 1.0
        self._range = (-largest if self._signed else 0.0, largest)
        self._repaint()

    def _set_view(self, view: MapView) -> None:
        super()._set_view(view)
        if self._pooling == "mean":
            self._set_high()

    def _pixels(self, view: MapView, ratio: float) -> cell_image.Codes:
        if not self.is_tiled:
            return super()._pixels(view, ratio)
        return composed(self.cache, self._name, self._sight(view, ratio), *self._range, self._backdrop)

    def _sight(self, view: MapView, ratio: float) -> Sight:
        assert self._shape is not None
        return Sight(self._shape, _cells(view.rows, ratio), _cells(view.columns, ratio), self.level)


def _cells(axis: Axis, ratio: float) -> NDArray[np.intp]:
    """The cell that each device pixel of an axis falls on."""
    pixels = max(1, round(axis.extent * ratio))
    cells = np.floor(axis.offset + (np.arange(pixels) + 0.5) / (axis.size * ratio)).astype(np.intp)
    kept: NDArray[np.intp] = np.clip(cells, 0, axis.count - 1)
    return kept
