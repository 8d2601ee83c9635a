"""Activation patching: activations of one run copied into another, a place at a time.

Vig et al. 2020, "Investigating Gender Bias in Language Models Using Causal Mediation Analysis"; Meng et al. 2022,
"Locating and Editing Factual Associations in GPT".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.effects.batched_runs import BatchedRuns, Sweep
from attention_models.effects.metric import ResolvedMetric, aimed, losses_of, of_logits, resolve, value_of, view_of
from attention_models.forward.block_hooks import Edits, Entering, tensor_of, with_tensor
from attention_models.forward.capture import MixEdit
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.predictions import answering_position
from attention_models.forward.run import run_alone
from attention_models.forward.sublayers import Call, sublayers_of
from attention_models.forward.trace import Trace
from attention_models.protocol.batch import Batch
from attention_models.protocol.effects import BY_POSITION, Align, Measure, MetricView, Patched, PatchRequest, PatchView
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.request import ShouldStop, never
from attention_models.protocol.values import Site, SiteRef, Token, read_only
from attention_models.views.comparison import next_ids

Unit = tuple[int, list[int]]
"""A row of the map, and its columns that are patched together in one copy."""


def answer(request: PatchRequest, context: Context) -> PatchView:
    """As far as it is computed once a batch more was run."""
    current = context.run(request.run)
    kept = current.kept.get(PatchSweep)
    if kept is None or not kept.answers(request):
        if isinstance(current.text, Batch):
            raise InputError("Patching goes between two texts: run one text alone, and give the other here.")
        copies = BatchedRuns.of_run(current)
        written = current.written
        aim = resolve(current.model, current.trace, request.aim)
        other = run_alone(
            current.model,
            request.other,
            target=written,
            interventions=current.trace.interventions,
            should_stop=context.should_stop,
        )
        why = unlike(current.model, current.trace.tokens, other.tokens)
        if why and request.align == "same":
            shown = view_of(current.model, current.trace, aim)
            return _nothing(request, shown, len(current.trace.tokens), other, why)
        kept = current.kept.put(
            PatchSweep(request, copies, BatchedRuns.of(current.model, other, request.other, written))
        )
    kept.advance(context.should_stop, context.report)
    return kept.view(request)


def patch(
    model: Model,
    text: str,
    other: str,
    kind: Patched = "residual",
    *,
    target: str | int | None = None,
    against: str | int | None = None,
    measure: Measure | None = None,
    position: int | None = None,
    align: Align = "same",
    written: Any = None,
    interventions: tuple[Intervention, ...] = (),
) -> PatchView:
    """A logit of `text` where activations of `other` are copied into its run, one place at a time.

        view = patch(model, "Tom and Anna went. Anna gave it to", "Tom and Anna went. Tom gave it to", target=" Tom")
        view.values                 # (blocks, positions): the logit with the stream patched there
        view.shares                 # 0 as in the first run, 1 as in the other

    Args:
        kind: what is copied (`attention_models.protocol.effects.Patched`).
        align: which token stands for which where the texts are not of one length.

    Other arguments as in `ax.head_effects`.

    Raises:
        InputError: the texts are of different length and `align` does not say what to do, or as in `head_effects`.
    """
    traces = [run_alone(model, one, target=written, interventions=interventions) for one in (text, other)]
    aim = aimed(target, against, measure, position)
    request = PatchRequest(run=0, other=other, kind=kind, align=align, aim=aim)
    copies = [BatchedRuns.of(model, trace, one, written) for trace, one in zip(traces, (text, other), strict=True)]
    sweep = PatchSweep(request, *copies)
    while not sweep.is_whole:
        sweep.advance()
    return sweep.view(request)


def aligned(model: Model, here: Sequence[Token], there: Sequence[Token], align: Align) -> tuple[int | None, ...]:
    """Of each token here, which of the other text stands for it.

    Raises:
        InputError: "same", and they are not of one length.
    """
    why = unlike(model, here, there)
    if why and align == "same":
        raise InputError(
            f"{why} Make them equally long, or align them: from the start, from the end, or by equal tokens."
        )
    if align == "tokens":
        found: list[int | None] = [None] * len(here)
        matcher = SequenceMatcher(None, [t.id for t in here], [t.id for t in there], autojunk=False)
        for tag, i, end, j, other_end in matcher.get_opcodes():
            if tag == "equal" or (tag == "replace" and end - i == other_end - j):  # as many for as many
                found[i:end] = range(j, other_end)
        return tuple(found)
    shift = len(there) - len(here) if align == "end" else 0
    return tuple(i + shift if 0 <= i + shift < len(there) else None for i in range(len(here)))


def unlike(model: Model, here: Sequence[Token], there: Sequence[Token]) -> str:
    """A sentence where two texts are of different length; "" where they are not."""
    if len(here) == len(there):
        return ""
    return (
        f"The texts are {len(here)} and {len(there)} tokens long to {model.info.name}, so that no place of one is one "
        "of the other."
    )


def _nothing(request: PatchRequest, aim: MetricView, tokens: int, other: Trace, why: str) -> PatchView:
    return PatchView(
        request=request,
        aim=aim,
        other_value=float("nan"),
        rows=(),
        values=read_only(np.zeros((0, 0))),
        stands_for=(None,) * tokens,
        other_labels=tuple(token.label for token in other.tokens),
        why=why,
    )


@dataclass(slots=True, eq=False)
class _Other:
    """What the other run left: by block the stream that enters, by call what it adds, by site what heads give."""

    entering: Sequence[Tensor]  # each (tokens, width)
    adds: dict[tuple[SiteRef, Call], Tensor] = field(default_factory=dict)  # (tokens, width)
    heads: dict[SiteRef, Tensor] = field(default_factory=dict)  # (heads, queries, value_dim)
    sites: dict[SiteRef, AttentionInputs] = field(default_factory=dict)


class PatchSweep(Sweep[Unit]):
    """Every place of one map patched once."""

    label = "Patching activations"

    def __init__(self, request: PatchRequest, copies: BatchedRuns, other: BatchedRuns) -> None:
        """Both of the same model. Raises InputError as `patch` does."""
        model, trace = copies.model, copies.trace
        self._request = request
        self._aim = resolve(model, trace, request.aim)
        self._shown = view_of(model, trace, self._aim)
        self._wanted = next_ids(trace) if self._aim.measure == "loss" else {}
        self._other_labels = tuple(token.label for token in other.trace.tokens)
        self.stands_for = aligned(model, trace.tokens, other.trace.tokens, request.align)
        self._stack = model.info.predicting_stack
        self._other_value = value_of(model, other.trace, self._there(model, other.trace))
        self._places = [i for i, place in enumerate(self.stands_for) if place is not None]
        self._blocks = sublayers_of(model, copies.inputs)
        self._found = self._read(other)
        if request.kind in BY_POSITION:
            self.rows = tuple(SiteRef(self._stack, layer) for layer in range(len(trace.residual[self._stack]) - 1))
            columns = len(trace.tokens)
            units: list[Unit] = [(row, [i]) for row in range(len(self.rows)) for i in self._places]
        else:
            own = (self._stack, *(("cross",) if model.seq2seq else ()))
            sites = [site for site in trace.sites if site.stack in own]
            self.rows = tuple(site.ref for site in sites)
            columns = max(site.heads for site in sites)
            units = [(row, [head]) for row, site in enumerate(sites) for head in range(site.heads)]
            if request.kind == "pattern":
                self._check_patterns(sites)
        self._values = np.full((len(self.rows), columns), np.nan)
        super().__init__(copies, units)

    def answers(self, request: PatchRequest) -> bool:
        """Whether it is what `request` asks for, however much of it is there."""
        return replace(request, have=0.0) == replace(self._request, have=0.0)

    @torch.no_grad()
    def _compute(self, start: int, units: Sequence[Unit], should_stop: ShouldStop) -> None:
        logits = self.logits(units, None if self._wanted else [self._aim.position], should_stop)
        if self._wanted:
            values = losses_of(logits, self._wanted)
        else:
            values = of_logits(logits[:, 0] if logits.dim() == 3 else logits, self._aim)
        for (row, columns), value in zip(units, values.tolist(), strict=True):
            self._values[row, columns] = value

    def logits(self, units: Sequence[Unit], positions: list[int] | None, should_stop: ShouldStop = never) -> Tensor:
        """As `BatchedRuns.run`, patched."""
        kind = self._request.kind
        mix_edits: list[MixEdit] = []
        edits: Edits = {}
        entering: Entering | None = None
        if kind == "residual":
            entering = self._entering(units)
        elif kind in BY_POSITION:
            edits = self._adding(units, kind)
        else:
            mix_edits = [self._mixing(units)]
        return self._copies.run(len(units), mix_edits, edits, positions, should_stop, entering)

    def view(self, request: PatchRequest) -> PatchView:
        """What is computed so far."""
        return PatchView(
            request=request,
            aim=self._shown,
            other_value=self._other_value,
            rows=self.rows,
            values=read_only(self._values.copy()),
            stands_for=self.stands_for,
            other_labels=self._other_labels,
            done=self.done,
        )

    # ----------------------------------------------------------------- the other run

    def _there(self, model: Model, trace: Trace) -> ResolvedMetric:
        """The same aim in the other run, at the place that stands for its position."""
        place = self.stands_for[self._aim.position]
        position = answering_position(model, trace) if place is None else place
        return replace(self._aim, position=position)

    def _read(self, other: BatchedRuns) -> _Other:
        found = _Other(other.trace.residual[self._stack])
        found.sites = {site.ref: x for site, x in zip(other.trace.sites, other.trace.inputs, strict=True)}
        if self._request.kind == "head":

            def of_heads(site: Site, _x: AttentionInputs, out: Tensor) -> Tensor:
                found.heads[site.ref] = out[0]
                return out

            other.run(1, [of_heads], positions=[0])
        elif self._request.kind in ("attention", "mlp"):
            edits: Edits = {}
            for ref, block in self._blocks.items():
                if block.why and ref.stack == self._stack:
                    raise InputError(block.why)
                edits[ref] = {call: _keeping(found, ref, call) for call in block.calls.get(self._request.kind, ())}
            other.run(1, (), edits, positions=[0])
        return found

    def _check_patterns(self, sites: Sequence[Site]) -> None:
        for site in sites:
            x = self._found.sites[site.ref]
            if (x.queries, x.keys) != (site.queries, site.keys):
                raise InputError(
                    f"The weights of a head are {site.queries} × {site.keys} in one text and {x.queries} × {x.keys} in "
                    "the other: a pattern goes only between texts of one length. Copy the head's output instead."
                )

    # ----------------------------------------------------------------- edits

    def _pairs(self, columns: Sequence[int]) -> tuple[list[int], list[int]]:
        """Positions here, and those that stand for them."""
        here = [i for i in columns if self.stands_for[i] is not None]
        return here, [self.stands_for[i] or 0 for i in here]

    def _entering(self, units: Sequence[Unit]) -> Entering:
        def edit(ref: SiteRef, hidden: Tensor) -> Tensor:
            rows = [(copy, columns) for copy, (row, columns) in enumerate(units) if self.rows[row] == ref]
            if not rows:
                return hidden
            hidden = hidden.clone()  # (copies, tokens, width)
            for copy, columns in rows:
                here, there = self._pairs(columns)
                hidden[copy, here] = self._found.entering[ref.layer][there].to(hidden.device, hidden.dtype)
            return hidden

        return edit

    def _adding(self, units: Sequence[Unit], part: str) -> Edits:
        by_block: dict[SiteRef, list[tuple[int, list[int]]]] = {}
        for copy, (row, columns) in enumerate(units):
            by_block.setdefault(self.rows[row], []).append((copy, columns))
        return {
            ref: {call: self._added(ref, call, patches, len(units)) for call in self._blocks[ref].calls.get(part, ())}
            for ref, patches in by_block.items()
            if ref in self._blocks
        }

    def _added(
        self, ref: SiteRef, call: Call, patches: Sequence[tuple[int, list[int]]], copies: int
    ) -> Callable[[Any, Any], Any]:
        def edit(_given: Any, out: Any) -> Any:
            wrote = tensor_of(out)
            rows = wrote.clone().view(copies, -1, wrote.shape[-1])
            for copy, columns in patches:
                here, there = self._pairs(columns)
                rows[copy, here] = self._found.adds[ref, call][there].to(rows.device, rows.dtype)
            return with_tensor(out, rows.view(wrote.shape))

        return edit

    def _mixing(self, units: Sequence[Unit]) -> MixEdit:
        here, there = self._pairs(range(len(self.stands_for)))
        is_pattern = self._request.kind == "pattern"

        def edit(site: Site, x: AttentionInputs, out: Tensor) -> Tensor:
            rows = [(copy, heads) for copy, (row, heads) in enumerate(units) if self.rows[row] == site.ref]
            if not rows:
                return out
            out = out.clone()  # (copies, heads, queries, value_dim)
            for copy, heads in rows:
                for head in heads:
                    if is_pattern:
                        weights = attention.weights(self._found.sites[site.ref], Part([head]))[0, 0]  # (queries, keys)
                        out[copy, head] = weights.to(x.value.dtype) @ x.value[copy, head // x.group]
                    else:
                        out[copy, head, here] = self._found.heads[site.ref][head, there].to(out.device, out.dtype)
            return out

        return edit


def _keeping(found: _Other, ref: SiteRef, call: Call) -> Callable[[Any, Any], None]:
    def edit(_given: Any, out: Any) -> None:
        wrote = tensor_of(out)
        found.adds[ref, call] = wrote.reshape(-1, wrote.shape[-1])  # of one copy

    return edit
