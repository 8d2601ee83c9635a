"""The maps of two heads and of their difference: pointed at, selected in and zoomed together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QObject, Signal

from attention_explorer.look.colour_maps import ColourTable, diverging, sequential
from attention_explorer.widgets.colour_bar import ColourBar
from attention_explorer.widgets.heat_map.heat_map import HeatMap
from attention_models.protocol.two_runs import AlignedMaps
from attention_models.protocol.values import Tile, top_level

A, B, DIFFERENCE = range(3)
LEAST = (150, 186)
"""Pixels that a map is wide and high at least."""


@dataclass(frozen=True, slots=True)
class MapWords:
    """What the rows and the columns of one map are called."""

    rows: Sequence[str]
    columns: Sequence[str]


class LinkedMaps(QObject):
    """Three maps over the same places, and two scales: one for both maps of weights, one for the difference.

    The widgets are laid out by whoever makes this.
    """

    place_selected = Signal(int, int)
    """A query's and a key's place, chosen here."""
    place_hovered = Signal(int, int)
    """Those that the pointer is over; -1, -1 off the maps."""
    part_changed = Signal()
    """The maps were zoomed or moved: a long one may lack tiles now."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.maps = tuple(HeatMap() for _ in range(3))
        names = (("Weights of A", "not in A"), ("Weights of B", "not in B"), ("A minus B", "not in both"))
        for each, (name, absent) in zip(self.maps, names, strict=True):
            each.setAccessibleName(name)
            each.absent_name = absent
            each.setMinimumSize(*LEAST)
            each.is_brief = True
        self.maps[DIFFERENCE].value_name = "A − B"
        self.bars = (ColourBar("weight"), ColourBar("A − B"))
        self.maps[B].map_span_changed.connect(self.bars[0].set_span)
        self.maps[DIFFERENCE].map_span_changed.connect(self.bars[1].set_span)
        self.bars[1].set_colour_map(diverging())
        self.maps[DIFFERENCE].set_colour_map(diverging())
        self._shown: AlignedMaps | None = None
        self._weights = sequential()
        self._follows = False  # one map is moved as another was
        for each in self.maps:
            each.cell_selected.connect(self._on_selected)
            each.hovered.connect(self._on_hovered)
            each.view_changed.connect(self._on_view_changed)

    @property
    def is_tiled(self) -> bool:
        return self.maps[DIFFERENCE].is_tiled

    def missing(self) -> list[Tile]:
        """What the part that is seen lacks of a long map."""
        return self.maps[DIFFERENCE].missing() if self.is_tiled else []

    def set_wheel_zooms(self, on: bool) -> None:
        for each in self.maps:
            each.wheel_zooms = on

    def set_empty_text(self, text: str) -> None:
        """What stands in the place of the maps while there is nothing to show."""
        for each in self.maps:
            each.set_empty_text(text)

    def clear(self) -> None:
        """There is nothing to compare."""
        self._shown = None
        for each in self.maps:
            each.set_values(None, None, (), (), 0.0, 1.0)

    def show_maps(self, maps: AlignedMaps, words: Sequence[MapWords], name: Hashable, weights: ColourTable) -> None:
        """Show what came. `words` are of A, B and the difference; `name` tells the tiles of one comparison apart."""
        if maps is self._shown and weights is self._weights:
            return
        self._shown, self._weights = maps, weights
        pictures = (maps.a, maps.b, maps.difference)
        hidden = (maps.masked_a, maps.masked_b, maps.masked_throughout)
        high = max(float(np.nanmax(picture, initial=0.0)) for picture in pictures[:DIFFERENCE]) or 1.0
        furthest = float(np.nanmax(np.abs(maps.difference), initial=0.0)) or 1.0
        spans = ((0.0, high), (0.0, high), (-furthest, furthest))
        for which, each in enumerate(self.maps):
            if which != DIFFERENCE:
                each.set_colour_map(weights)
            if maps.tile is None:
                each.set_values(pictures[which], hidden[which], words[which].rows, words[which].columns, *spans[which])
            else:
                picture = np.where(hidden[which], np.float32(np.nan), pictures[which])
                self._add_tile(which, maps.tile, picture, words[which], name)
        self._show_scales(weights)

    def _add_tile(self, which: int, tile: Tile, picture: np.ndarray, words: MapWords, name: Hashable) -> None:
        each = self.maps[which]
        each.cache.keep_only(lambda kept: kept == (name, which))
        each.set_map((name, which), words.rows, words.columns, signed=which == DIFFERENCE)
        each.add_tile((name, which), tile, picture)
        if tile.level == top_level(len(words.rows), len(words.columns)):
            each.set_backdrop(picture)

    def _show_scales(self, weights: ColourTable) -> None:
        self.bars[0].set_colour_map(weights)
        self.bars[0].set_range(*self.maps[B].colour_span)
        self.bars[1].set_range(*self.maps[DIFFERENCE].colour_span)

    def set_selection(self, query: int, key: int) -> None:
        for each in self.maps:
            each.set_selection(query, key)

    def set_hover(self, query: int, key: int) -> None:
        """Point at a place on all maps, and at its value on the scales. Emits nothing."""
        for each in self.maps:
            each.set_hover(query, key)
        self.bars[0].set_marker(self._value_at(A, query, key))
        self.bars[1].set_marker(self._value_at(DIFFERENCE, query, key))

    def _value_at(self, which: int, query: int, key: int) -> float | None:
        maps = self._shown
        if maps is None or maps.tile is not None or not (0 <= query < maps.a.shape[0] and 0 <= key < maps.a.shape[1]):
            return None
        hidden = (maps.masked_a, maps.masked_b, maps.masked_throughout)[which]
        value = float((maps.a, maps.b, maps.difference)[which][query, key])
        return None if hidden[query, key] else value

    def _on_selected(self, query: int, key: int) -> None:
        self.set_selection(query, key)
        self.place_selected.emit(query, key)

    def _on_hovered(self, query: int, key: int) -> None:
        self.set_hover(query, key)
        self.place_hovered.emit(query, key)

    def _on_view_changed(self) -> None:
        moved = self.sender()
        if self._follows or not isinstance(moved, HeatMap):
            return
        self._follows = True
        for each in self.maps:
            if each is not moved:
                each.set_view(each.view.like(moved.view))
        self._follows = False
        self.part_changed.emit()
