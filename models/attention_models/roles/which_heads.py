"""Which heads do this: every head of a run, scored by what it attends to.

Weights are made a few rows at a time from what the trace keeps, so that no head's map is held whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.incremental import BlockSize, IncrementalWork
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.errors import InputError
from attention_models.protocol.roles import HeadQuestion, WhichHeadsRequest, WhichHeadsView, ranked_heads, why_not
from attention_models.protocol.values import Site, SiteRef, read_only
from attention_models.roles.counting import Asked, Tally, visible_cells
from attention_models.roles.patterns import CELLS
from attention_models.roles.token_features import UNORDERED, SiteTokenFeatures

_BLOCK = BlockSize(1 << 20)  # weights of all heads that are held at once
_OTHER = "The question is about another stack."


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What `which_heads` found."""

    scores: np.ndarray  # (sites, heads) float64; NaN where a site cannot be asked, or has fewer heads
    even: np.ndarray  # (sites,) float64: what a head would score that attends evenly to all it can see
    queries: np.ndarray  # (sites,) int: how many queries were counted
    why: tuple[str, ...]  # of each site a sentence where it cannot be asked, else ""

    def ranked(self, sites: tuple[Site, ...], most: int = 10) -> list[tuple[SiteRef, int, float]]:
        """The heads with the highest scores, that first."""
        return ranked_heads(self.scores, [site.ref for site in sites], most)


@dataclass(frozen=True, slots=True, eq=False)
class Begun:
    """A question as far as it is answered."""

    question: HeadQuestion
    work: AskingHeads


def answer(request: WhichHeadsRequest, context: Context) -> WhichHeadsView:
    """What is there once a moment more was spent on it."""
    run = context.run(request.run)
    begun = run.kept.get(Begun)
    if begun is None or begun.question != request.question:
        begun = run.kept.put(Begun(request.question, AskingHeads(run.model, run.trace, request.question)))
    context.report("Asking every head", begun.work.done or None)
    with run.kept.unless_it_fails(Begun):
        begun.work.advance(run.work_per_answer, context.should_stop)
    found = begun.work.found()
    return WhichHeadsView(
        request=request,
        scores=read_only(found.scores),
        even=read_only(found.even),
        queries=read_only(found.queries),
        why=found.why,
        done=begun.work.done,
    )


def which_heads(model: Model, trace: Trace, question: HeadQuestion | str) -> Answer:
    """How much each head of `trace`, a run of `model`, does what is asked.

    Args:
        question: a `HeadQuestion`, or the name of a pattern: "previous", "self", "first", "special", "copy",
            "induction", "next" or "rare".

    Raises:
        ValueError: there is no such pattern, or no such question.
        InputError: a cell, row or column that the run does not have.
    """
    if not isinstance(question, HeadQuestion | str):
        raise ValueError(f"A question is a HeadQuestion or the name of a pattern, not a {type(question).__name__}.")
    work = AskingHeads(model, trace, HeadQuestion(question) if isinstance(question, str) else question)
    work.advance()
    return work.found()


