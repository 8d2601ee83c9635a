"""Two runs held against each other: what is worked out of them once, and what one request is shown of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from attention_models.attention.inputs import AttentionInputs
from attention_models.attention.pooling import squares
from attention_models.compare.axes import Alignment, Axes
from attention_models.compare.changes import Changes
from attention_models.compare.merging import PlacesOf, place_masked, place_weights
from attention_models.compare.outputs import Saying, loss_of, said_at, said_by_both
from attention_models.engine import running
from attention_models.files.fingerprint import content_hash_at_once
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.predictions import answering_position
from attention_models.forward.trace import Trace
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Adapter, describe
from attention_models.protocol.prompt import plain_text, shown_of
from attention_models.protocol.request import Cancelled, ShouldStop, never
from attention_models.protocol.two_runs import (
    AlignedMaps,
    Matching,
    OtherRun,
    RunOutput,
    RunSide,
    SaidByBoth,
    TwoRunsRequest,
    TwoRunsView,
)
from attention_models.protocol.values import SiteRef, Tile, is_long, read_only, top_level

# Weights of a run held at once.
_BLOCK = 1 << 20

_Side = tuple[AttentionInputs, int, PlacesOf, PlacesOf]


def aligned_maps(
    a: tuple[AttentionInputs, int],
    b: tuple[AttentionInputs, int],
    axes: Axes,
    tile: Tile | None = None,
    should_stop: ShouldStop = never,
) -> AlignedMaps:
    """The weights of two heads, (what they depend on, head) each.

    Args:
        tile: the part that is wanted of a long map; ignored where it is not long.

    Raises:
        IndexError: the map has no such tile.
        Cancelled: `should_stop()` was true between two blocks.
    """
    down, across = len(axes[0]), len(axes[1])
    long = is_long(down, across)
    if not long:
        tile, rows, columns, cell = None, slice(0, down), slice(0, across), 1
    else:
        tile = tile or Tile(top_level(down, across), 0, 0)
        rows, columns, cell = tile.rows(down), tile.columns(across), tile.cell
        if min(tile.level, tile.row, tile.column) < 0 or rows.start >= rows.stop or columns.start >= columns.stop:
            raise IndexError(f"There is no {tile} in a map of {down} x {across} places.")
    step = max(cell, _BLOCK // across // cell * cell)
    sides = [(*a, PlacesOf(axes[0], "a"), PlacesOf(axes[1], "a")), (*b, PlacesOf(axes[0], "b"), PlacesOf(axes[1], "b"))]
    parts = []
    for first in range(rows.start, rows.stop, step):
        if should_stop():
            raise Cancelled
        parts.append(_block(sides, first, min(first + step, rows.stop), columns, cell))
    found = [read_only(np.concatenate(arrays)) for arrays in zip(*parts, strict=True)]
    difference = found[2]
    size = np.abs(np.where(np.isnan(difference), 0.0, difference))
    at = divmod(int(size.argmax()), size.shape[1])
    largest = float(size[at])
    place = (rows.start + at[0] * cell, columns.start + at[1] * cell)
    return AlignedMaps(
        a=found[0],
        b=found[1],
        difference=difference,
        masked_a=found[3],
        masked_b=found[4],
        largest=largest,
        largest_at=place if largest > 0 else None,
        tile=tile,
        cell=cell,
    )


@torch.no_grad()
def _block(sides: Sequence[_Side], first: int, end: int, columns: slice, cell: int) -> tuple[np.ndarray, ...]:
    """Both, their difference, and what is masked of either, of the query places from `first` to before `end`."""
    weights, masked = [], []
    for x, head, queries, keys in sides:
        there = (queries.counts[first:end, None] > 0) & (keys.counts[columns] > 0)
        w = place_weights(x, [head], queries, keys, first, end)[0].cpu()[:, columns]
        weights.append(torch.where(there, w, torch.nan))
        masked.append(place_masked(x, head, queries, keys, first, end)[:, columns] | ~there)
    difference = weights[0] - weights[1]
    if cell > 1:
        high, low = _largest(difference, cell), -_largest(-difference, cell)
        difference = torch.where(high.abs() >= low.abs(), high, low)
        weights = [_largest(w, cell) for w in weights]
        masked = [squares((~m).float()[None], cell, "max")[0] == 0 for m in masked]
    gone = [torch.isnan(w) for w in weights]
    hidden = [m & ~g for m, g in zip(masked, gone, strict=True)]
    return tuple(t.numpy() for t in (*weights, difference, *hidden))


def _largest(t: Tensor, cell: int) -> Tensor:
    """The largest number of each square; NaN of one that has none."""
    found = squares(torch.where(torch.isnan(t), -torch.inf, t)[None], cell, "max")[0]
    return torch.where(found == -torch.inf, torch.nan, found)


Head = tuple[SiteRef, int]


class TwoRuns:
    """A and B; `b` is `a` where it is the same run."""

    def __init__(
        self,
        a: CurrentRun,
        b: CurrentRun,
        other: OtherRun | None,
        matching: Matching,
        should_stop: ShouldStop = never,
    ) -> None:
        self.a, self.b, self.other, self.matching = a, b, other, matching
        self._alignment = Alignment(a, b)
        # two heads of one run are not about its other heads
        self._changes = None if other is None else Changes(a, b, self._alignment, matching, should_stop)
        self._sides = _side_of(a), _side_of(b)
        self._losses = loss_of(a.model, a.trace), loss_of(b.model, b.trace)
        self._said: dict[tuple[int, int, int], Saying] = {}
        self._said_by_both: tuple[tuple[Saying, Saying], tuple[SaidByBoth, ...]] | None = None
        self._maps: tuple[object, AlignedMaps] | None = None

    @property
    def done(self) -> float:
        changes = self._changes
        return 1.0 if changes is None or changes.is_whole else changes.did / changes.work

    def advance(self, most: float = float("inf"), should_stop: ShouldStop = never) -> None:
        """Compare at least `most` weights more of all heads.

        Raises:
            Cancelled: `should_stop()` was true. What was computed stays.
        """
        if self._changes is not None:
            self._changes.advance(most, should_stop)

    def view(self, request: TwoRunsRequest, should_stop: ShouldStop = never) -> TwoRunsView:
        """What is known so far.

        Raises:
            IndexError: A has no such head, or the map no such tile.
        """
        changes = self._changes
        why_not = [] if changes is None else list(changes.why_not)
        ours = None if request.site is None else (request.site, request.head)
        theirs = self._counterpart(request, ours, why_not)
        axes, maps = self._maps_of(ours, theirs, request, why_not, should_stop)
        says = self._says(request, should_stop)
        return TwoRunsView(
            request=request,
            a=_with_head(self._saying_side(0, says[0]), self.a.trace, ours),
            b=_with_head(self._saying_side(1, says[1]), self.b.trace, theirs),
            same_checkpoint=self.a.model is self.b.model,
            same_run=self.a is self.b,
            said=self._both(says),
            queries=None if axes is None else axes[0],
            keys=None if axes is None else axes[1],
            maps=maps,
            matching=None if changes is None else changes.matching,
            why_not_by_index="" if changes is None else changes.why_not_by_index,
            changes=() if changes is None else changes.view(),
            matched_over=0 if changes is None else changes.matched_over,
            why_not=tuple(dict.fromkeys(why_not)),
            remarks=tuple(self._remarks(axes)),
            done=self.done,
        )

    def _counterpart(self, request: TwoRunsRequest, ours: Head | None, why_not: list[str]) -> Head | None:
        """The head of B that is shown; None where there is none, or none is known yet."""
        chosen = request.other_site or (request.site if request.other_head is not None or self.other is None else None)
        if chosen is not None:
            head = request.head if request.other_head is None else request.other_head
            site = next((site for site in self.b.trace.sites if site.ref == chosen), None)
            if site is not None and 0 <= head < site.heads:
                return chosen, head
            why_not.append(f"{self.b.model.info.name} has no {chosen.stack} layer {chosen.layer}, head {head}.")
            return None
        match = None if ours is None or self._changes is None else self._changes.of(*ours)
        return None if match is None else (match.other_site, match.other_head)

    def _maps_of(
        self,
        ours: Head | None,
        theirs: Head | None,
        request: TwoRunsRequest,
        why_not: list[str],
        should_stop: ShouldStop,
    ) -> tuple[Axes | None, AlignedMaps | None]:
        if ours is None or theirs is None:
            return None, None
        a, b = self.a.trace, self.b.trace
        try:
            axes = self._alignment.axes(a.sites[a.index(ours[0])], b.sites[b.index(theirs[0])], should_stop)
        except InputError as error:
            why_not.append(str(error))
            return None, None
        key = ours, theirs, request.tile
        if self._maps is None or self._maps[0] != key:  # the same while changes are computed on
            heads = (a.at(*ours), ours[1]), (b.at(*theirs), theirs[1])
            self._maps = key, aligned_maps(*heads, axes, request.tile, should_stop)
        return axes, self._maps[1]

    def _says(self, request: TwoRunsRequest, should_stop: ShouldStop) -> tuple[Saying, Saying]:
        a, b = self.a, self.b
        position = answering_position(a.model, a.trace) if request.position is None else request.position
        other = answering_position(b.model, b.trace)
        if request.position is not None:
            axis = self._alignment.predicting(should_stop)
            stand_for = range(0) if axis is None else axis.b_of(position)
            other = stand_for[-1] if stand_for else other
        return self._saying(0, position, request.top), self._saying(1, other, request.top)

    def _saying_side(self, side: int, says: Saying) -> RunSide:
        return replace(self._sides[side], output=replace(says.output, loss=self._losses[side]))

    def _saying(self, side: int, position: int, top: int) -> Saying:
        key = side, position, top
        if key not in self._said:
            run = (self.a, self.b)[side]
            self._said[key] = said_at(run.model, run.trace, position, top)
        return self._said[key]

    def _both(self, says: tuple[Saying, Saying]) -> tuple[SaidByBoth, ...]:
        if self._said_by_both is None or self._said_by_both[0] != says:  # the same while changes are computed on
            self._said_by_both = says, said_by_both(*says)
        return self._said_by_both[1]

    def _remarks(self, axes: Axes | None) -> list[str]:
        a, b = self.a.model, self.b.model
        found = []
        families = {a.info.family, b.info.family}
        if "masked" in families and families & {"causal", "seq2seq"}:
            masked, other = (a, b) if a.info.family == "masked" else (b, a)
            found.append(
                f"{masked.info.name} says the token at a position, {other.info.name} the one that comes after it."
            )
        if axes is not None and not (axes[0].is_single and axes[1].is_single):
            found.append(
                "Where several tokens of one run stand for one of the other, weights from them are averaged and "
                "weights to them summed."
            )
        if a.dtype != b.dtype:
            found.append(f"A runs in {a.dtype_name}, B in {b.dtype_name}: part of what differs is rounding.")
        changes = self._changes
        if changes is not None and changes.is_matched and changes.matching == "similarity":
            heads = sum(site.heads for site in self.a.trace.sites if changes.compares(site.stack))
            if left := heads - len(changes.matches):
                found.append(f"{left:,} heads of A have no counterpart: {b.info.name} has fewer.")
        return found


def _side_of(run: CurrentRun) -> RunSide:
    """All that does not depend on what is asked."""
    model, trace, info = run.model, run.trace, run.model.info
    is_off = any(isinstance(item, Adapter) and not item.on for item in trace.interventions)
    return RunSide(
        reference=info.reference,
        name=info.name,
        family=info.family,
        model_type=info.model_type,
        stacks=info.stacks,
        files=tuple(content_hash_at_once(info).items()),
        device=str(model.device),
        dtype=model.dtype_name,
        text=run.inputs.picture if info.family == "vision" else plain_text(shown_of(run.inputs.prompt)),
        written=running.said_by_decoder(run) if model.seq2seq else "",
        tokens=trace.tokens,
        source=trace.source,
        sites=trace.sites,
        seen=trace.picture,
        interventions=tuple(describe(item) for item in trace.interventions),
        adapter="" if info.put_on is None or is_off else info.put_on.name,
        output=RunOutput(kind="none"),
    )


def _with_head(side: RunSide, trace: Trace, head: Head | None) -> RunSide:
    if head is None:
        return side
    ref, number = head
    if trace.sites[trace.index(ref)].is_long:
        return replace(side, site=ref, head=number)
    masked = trace.masked(ref, number)
    return replace(
        side,
        site=ref,
        head=number,
        weights=read_only(trace.weights(ref, number)),
        masked=None if masked is None else read_only(masked),
    )
