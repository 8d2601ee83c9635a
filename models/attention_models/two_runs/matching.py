"""Which head of B each head of A is held against: the one of its layer and number, or the one most like it.

Likeness is 1 less the mean total variation distance of rows (`attention_models.protocol.two_runs.HeadChange`), over
some queries. Pairs are taken greedily, the most alike first and each head once; of equally alike ones that of the same
layer and number. That is not always the best sum over all heads (which is Kuhn's Hungarian method), but says of each
pair why it is one: nothing that is left is more like either of the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.forward.trace import Trace
from attention_models.protocol.values import Site, SiteRef
from attention_models.two_runs.axes import Axes, compared_queries
from attention_models.two_runs.merging import PlacesOf, mean_rows, summed_keys

MOST_QUERIES = 64
_NUMBERS = 1 << 24  # that all heads' rows of one run hold at once (64 MB)
_WORK = 1 << 31  # numbers that are subtracted


@dataclass(frozen=True, slots=True)
class Match:
    """A head of A and its counterpart; `similarity` is NaN where they only have the same number."""

    site: SiteRef
    head: int
    other_site: SiteRef
    other_head: int
    similarity: float = float("nan")


def by_index(sites: Sequence[Site], other_stack: str) -> list[Match]:
    return [
        Match(site.ref, head, SiteRef(other_stack, site.layer), head) for site in sites for head in range(site.heads)
    ]


class Similarity:
    """Heads of one stack of A and of one of B, matched."""

    def __init__(self, a: Trace, b: Trace, stack: str, other_stack: str, axes: Axes) -> None:
        self._sides = [
            [(site, x) for site, x in zip(trace.sites, trace.inputs, strict=True) if site.stack == of]
            for trace, of in ((a, stack), (b, other_stack))
        ]
        self._queries = [PlacesOf(axes[0], "a"), PlacesOf(axes[0], "b")]
        self._keys = [PlacesOf(axes[1], "a"), PlacesOf(axes[1], "b")]
        sites = self._sides[0][0][0], self._sides[1][0][0]  # of one stack all have the same tokens
        shared = torch.nonzero(compared_queries(a, b, *sites, axes))[:, 0]
        heads = [sum(site.heads for site, _ in side) for side in self._sides]
        width = len(axes[1]) + 1
        most = min(MOST_QUERIES, _NUMBERS // (max(heads) * width), _WORK // (heads[0] * heads[1] * width), len(shared))
        count = min(max(1, most), len(shared))
        # spread evenly from the first to the last
        self.places = shared[torch.linspace(0, len(shared) - 1, count).round().long()] if count else shared
        self.work = count * width * (heads[0] + heads[1]) + count * width * heads[0] * heads[1] // 64
        self.found: list[Match] = []

    def run(self) -> Iterator[int]:
        """Find the matches in pieces, each of which says how much it was."""
        if not len(self.places):
            return
        per_head = len(self.places) * (int(self._keys[0].counts.shape[0]) + 1)
        rows: list[list[Tensor]] = [[], []]
        for side in (0, 1):
            for _, x in self._sides[side]:
                rows[side].append(self._rows(side, x).cpu())
                yield x.heads * per_head
        theirs = torch.cat(rows[1])  # (heads of B, numbers)
        distances = []
        for ours in rows[0]:
            distances.append(torch.cdist(ours, theirs, p=1).double() / (2 * len(self.places)))
            yield ours.shape[0] * len(theirs) * per_head // 64
        self.found = self._greedy(torch.cat(distances).numpy())

    @torch.no_grad()
    def _rows(self, side: int, x: AttentionInputs) -> Tensor:
        """The rows of the chosen places, and what each lacks to 1: (heads, numbers) float32."""
        queries, keys = self._queries[side], self._keys[side]
        spans = [range(int(queries.first[p]), int(queries.end[p])) for p in self.places.tolist()]
        w = attention.weights(x, Part(rows=[row for span in spans for row in span]))[0].float()  # (heads, rows, keys)
        place = torch.tensor([i for i, span in enumerate(spans) for _ in span])
        merged = mean_rows(summed_keys(w, keys), place, len(spans))  # (heads, places, key places)
        return torch.cat([merged, 1 - merged.sum(-1, keepdim=True)], dim=-1).flatten(1)

    def _greedy(self, distances: np.ndarray) -> list[Match]:
        """`distances` are (heads of A, heads of B)."""
        ours, theirs = ([(site.ref, h) for site, _ in side for h in range(site.heads)] for side in self._sides)
        place = {(ref.layer, head): j for j, (ref, head) in enumerate(theirs)}
        same = np.zeros(distances.shape, bool)
        for i, (ref, head) in enumerate(ours):
            j = place.get((ref.layer, head))
            if j is not None:
                same[i, j] = True
        order = np.lexsort((~same.ravel(), distances.ravel()))  # stable: the first of A, then of B
        free, other_free = [True] * len(ours), [True] * len(theirs)
        found: dict[int, Match] = {}
        for at in order.tolist():
            i, j = divmod(at, len(theirs))
            if free[i] and other_free[j]:
                free[i] = other_free[j] = False
                (site, head), (other_site, other_head) = ours[i], theirs[j]
                found[i] = Match(site, head, other_site, other_head, 1 - float(distances[i, j]))
                if len(found) == min(distances.shape):
                    break
        return [found[i] for i in sorted(found)]
