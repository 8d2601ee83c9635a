"""Parts of one head's map."""

from __future__ import annotations

import numpy as np

from attention_models.attention.tiles import HeadTiles
from attention_models.forward.context import Context
from attention_models.forward.current_run import CurrentRun
from attention_models.protocol.head import TilesRequest, TilesView
from attention_models.protocol.values import SiteRef, Tile, read_only


class Maps:
    """The maps of a run's heads, of which two floats a row are kept."""

    def __init__(self, run: CurrentRun) -> None:
        self._trace = run.trace
        self._maps: dict[tuple[int, int], HeadTiles] = {}  # by site and head

    def of(self, site: SiteRef, head: int) -> HeadTiles:
        """Raises IndexError where there is no such site or head."""
        place = (self._trace.index(site), head)
        if place not in self._maps:
            self._maps[place] = HeadTiles(self._trace.at(site, head), head)
        return self._maps[place]


def answer(request: TilesRequest, context: Context) -> TilesView:
    """The first tiles of those asked for: as many as a moment allows, one at least."""
    run = context.run(request.run)
    head = run.kept.get_or_compute(Maps, lambda: Maps(run)).of(request.site, request.head)
    found: list[tuple[Tile, np.ndarray]] = []
    sinks: list[np.ndarray | None] = []
    left = run.work_per_answer
    for tile in request.tiles:
        left -= head.work(tile)
        if found and left < 0:
            break
        found.append((tile, read_only(head.tile(tile, request.pooling, context.should_stop, request.scale_rows))))
        taken = head.sinks(tile.rows(head.queries)) if tile.level == 0 else None
        sinks.append(None if taken is None else read_only(taken))
    return TilesView(request=request, tiles=tuple(found), sinks=tuple(sinks))
