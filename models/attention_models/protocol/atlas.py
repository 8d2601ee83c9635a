"""Thumbnails of all heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from attention_models.protocol.request import Lane, Result, RunRequest
from attention_models.protocol.values import Pooling, SiteRef

if TYPE_CHECKING:
    import numpy as np


THUMBNAIL = 48
"""Weights along a side of a thumbnail: of a longer text several are pooled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AtlasRequest(RunRequest):
    """All heads of run `run`, each pooled to at most `size` x `size`. Answered by `AtlasView`.

    Of a long text an answer holds what could be computed in a moment; asked again with `have` set to the share that is
    there, the engine goes on from it.
    """

    lane: ClassVar[Lane] = Lane("view:atlas")
    activity: ClassVar[str] = "computing the thumbnails of all heads"
    answered_by: ClassVar[str] = "attention_models.views.atlas:answer"
    printed_by: ClassVar[str] = "attention_models.scripts.atlas:write"
    size: int
    pooling: Pooling = "max"
    have: float = 0.0


@dataclass(frozen=True, slots=True)
class EmptyRow:
    """A query to which no key is visible."""

    site: SiteRef
    head: int
    query: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AtlasView(Result):
    request: AtlasRequest
    images: np.ndarray  # (sites, heads, rows, columns) float32; NaN where a site has fewer heads or tokens
    mean: np.ndarray  # (sites, rows, columns) float32: the mean over heads, pooled likewise
    masked: np.ndarray  # (sites, heads or 1, rows, columns) bool: every cell of the square is masked; 1: for all heads
    row_error: float  # largest |sum of a row and share of its sink - 1| over every row to which something is visible
    sink_shares: tuple[float, float] | None = None  # the least and the most that sinks take of a row; None without
    empty_rows: int = 0  # rows to which nothing is visible: their weights are all 0
    first_empty: EmptyRow | None = None
    padding_rows: int = 0  # rows of padding to which nothing is visible: all 0 too, and no fault
    cell: int  # each pixel pools cell x cell weights
    seconds: float
    done: float = 1.0  # the share of all weights that is in it; what is not yet computed is NaN
