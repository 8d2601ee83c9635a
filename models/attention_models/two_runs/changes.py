"""How much every head of A differs from its counterpart in B, worked out in parts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from attention_models.attention.blocks import BlockSize
from attention_models.attention.incremental import IncrementalWork
from attention_models.forward.current_run import CurrentRun
from attention_models.protocol.errors import InputError
from attention_models.protocol.two_runs import HeadChange, Matching
from attention_models.protocol.values import Site, SiteRef
from attention_models.protocol.work import ShouldStop, never
from attention_models.two_runs.axes import (
    Alignment,
    Axes,
    compared_queries,
    counterpart_stacks,
    why_no_counterparts,
    why_not_by_index,
)
from attention_models.two_runs.matching import Match, Similarity, by_index
from attention_models.two_runs.merging import PlacesOf, place_weights

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