class AskingHeads(IncrementalWork):
    """Scores every head, some rows at a time. Raises InputError where the run has nothing that is asked about."""

    def __init__(self, model: Model, trace: Trace, question: HeadQuestion) -> None:
        self._trace, self._question = trace, question
        self._sides = SiteTokenFeatures(model)
        self._why = tuple(self._why_not(model, site) for site in trace.sites)
        self._tallies = [Tally(1, site.heads) for site in trace.sites]
        self._row = self._compared_row()
        self._check()
        asked = [site for site, why in zip(trace.sites, self._why, strict=True) if not why]
        rows = 1 if question.kind in ("cell", "row") else None
        super().__init__(sum(site.heads * (rows or site.queries) * site.keys for site in asked))
        self._ended = not asked

    @property
    def done(self) -> float:
        return 1.0 if self._ended else self.did / self.work

    def found(self) -> Answer:
        heads = max((site.heads for site in self._trace.sites), default=0)
        scores = np.full((len(self._tallies), heads), np.nan)
        even, queries = np.full(len(scores), np.nan), np.zeros(len(scores), int)
        for i, tally in enumerate(self._tallies):
            scores[i, : tally.sums.shape[1]] = tally.scores[0]
            even[i], queries[i] = tally.even[0], int(tally.counts[0].max())
        return Answer(scores, even, queries, self._why)

    def _why_not(self, model: Model, site: Site) -> str:
        question = self._question
        if not question.is_pattern:
            assert question.site is not None
            return "" if site.stack == question.site.stack else _OTHER
        if question.kind == "rare" and not self._sides.ordered and model.info.family != "vision":
            return UNORDERED
        return why_not(question.kind, model.info, site.stack)

    def _check(self) -> None:
        question, sites = (
            self._question,
            [site for site, why in zip(self._trace.sites, self._why, strict=True) if not why],
        )
        if question.is_pattern or not sites:
            return
        queries, keys = sites[0].queries, sites[0].keys
        cells = question.cells if question.kind == "painted" else ((question.query, question.key),)
        for query, key in cells:
            if not (0 <= query < queries and 0 <= key < keys):
                raise InputError(f"There is no cell ({query}, {key}): the map is {queries:,} × {keys:,}.")
        if not cells:
            raise InputError("No cell is painted yet. Paint those that a head should attend to.")

    def _compared_row(self) -> Tensor | None:
        """Of a question about a row the weights (keys,) that those of other heads are held beside."""
        question = self._question
        if question.kind != "row":
            return None
        assert question.site is not None
        x = self._trace.at(question.site, question.head)
        if not 0 <= question.query < x.queries:
            raise InputError(f"There is no row {question.query}: the map has {x.queries:,}.")
        return attention.weights(x, Part([question.head], [question.query]))[0, 0, 0]

    def _run(self) -> Iterator[int]:
        for site, x, why, tally in zip(self._trace.sites, self._trace.inputs, self._why, self._tallies, strict=True):
            if not why:
                yield from self._site(site, x, tally)

    def _site(self, site: Site, x: AttentionInputs, tally: Tally) -> Iterator[int]:
        kind, query = self._question.kind, self._question.query
        if kind in ("cell", "row"):
            row = slice(query, query + 1)
            if kind == "row":
                self._compare(x, row, tally)
            else:
                self._weigh(site, x, row, slice(0, x.keys), tally)
            yield x.heads * x.keys
            return
        step = max(1, _BLOCK.on(x.query.device) // (x.heads * x.keys))
        for start in range(0, x.queries, step):
            rows = slice(start, min(start + step, x.queries))
            keys = attention.reach(x, Part(None, rows))
            if keys.start < keys.stop:
                self._weigh(site, x, rows, keys, tally)
            yield x.heads * (rows.stop - rows.start) * x.keys

    def _weigh(self, site: Site, x: AttentionInputs, rows: slice, keys: slice, tally: Tally) -> None:
        visible = visible_cells(x, rows, keys)
        q, k = self._sides.of([self._trace], site, x.query.device)
        w = attention.weights(x, Part(None, rows, keys))
        if self._question.is_pattern:
            asked = Asked.of(CELLS[self._question.kind](q, k, rows, keys)[None], visible, q.real[:, rows])
        else:
            cells = self._cells(rows, keys, x.query.device) & q.real[0, rows, None]
            asked = _asked_of_cells(cells, visible, masked_too=self._question.kind == "cell")
        tally.add(asked, w)

    def _compare(self, x: AttentionInputs, rows: slice, tally: Tally) -> None:
        assert self._row is not None
        row = self._row.to(x.query.device)
        w = attention.weights(x, Part(None, [rows.start]))[0, :, 0]  # (heads, keys)
        visible = visible_cells(x, rows, slice(0, x.keys))[0, :, 0].float()  # (heads or 1, keys)
        evenly = visible / visible.sum(dim=-1, keepdim=True).clamp(min=1)
        tally.sums += torch.minimum(w, row).sum(dim=-1)[None].cpu().numpy()
        tally.even_sums += torch.minimum(evenly, row).sum(dim=-1)[None].cpu().numpy()
        tally.counts += 1

    def _cells(self, rows: slice, keys: slice, device: torch.device) -> Tensor:
        """(rows, keys) bool: the cell, the column, or the painted cells."""
        cells = torch.zeros(rows.stop - rows.start, keys.stop - keys.start, dtype=torch.bool, device=device)
        question = self._question
        if question.kind == "column":
            if keys.start <= question.key < keys.stop:
                cells[:, question.key - keys.start] = True
            return cells
        painted = question.cells if question.kind == "painted" else ((question.query, question.key),)
        here = [(q, k) for q, k in painted if rows.start <= q < rows.stop and keys.start <= k < keys.stop]
        for query, key in here:
            cells[query - rows.start, key - keys.start] = True
        return cells


def _asked_of_cells(cells: Tensor, visible: Tensor, masked_too: bool) -> Asked:
    """As `Asked.of`, of cells that a person named: a query also counts that has no choice.

    With `masked_too` one also counts that does not see its cell, whose weight is 0.
    """
    hit = (cells & visible)[None].float()
    has = (cells.any(dim=-1).expand(visible.shape[:-1]) if masked_too else (cells & visible).any(dim=-1)).float()
    shares = hit.sum(dim=-1) / visible.sum(dim=-1).clamp(min=1)
    return Asked(hit, has.sum(dim=(0, 2))[None], shares.sum(dim=(1, 3)))
