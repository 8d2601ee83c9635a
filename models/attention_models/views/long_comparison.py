"""What interventions changed in a long text, worked out in parts; never more than a block of rows is held.

A head's weights are pooled to a picture of at most `TILE` x `TILE` squares: before and after to the largest of each
square, their difference to the one that is furthest from 0. The numbers of rows are those of whole rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.incremental import BlockSize, IncrementalWork
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.attention.pooling import squares
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.comparison import CompareRequest, CompareView
from attention_models.protocol.request import never
from attention_models.protocol.values import SiteRef, top_level
from attention_models.views.comparison import HeadFigures, LossInParts, PeeksInParts, compare, compare_view

# Weights of a run held at once.
_BLOCK = BlockSize(1 << 20)


def answer(request: CompareRequest, context: Context) -> CompareView:
    """One head beside the model as it is; of a long text, as far as it is computed once a moment more was spent."""
    run, should_stop = context.run(request.run), context.should_stop
    context.report("Comparing with the model as it is", request.have or None)
    before = run.untouched(should_stop)
    if not run.trace.sites[run.trace.index(request.site)].is_long:
        return compare(request, run.model, before, run.trace)
    with run.kept.unless_it_fails(LongComparison), run.kept_of_text.unless_it_fails(LossInParts):
        begun = run.kept.get_or_compute(
            LongComparison, lambda: LongComparison(run.model, before, run.trace, run.kept_of_text.get(LossInParts))
        )
        run.keep_untouched()  # the runs that follow are compared with it too
        run.kept_of_text.put(begun.loss_before)
        return begun.answer(request, run.work_per_answer, should_stop)


class HeadChange(IncrementalWork):
    """One head in two runs of the same text. NaN (and no dead row) where nothing is computed yet.

    Attributes:
        cell: weights along the side of a square.
        pictures: before and after, (2, down, across) float32.
        masked: of each, the squares that are masked as a whole, (2, down, across) bool.
        difference: (down, across) float32, after - before.
        entropy: bits of each row before and after, (2, queries) float32.
        top: the largest weight of each row, (2, queries) float32.
        top_key: its key, (2, queries) int.
        dead: queries to which nothing is visible after, rising.
    """

    def __init__(self, before: AttentionInputs, after: AttentionInputs, head: int) -> None:
        self._inputs, self._head = (before, after), head
        self.cell = 1 << top_level(after.queries, after.keys)
        shape = (-(-after.queries // self.cell), -(-after.keys // self.cell))
        self.pictures = np.full((2, *shape), np.nan, np.float32)
        self.masked = np.zeros((2, *shape), bool)
        self.difference = np.full(shape, np.nan, np.float32)
        self.entropy = np.full((2, after.queries), np.nan, np.float32)
        self.top = np.full((2, after.queries), np.nan, np.float32)
        self.top_key = np.zeros((2, after.queries), np.int64)
        self.dead: list[int] = []
        super().__init__(after.queries * after.keys)

    def figures(self) -> HeadFigures:
        """What is computed so far; later work leaves it as it is."""
        return HeadFigures(
            weights=tuple(self.pictures.copy()),
            masked=tuple(self.masked.copy()),
            difference=self.difference.copy(),
            largest_difference=float(np.nanmax(np.abs(self.difference), initial=0.0)),
            entropy=tuple(self.entropy.copy()),
            top_key=tuple(self.top_key.copy()),
            top=tuple(self.top.copy()),
            dead=tuple(self.dead),
        )

    def _run(self) -> Iterator[int]:
        x = self._inputs[1]
        step = max(self.cell, _BLOCK.on(x.query.device) // x.keys // self.cell * self.cell)
        for start in range(0, x.queries, step):
            rows = slice(start, min(start + step, x.queries))
            self._compute(rows)
            yield (rows.stop - rows.start) * x.keys

    @torch.no_grad()
    def _compute(self, rows: slice) -> None:
        """The whole squares of some rows."""
        before, after = self._inputs
        down = slice(rows.start // self.cell, -(-rows.stop // self.cell))
        reaches = [attention.reach(x, Part([self._head], rows)) for x in self._inputs]
        # whole squares, from the first visible key of either run to the last
        first = min(reach.start for reach in reaches) // self.cell * self.cell
        keys = slice(first, max(first, *(reach.stop for reach in reaches)))
        across = slice(keys.start // self.cell, -(-keys.stop // self.cell))
        self.pictures[:, down], self.difference[down], self.masked[:, down] = 0.0, 0.0, True
        self.entropy[:, rows] = self.top[:, rows] = 0.0
        if keys.start < keys.stop:
            w = [self._look(0, before, rows, keys, down, across)]
            w.append(w[0] if after is before else self._look(1, after, rows, keys, down, across))
            change = (w[1] - w[0])[None]  # (1, rows, keys)
            high, low = squares(change, self.cell, "max")[0], -squares(-change, self.cell, "max")[0]
            self.difference[down, across] = torch.where(high >= -low, high, low).cpu().numpy()
        if after is before:  # nothing is changed
            self.pictures[1, down], self.masked[1, down] = self.pictures[0, down], self.masked[0, down]
            self.entropy[1, rows], self.top[1, rows] = self.entropy[0, rows], self.top[0, rows]
            self.top_key[1, rows] = self.top_key[0, rows]
        self.dead += self._dead(rows, reaches[1])

    def _dead(self, rows: slice, reach: slice) -> list[int]:
        """Those of `rows` to which nothing is visible after; what is visible is within `reach`."""
        if reach.start == reach.stop:
            return list(range(rows.start, rows.stop))
        masked = attention.masked_cells(self._inputs[1], Part([self._head], rows, reach))
        if masked is None:
            return []
        dead = masked.expand(1, 1, rows.stop - rows.start, reach.stop - reach.start)[0, 0].all(dim=-1)
        found: list[int] = (torch.nonzero(dead)[:, 0] + rows.start).tolist()
        return found

    def _look(self, side: int, x: AttentionInputs, rows: slice, keys: slice, down: slice, across: slice) -> Tensor:
        """What one run says of some rows; its weights, (rows, keys)."""
        w = attention.weights(x, Part([self._head], rows, keys))[0, 0]
        top, key = w.max(dim=-1)
        self.top[side, rows], self.top_key[side, rows] = top.cpu().numpy(), key.cpu().numpy() + keys.start
        bits = torch.special.entr(w).sum(dim=-1) / math.log(2)
        self.entropy[side, rows] = bits.cpu().numpy() + 0.0  # a row of certainty has 0, not -0
        self.pictures[side, down, across] = squares(w[None], self.cell, "max")[0].cpu().numpy()
        masked = attention.masked_cells(x, Part([self._head], rows, keys))
        seen = torch.ones_like(w) if masked is None else (~masked).expand(1, 1, *w.shape)[0, 0].float()
        self.masked[side, down, across] = (squares(seen[None], self.cell, "max")[0] == 0).cpu().numpy()
        return w


class LongComparison:
    """A long run beside the same text as it is. What was worked out stays for another position or another head."""

    def __init__(self, model: Model, before: Trace, after: Trace, loss_before: LossInParts | None = None) -> None:
        """`loss_before` is that of an earlier run beside the same `before`."""
        self._model, self._before, self._after = model, before, after
        self.loss_before = loss_before or LossInParts(model, before)
        self._loss_after = self.loss_before if after is before else LossInParts(model, after)
        self._peeks = PeeksInParts(before, after)
        self._key: tuple[SiteRef, int] | None = None
        self._head: HeadChange | None = None

    def answer(
        self, request: CompareRequest, most: float = float("inf"), should_stop: Callable[[], bool] = never
    ) -> CompareView:
        """What is known once at least `most` weights more were computed.

        Raises:
            IndexError: no such site, head or position.
            Cancelled: `should_stop()` was true between two blocks. What was computed stays.
        """
        before, after = (trace.at(request.site, request.head) for trace in (self._before, self._after))
        if self._head is None or self._key != (request.site, request.head):
            self._key, self._head = (request.site, request.head), HeadChange(before, after, request.head)
        head = self._head
        parts: tuple[IncrementalWork, ...] = tuple(
            dict.fromkeys((head, self.loss_before, self._loss_after, self._peeks))  # of an unchanged run one loss
        )
        for part in parts:
            most -= part.advance(most, should_stop)
        whole = all(part.is_whole for part in parts)
        return compare_view(
            request,
            self._model,
            self._before,
            self._after,
            head.figures(),
            (self.loss_before.value, self._loss_after.value),
            self._peeks.found,
            cell=head.cell,
            done=1.0 if whole else sum(part.did for part in parts) / sum(part.work for part in parts),
        )
