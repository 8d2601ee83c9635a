"""Which map of a long text is shown, what is drawn until its tiles are here, and what they tell of sinks."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from attention_explorer.session.state import State
from attention_models.protocol.atlas import AtlasView
from attention_models.protocol.head import TilesRequest
from attention_models.protocol.running import Ran
from attention_models.protocol.values import TILE, Pooling, Site, SiteRef, Tile


class MapName(NamedTuple):
    """Which map of a long text: of a run, a head, and how its weights are pooled."""

    run: int
    site: SiteRef
    head: int
    pooling: Pooling
    scale_rows: bool

    @classmethod
    def asked_by(cls, request: TilesRequest) -> MapName:
        """Whose tiles a request asks for."""
        return cls(request.run, request.site, request.head, request.pooling, request.scale_rows)


class RowSinks:
    """What the sinks take of the rows of one run, as far as tiles have told."""

    def __init__(self) -> None:
        self._shares: dict[tuple[int, SiteRef, int], dict[int, float]] = {}  # by run, site and head

    def keep(self, name: MapName, tile: Tile, sinks: np.ndarray) -> None:
        """`sinks` are (rows of the tile,), NaN where not known."""
        self._shares = {head: rows for head, rows in self._shares.items() if head[0] == name.run}
        kept = self._shares.setdefault((name.run, name.site, name.head), {})
        for row, share in enumerate(sinks.tolist(), start=tile.row * TILE):
            if not np.isnan(share):
                kept[row] = share

    def share(self, name: MapName, query: int) -> float | None:
        """None without a sink, and where no tile of the row has come."""
        return self._shares.get((name.run, name.site, name.head), {}).get(query)


def name_of(state: State) -> MapName | None:
    """The map of the selected head, as it is to be shown."""
    ran, site = state.ran, state.site
    if ran is None or site is None:
        return None
    return MapName(ran.run, site.ref, state.selection.head, state.document.view.pooling, _scales_rows(state))


def _scales_rows(state: State) -> bool:
    return state.document.view.normalisation == "row"


def thumbnail(state: State, ran: Ran, site: Site) -> np.ndarray | None:
    """The head's picture among all heads, (down, across), once it is whole and pooled as the map is."""
    view = state.results.of(AtlasView)
    if view is None or _scales_rows(state):
        return None
    if (view.request.run, view.request.pooling) != (ran.run, state.document.view.pooling):
        return None
    cell = -(-max(site.queries, site.keys) // view.request.size)
    size = (-(-site.queries // cell), -(-site.keys // cell))
    return _cut_out(view, ran.sites.index(site), state.selection.head, size)


@lru_cache(maxsize=2)  # asked for at each change of the state
def _cut_out(view: AtlasView, site: int, head: int, size: tuple[int, int]) -> np.ndarray | None:
    picture = view.images[site, head, : size[0], : size[1]]
    if np.isnan(picture).any():
        return None
    masked = view.masked[site, head if view.masked.shape[1] > 1 else 0, : size[0], : size[1]]
    marked: np.ndarray = np.where(masked, np.float32(np.nan), picture)  # as in a tile
    return marked
