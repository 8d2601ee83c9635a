"""Direct logit attribution: a logit as the sum of what each head, network and embedding wrote into the stream.

Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits".
What is written is taken from the run itself, done once more with hooks where sublayers hand on what they add.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from attention_models.attention.inputs import AttentionInputs
from attention_models.effects.batched_runs import BatchedRuns, check_reachable
from attention_models.effects.held import HeldShares, held_shares
from attention_models.effects.metric import ResolvedMetric, aimed, resolve, view_of
from attention_models.forward.block_hooks import Edits, tensor_of
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.run import run_alone
from attention_models.forward.sublayers import sublayers_of
from attention_models.forward.trace import Trace
from attention_models.protocol.effects import AttributionRequest, AttributionView, SiteAttribution
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.request import ShouldStop, never
from attention_models.protocol.values import Site, SiteRef, read_only
from attention_models.views.residual import logit_path, output_weight

_EXACT, _COARSE = 1e-4, 2e-2
"""Of the largest logit: by how much shares through norms may fail to sum to it, in float32 and below."""

_LOSS = "A loss is no sum of what was written: choose a logit, or the difference of two."
_NO_HEADS = "The matrix that makes of the heads what {where} writes was not found, so no head's part can be told."


def answer(request: AttributionRequest, context: Context) -> AttributionView:
    current = context.run(request.run)
    aim = resolve(current.model, current.trace, request.aim)
    path, why = logit_path(current.model, current.trace, current.model.info.predicting_stack, aim.position, aim.target)
    if path is None:
        held = through_norms(request, BatchedRuns.of_run(current), aim, context.should_stop)
        return held or AttributionView(request=request, aim=view_of(current.model, current.trace, aim), why=why)
    return attributed(request, BatchedRuns.of_run(current), aim, context.should_stop)


def logit_attribution(
    model: Model,
    text: Any,
    *,
    target: str | int | None = None,
    against: str | int | None = None,
    position: int | None = None,
    written: Any = None,
    interventions: tuple[Intervention, ...] = (),
) -> AttributionView:
    """A logit, or the difference of two, as a sum over heads, feed-forward networks and the embedding.

        parts = logit_attribution(model, "Tom and Anna went to the park. Anna gave the ball to", target=" Tom")
        parts.sites[5].heads        # (heads,) float64: what each head of layer 5 adds to the logit

    Arguments as in `ax.head_effects`.

    Raises:
        InputError: a write of this model does not add to its logits; the sentence says why.
    """
    check_reachable(model)
    trace = run_alone(model, text, target=written, interventions=interventions)
    aim = aimed(target, against, None, position)
    settled = resolve(model, trace, aim)
    path, why = logit_path(model, trace, model.info.predicting_stack, settled.position, settled.target)
    request, copies = AttributionRequest(run=0, aim=aim), BatchedRuns.of(model, trace, text, written)
    if path is not None:
        return attributed(request, copies, settled)
    held = through_norms(request, copies, settled)
    if held is None:
        raise InputError(why)
    return held


@torch.no_grad()
def attributed(
    request: AttributionRequest, copies: BatchedRuns, aim: ResolvedMetric, should_stop: ShouldStop = never
) -> AttributionView:
    """Of a model whose writes add to its logits.

    Raises:
        InputError: an aim that is no logit, or a part of the model whose write cannot be told.
    """
    if aim.measure == "loss":
        raise InputError(_LOSS)
    model, trace = copies.model, copies.trace
    direction, constant = _path(model, trace, aim)
    writes = writes_of(copies, should_stop)
    stack, here = model.info.predicting_stack, aim.position
    embedding = float(trace.residual[stack][0][here].cpu().double() @ direction)
    sites, networks = [], []
    for ref, wrote in writes.sublayers.items():
        if ref.stack != stack:
            continue
        for part, rows in wrote.items():
            total = float(rows[here].cpu().double() @ direction)
            if part == "mlp":
                networks.append((ref, total))
                continue
            site = SiteRef("cross", ref.layer) if part == "cross" else ref
            sites.append(_of_heads(model, trace, writes.heads[site], site, here, direction, total))
    view = view_of(model, trace, aim)
    total = embedding + constant + sum(site.total for site in sites) + sum(value for _, value in networks)
    return AttributionView(
        request=request,
        aim=view,
        embedding=embedding,
        sites=tuple(sites),
        networks=tuple(networks),
        constant=constant,
        remainder=view.value - total,
    )


def through_norms(
    request: AttributionRequest, copies: BatchedRuns, aim: ResolvedMetric, should_stop: ShouldStop = never
) -> AttributionView | None:
    """Of a model in which norms stand between a write and the logit; None where the shares do not sum to it.

    Raises:
        InputError: an aim that is no logit, or a part of the model whose write cannot be told.
    """
    if aim.measure == "loss":
        raise InputError(_LOSS)
    model, trace = copies.model, copies.trace
    if model.info.textbook or copies.padded:
        return None
    view, found = view_of(model, trace, aim), held_shares(copies, aim, should_stop)
    bound = _EXACT if model.dtype == torch.float32 else _COARSE
    largest = max(1.0, float(trace.logits_at([aim.position]).float().abs().max()))
    if abs(view.value - found.total) > bound * largest:
        return None
    sites = []
    for ref, total in found.attention.items():
        direction = found.directions.get(ref, torch.zeros(model.info.width, dtype=torch.float64))
        sites.append(_of_heads(model, trace, found.heads[ref], ref, aim.position, direction, total))
    return AttributionView(
        request=request,
        aim=view,
        embedding=found.embedding,
        sites=tuple(sites),
        networks=tuple(found.networks.items()),
        constant=found.constant,
        remainder=view.value - found.total,
        held=_held(found),
    )


def _held(found: HeldShares) -> str:
    norms = f"the divisors of {found.norms} norms" if found.norms != 1 else "the divisor of the norm"
    more = " and the factors of activations or caps after the last layer" if found.activations else ""
    return f"Held at their values in this run: {norms}{more}."


def _path(model: Model, trace: Trace, aim: ResolvedMetric) -> tuple[Tensor, float]:
    """The direction (width,) float64 along which the aim is read from the stream, and what is added to it."""
    stack = model.info.predicting_stack
    path, why = logit_path(model, trace, stack, aim.position, aim.target)
    if path is None:
        raise InputError(why)
    direction, constant = path.direction.double(), path.constant
    if aim.against is not None:
        other, why = logit_path(model, trace, stack, aim.position, aim.against)
        if other is None:
            raise InputError(why)
        direction, constant = direction - other.direction.double(), constant - other.constant
    return direction, constant


def _of_heads(
    model: Model, trace: Trace, mixed: Tensor, ref: SiteRef, here: int, direction: Tensor, total: float
) -> SiteAttribution:
    """`mixed` is (heads, queries, value_dim); `total` what the module as a whole adds."""
    site = trace.sites[trace.index(ref)]
    found = []
    for head in range(site.heads):
        weight = output_weight(model, trace, site, head)  # (value_dim, width)
        if weight is None:
            raise InputError(_NO_HEADS.format(where=f"the attention of {ref.stack} layer {ref.layer}"))
        found.append(float(mixed[head, here].cpu().double() @ (weight.cpu().double() @ direction)))
    heads = torch.tensor(found, dtype=torch.float64)
    return SiteAttribution(site=ref, heads=read_only(heads.numpy()), bias=total - float(heads.sum()))


@dataclass(slots=True, eq=False)
class Writes:
    """What was written in one pass, edits included.

    Attributes:
        heads: by site, (heads, queries, value_dim): what each head gave, before W_O.
        sublayers: by block and part ("attention", "cross", "mlp"), (tokens, width): what was added to the stream.
    """

    heads: dict[SiteRef, Tensor] = field(default_factory=dict)
    sublayers: dict[SiteRef, dict[str, Tensor]] = field(default_factory=lambda: defaultdict(dict))


def writes_of(copies: BatchedRuns, should_stop: ShouldStop = never) -> Writes:
    """What every head and sublayer of a run gave.

    Raises:
        InputError: what a block adds was not found.
    """
    model, found = copies.model, Writes()
    blocks = sublayers_of(model, copies.inputs)
    edits: Edits = {}
    for ref, block in blocks.items():
        if block.why:
            raise InputError(block.why)
        at = edits.setdefault(ref, {})
        for part in ("attention", "cross", "mlp"):
            for call in block.calls.get(part, ()):
                at[call] = _keeping(found.sublayers[ref], part)

    def of_heads(site: Site, _x: AttentionInputs, out: Tensor) -> Tensor:
        found.heads[site.ref] = out[0]
        return out

    copies.run(1, [of_heads], edits, positions=[0], should_stop=should_stop)
    return found


def _keeping(found: dict[str, Tensor], part: str) -> Any:
    def edit(_given: Mapping[str, Any], out: Any) -> None:
        wrote = tensor_of(out)
        rows = wrote.reshape(-1, wrote.shape[-1])  # of one copy: (tokens, width)
        found[part] = found[part] + rows if part in found else rows

    return edit
