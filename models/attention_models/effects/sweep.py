"""Every head zeroed in turn, and what that does to a logit, a difference of two, or the loss.

Copies of the run go through the model as batches, each with another head off: what the head gives is 0 before it is
multiplied by W_O (Michel et al. 2019, "Are Sixteen Heads Really Better than One?"). Logits differ from those of one
copy alone by rounding, at most 1e-5 of the largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_models.effects.batched_runs import LOGIT_BYTES, BatchedRuns, Sweep, without_heads
from attention_models.effects.metric import (
    ResolvedMetric,
    aimed,
    loss_of_none,
    losses_of,
    of_logits,
    resolve,
    said,
    view_of,
)
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.run import run_alone
from attention_models.forward.trace import Trace
from attention_models.protocol.effects import (
    EffectsRequest,
    EffectsView,
    Measure,
    Metric,
    MetricValue,
    MetricView,
    SiteEffects,
)
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.request import ShouldStop, never
from attention_models.protocol.values import SiteRef, read_only
from attention_models.views.comparison import next_ids

KEPT_BYTES = 1 << 27
"""Logits of all heads at one position that are kept, so that another token is answered at once."""


def answer(request: EffectsRequest, context: Context) -> EffectsView:
    """As far as it is computed once a batch more was run."""
    current = context.run(request.run)
    aim = resolve(current.model, current.trace, request.aim)
    kept = current.kept.get(HeadSweep)
    if kept is None or not kept.answers(aim):
        kept = current.kept.put(HeadSweep(BatchedRuns.of_run(current), aim))
    kept.advance(context.should_stop, context.report)
    untouched = current.untouched(context.should_stop) if current.trace.interventions else None
    return kept.view(request, aim, untouched)


def head_effects(
    model: Model,
    text: Any,
    *,
    target: str | int | None = None,
    against: str | int | None = None,
    measure: Measure | None = None,
    position: int | None = None,
    written: Any = None,
    interventions: tuple[Intervention, ...] = (),
    should_stop: ShouldStop = never,
) -> EffectsView:
    """The change of a logit, a difference or the loss where each head of `model` is zeroed, one at a time.

        effects = head_effects(model, "Tom and Anna went to the park. Anna gave the ball to", target=" Tom")
        effects.of(SiteRef("decoder", 5))        # (heads,) float64: after less before
        effects.largest                          # the head that matters most

    Args:
        target: a token as it stands in a text, " Tom", a class, or an id; None for the likeliest.
        against: another one: the effect is on the difference of their logits.
        measure: "loss" for the text's mean cross-entropy in nats.
        position: where it is said; None for the first mask of a masked model, else for the last token.
        written: what the decoder of an encoder-decoder model has written.
        interventions: the run that each head is taken out of.

    Raises:
        InputError: the model says nothing there, its heads cannot be reached, or a token is not one.
    """
    trace = run_alone(model, text, target=written, interventions=interventions, should_stop=should_stop)
    return effects_of(model, trace, text, written, aimed(target, against, measure, position), should_stop)


def effects_of(
    model: Model, trace: Trace, text: Any, written: Any, aim: Metric, should_stop: ShouldStop = never
) -> EffectsView:
    """As `head_effects`, of a run that is there."""
    settled = resolve(model, trace, aim)
    sweep = HeadSweep(BatchedRuns.of(model, trace, text, written), settled)
    while not sweep.is_whole:
        sweep.advance(should_stop)
    return sweep.view(EffectsRequest(run=0, aim=aim), settled)


Unit = tuple[SiteRef, int]
"""A head."""


class HeadSweep(Sweep[Unit]):
    """Every head of a run zeroed once. What was computed answers for any token at the position."""

    label = "Ablating every head"

    def __init__(self, copies: BatchedRuns, aim: ResolvedMetric) -> None:
        trace, model = copies.trace, copies.model
        super().__init__(copies, [(site.ref, head) for site in trace.sites for head in range(site.heads)])
        self._aim = aim
        self._has_loss = not loss_of_none(model, trace) and copies.logit_bytes <= LOGIT_BYTES
        self._wanted = next_ids(trace) if self._has_loss else {}
        row = 4 * trace.logits_at([aim.position]).shape[1]
        self._keeps_all = row * len(self.units) <= KEPT_BYTES
        self._logits: list[Tensor | None] = [None] * len(self.units)  # (vocabulary,) float32, of each head
        self._values = np.full(len(self.units), np.nan)  # where not all logits are kept, those of the aim
        self._losses = np.full(len(self.units), np.nan)
        # of the aim that was shown last
        self._shown: tuple[ResolvedMetric, MetricView, MetricValue, MetricValue | None] | None = None

    def answers(self, aim: ResolvedMetric) -> bool:
        """Whether what it computes says something of `aim` too."""
        if aim.measure == "loss":
            return self._has_loss or self._aim == aim
        return aim.position == self._aim.position and (self._keeps_all or aim == self._aim)

    def view(self, request: EffectsRequest, aim: ResolvedMetric, untouched: Trace | None = None) -> EffectsView:
        """What is computed so far; later work leaves it as it is. `untouched` is the run without its interventions."""
        trace = self._copies.trace
        shown, now, before = self._said(aim, untouched)
        effects = self._after(aim) - shown.value
        ends = np.cumsum([site.heads for site in trace.sites])
        parts = np.split(effects, ends[:-1])
        return EffectsView(
            request=request,
            aim=shown,
            now=now,
            before=before,
            sites=tuple(SiteEffects(s.ref, read_only(part)) for s, part in zip(trace.sites, parts, strict=True)),
            done=self.done,
        )

    def _said(self, aim: ResolvedMetric, untouched: Trace | None) -> tuple[MetricView, MetricValue, MetricValue | None]:
        if self._shown is None or self._shown[0] != aim:
            model, trace = self._copies.model, self._copies.trace
            view = view_of(model, trace, aim)
            before = None if untouched is None else said(model, untouched, view_of(model, untouched, aim))
            self._shown = aim, view, said(model, trace, view), before
        return self._shown[1:]

    def _after(self, aim: ResolvedMetric) -> np.ndarray:
        if aim.measure == "loss":
            return self._losses.copy()
        if not self._keeps_all:
            return self._values.copy()
        values = np.full(len(self.units), np.nan)
        for i, logits in enumerate(self._logits):
            if logits is not None:
                values[i] = float(of_logits(logits[None], aim)[0])
        return values

    @torch.no_grad()
    def _compute(self, start: int, units: Sequence[Unit], should_stop: ShouldStop) -> None:
        position = self._aim.position
        wanted = None if self._has_loss else [position]
        logits = self._copies.run(len(units), [without_heads(units)], positions=wanted, should_stop=should_stop)
        place = position if wanted is None else 0
        there = logits[:, place] if logits.dim() == 3 else logits  # (copies, vocabulary)
        if self._keeps_all:
            self._logits[start : start + len(units)] = list(there.float().cpu())
        elif self._aim.measure != "loss":
            self._values[start : start + len(units)] = of_logits(there, self._aim).numpy()
        if self._has_loss:
            self._losses[start : start + len(units)] = losses_of(logits, self._wanted).numpy()
