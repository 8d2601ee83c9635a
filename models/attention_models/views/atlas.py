"""Thumbnails of all heads of a run."""

from __future__ import annotations

import time
from dataclasses import dataclass

from attention_models.attention.atlas import IncrementalAtlas
from attention_models.forward.context import Context
from attention_models.forward.trace import Trace
from attention_models.protocol.atlas import AtlasRequest, AtlasView, EmptyRow
from attention_models.protocol.values import Pooling, read_only, site_tokens


@dataclass(frozen=True, slots=True, eq=False)
class Begun:
    """An atlas as far as it is computed, and how it was asked for."""

    size: int
    pooling: Pooling
    atlas: IncrementalAtlas


def answer(request: AtlasRequest, context: Context) -> AtlasView:
    """What is there once a moment more was spent on it."""
    started = time.perf_counter()
    run = context.run(request.run)
    begun = run.kept.get(Begun)
    if begun is None or (begun.size, begun.pooling) != (request.size, request.pooling):
        atlas = IncrementalAtlas(run.trace.inputs, request.size, request.pooling, _padding(run.trace))
        begun = run.kept.put(Begun(request.size, request.pooling, atlas))
    context.report("Drawing all heads", begun.atlas.done or None)
    with run.kept.unless_it_fails(Begun):
        begun.atlas.advance(run.work_per_answer, context.should_stop)
        picture = begun.atlas.picture()
    empty = picture.rows.first_empty
    return AtlasView(
        request=request,
        images=read_only(picture.images),
        mean=read_only(picture.mean),
        masked=read_only(picture.masked),
        row_error=picture.rows.error,
        sink_shares=picture.rows.sinks,
        empty_rows=picture.rows.empty,
        padding_rows=picture.rows.padding,
        first_empty=None if empty is None else EmptyRow(run.trace.sites[empty.site].ref, empty.head, empty.query),
        cell=picture.cell,
        seconds=time.perf_counter() - started,
        done=picture.done,
    )


def _padding(trace: Trace) -> list[frozenset[int]]:
    """The queries of each site that fill up a text of a batch."""
    return [
        frozenset(i for i, token in enumerate(site_tokens(trace, site)[0]) if token.padding) for site in trace.sites
    ]
