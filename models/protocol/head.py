"""The weights of one head: all of them, one row, or tiles of a long text's map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from models.protocol.request import Request, Result
from models.protocol.values import SiteRef, Tile


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadRequest(Request):
    """The whole weight matrix of one head of run `run`. Answered by `HeadView`. For a site that is not long."""

    lane: ClassVar[str] = "view:head"
    run: int
    site: SiteRef
    head: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeadView(Result):
    run: int
    site: SiteRef
    head: int
    weights: np.ndarray  # (queries, keys) float32, rows sum to 1, masked cells exactly 0
    masked: np.ndarray | None  # (queries, keys) bool, True where the key may not be looked at; None where all may


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRequest(Request):
    """Where one query looks in one head of run `run`. Answered by `RowView`."""

    lane: ClassVar[str] = "view:row"
    run: int
    site: SiteRef
    head: int
    query: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowView(Result):
    run: int
    site: SiteRef
    head: int
    query: int
    weights: np.ndarray  # (keys,) float32, sums to 1, masked cells exactly 0
    masked: np.ndarray | None  # (keys,) bool; None where all may be looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class TilesRequest(Request):
    """Parts of one head's map, those that matter most first. Answered by `TilesView`, which may hold fewer."""

    lane: ClassVar[str] = "view:tiles"
    run: int
    site: SiteRef
    head: int
    tiles: tuple[Tile, ...]
    pooling: str = "max"
    scale_rows: bool = False  # each weight divided by the largest of its row


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TilesView(Result):
    """Some tiles of one head's map, the first of those asked for."""

    run: int
    site: SiteRef
    head: int
    pooling: str
    scale_rows: bool
    tiles: tuple[tuple[Tile, np.ndarray], ...]  # (down, across) float32; NaN where a whole square is masked
