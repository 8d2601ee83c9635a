"""How much every head of A differs from its counterpart in B, worked out in parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.incremental import BlockSize, IncrementalWork
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.compare.axes import (
    Alignment,
    Axes,
    compared_queries,
    counterpart_stacks,
    why_no_counterparts,
    why_not_by_index,
)
from attention_models.compare.merging import PlacesOf, mean_rows, place_weights, summed_keys
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.trace import Trace
from attention_models.protocol.errors import InputError
from attention_models.protocol.request import ShouldStop, never
from attention_models.protocol.two_runs import HeadChange, Matching
from attention_models.protocol.values import Site, SiteRef

# Which head of B each head of A is held against: the one of its layer and number, or the one most like it.
# Likeness is 1 less the mean total variation distance of rows (`attention_models.protocol.two_runs.HeadChange`), over
# some queries. Pairs are taken greedily, the most alike first and each head once; of equally alike ones that of the
# same layer and number. That is not always the best sum over all heads (which is Kuhn's Hungarian method), but says of
# each pair why it is one: nothing that is left is more like either of the two.


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


# Weights of a run held at once.
_BLOCK = BlockSize(1 << 20)


class Changes(IncrementalWork):
    """The change of every head, NaN where it is not computed yet.

    Attributes:
        matching: by what heads are matched; None where none of A has a counterpart.
        why_not_by_index: why they are not matched by index, where that was asked for.
        why_not: sentences about stacks that cannot be compared.
        matches: of each head of A that has a counterpart, in the order of A's sites; empty until heads are matched.
        matched_over: queries that similarity was found over.
    """

    def __init__(
        self, a: CurrentRun, b: CurrentRun, alignment: Alignment, matching: Matching, should_stop: ShouldStop = never
    ) -> None:
        self._a, self._b = a.trace, b.trace
        stacks = counterpart_stacks(a, b)
        self.why_not = why_no_counterparts(a, b, stacks)
        self._axes: dict[str, Axes] = {}  # by A's stack
        self._others: dict[str, str] = {}
        for stack, other in stacks.items():
            if other is None:
                continue
            site, other_site = _first(a.trace.sites, stack), _first(b.trace.sites, other)
            try:
                self._axes[stack] = alignment.axes(site, other_site, should_stop)
                self._others[stack] = other
            except InputError as error:
                if str(error) not in self.why_not:
                    self.why_not.append(str(error))
        wrong = why_not_by_index(a, b, stacks)
        self.why_not_by_index = wrong if matching == "index" else ""
        self.matching: Matching | None = ("similarity" if wrong else matching) if self._others else None
        self.matches: list[Match] = []
        self.matched_over = 0
        self._values: dict[tuple[SiteRef, int], float] = {}
        self._similar: list[Similarity] = []
        if self.matching == "similarity":
            self._similar = [
                Similarity(self._a, self._b, stack, other, self._axes[stack]) for stack, other in self._others.items()
            ]
            self.matched_over = min(len(similar.places) for similar in self._similar)
        elif self.matching == "index":
            sites = [site for site in self._a.sites if site.stack in self._others]
            self.matches = [match for site in sites for match in by_index([site], self._others[site.stack])]
        pairs = sum(site.heads * site.queries * site.keys for site in self._a.sites if site.stack in self._others)
        super().__init__(2 * pairs + sum(similar.work for similar in self._similar))

    @property
    def is_matched(self) -> bool:
        """Whether it is known which heads are held against which."""
        return bool(self.matches) or self.is_whole

    def compares(self, stack: str) -> bool:
        """Whether heads of this stack of A are held against any of B."""
        return stack in self._others

    def of(self, site: SiteRef, head: int) -> Match | None:
        """The counterpart of one head of A, where it is known and there is one."""
        return next((match for match in self.matches if (match.site, match.head) == (site, head)), None)

    def view(self) -> tuple[HeadChange, ...]:
        """What is known so far."""
        return tuple(
            HeadChange(
                site=match.site,
                head=match.head,
                other_site=match.other_site,
                other_head=match.other_head,
                change=self._values.get((match.site, match.head), float("nan")),
                similarity=match.similarity,
            )
            for match in self.matches
        )

    def _run(self) -> Iterator[int]:
        for similar in self._similar:
            yield from similar.run()
        if self._similar:
            found = {(match.site, match.head): match for similar in self._similar for match in similar.found}
            every = [(site.ref, head) for site in self._a.sites for head in range(site.heads)]
            self.matches = [found[place] for place in every if place in found]
            self._similar = []
        for site in self._a.sites:
            if matches := [match for match in self.matches if match.site == site.ref]:
                yield from self._site(site, matches)

    def _site(self, site: Site, matches: list[Match]) -> Iterator[int]:
        axes = self._axes[site.stack]
        queries = PlacesOf(axes[0], "a"), PlacesOf(axes[0], "b")
        keys = PlacesOf(axes[1], "a"), PlacesOf(axes[1], "b")
        shared = compared_queries(self._a, self._b, site, _first(self._b.sites, self._others[site.stack]), axes)
        x = self._a.at(site, 0)
        heads = [match.head for match in matches]
        by_site: dict[SiteRef, list[int]] = {}  # of B's sites, which of `matches` are in it
        for i, match in enumerate(matches):
            by_site.setdefault(match.other_site, []).append(i)
        step = max(1, _BLOCK.on(x.query.device) // max(1, len(heads) * max(len(axes[1]), x.keys)))
        total = np.zeros(len(heads))
        for first in range(0, len(axes[0]), step):
            end = min(first + step, len(axes[0]))
            if bool(shared[first:end].any()):
                with torch.no_grad():
                    ours = place_weights(x, heads, queries[0], keys[0], first, end)
                    theirs = torch.empty_like(ours)
                    for ref, places in by_site.items():
                        of_b = [matches[i].other_head for i in places]
                        y = self._b.at(ref, 0)
                        theirs[places] = place_weights(y, of_b, queries[1], keys[1], first, end).to(ours.device)
                    apart = (ours - theirs).abs().sum(-1) + (ours.sum(-1) - theirs.sum(-1)).abs()
                    total += 0.5 * apart.cpu()[:, shared[first:end]].double().sum(-1).numpy()
            yield 2 * len(heads) * (end - first) * x.keys
        count = int(shared.sum())
        for match, value in zip(matches, total, strict=True):
            self._values[match.site, match.head] = min(1.0, float(value) / count) if count else float("nan")


def _first(sites: tuple[Site, ...], stack: str) -> Site:
    return next(site for site in sites if site.stack == stack)
