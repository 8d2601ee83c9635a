"""What the rows of a head sum to: 1 with the sink's share, or nothing at all where no key is visible."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.inputs import AttentionInputs, Part


class Row(NamedTuple):
    """One query of one head of one site, each counting from 0."""

    site: int
    head: int
    query: int


@dataclass(frozen=True, slots=True)
class RowReport:
    """What was found of some rows."""

    error: float = 0.0  # largest |sum of weights + share of the sink - 1|, over rows to which something is visible
    sinks: tuple[float, float] | None = None  # the least and the most that a sink takes of a row; None without sinks
    empty: int = 0  # rows to which nothing is visible: they sum to 0
    padding: int = 0  # rows of padding to which nothing is visible: nobody reads what they give
    first_empty: Row | None = None

    def __add__(self, other: RowReport) -> RowReport:
        pairs = [pair for pair in (self.sinks, other.sinks) if pair is not None]
        return RowReport(
            error=max(self.error, other.error),
            sinks=(min(low for low, _ in pairs), max(high for _, high in pairs)) if pairs else None,
            empty=self.empty + other.empty,
            padding=self.padding + other.padding,
            first_empty=self.first_empty or other.first_empty,
        )


class RowSums:
    """Adds up some heads' rows as they come. On their device, which nobody waits for until `report`."""

    def __init__(self, x: AttentionInputs, heads: list[int] | None) -> None:
        self._x, self._heads = x, heads
        count, device = x.heads if heads is None else len(heads), x.query.device
        self._worst = torch.zeros((), device=device)
        self._least, self._most = torch.ones((), device=device), torch.zeros((), device=device)
        self._empty = torch.zeros(count, x.queries, dtype=torch.bool, device=device)
        self._any = False

    def add(self, rows: slice, keys: slice, w: Tensor) -> None:
        """`w` are the weights of `rows`, (heads, rows, keys), that of `keys` outside of which nothing is visible."""
        x, part = self._x, Part(self._heads, rows, keys)
        self._any = True
        sums = w.sum(dim=-1)
        if x.mask is not None or x.precomputed is not None:
            masked = attention.masked_cells(x, part) if bool((sums == 0).any()) else None
            if masked is not None:
                self._empty[:, rows] = masked[0].expand(len(sums), -1, w.shape[-1]).all(dim=-1)
        if x.sinks is not None:
            shares = attention.sink_shares(x, part)[0]
            self._least = torch.minimum(self._least, shares.min())
            self._most = torch.maximum(self._most, shares.max())
            sums = sums + shares
        off = torch.where(self._empty[:, rows], 0.0, (sums - 1).abs())
        self._worst = torch.maximum(self._worst, off.max())  # a NaN stays

    def add_empty(self, rows: slice) -> None:
        """`rows` to which no key is visible."""
        self._empty[:, rows] = True
        if self._x.sinks is not None:
            self._most = torch.ones_like(self._most)

    def report(self, site: int = 0, padding: Collection[int] = ()) -> RowReport:
        """What was found so far. Waits for the device once, and once more where a row is empty.

        `padding` are queries that fill up a text: they are counted apart.
        """
        found = torch.stack([self._worst, self._least, self._most, self._empty.any().float()])
        error, least, most, is_empty = found.tolist()
        found_empty = self._empty.nonzero().tolist() if is_empty else []
        places = [place for place in found_empty if place[1] not in padding]
        head, query = places[0] if places else (0, 0)
        return RowReport(
            error=math.inf if math.isnan(error) else error,
            sinks=(least, most) if self._x.sinks is not None and self._any else None,
            empty=len(places),
            padding=len(found_empty) - len(places),
            first_empty=Row(site, head if self._heads is None else self._heads[head], query) if places else None,
        )
