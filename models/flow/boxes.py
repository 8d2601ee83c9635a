"""The numbers of one box at one position."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from models.attention import attention
from models.attention.inputs import AttentionInputs, Part
from models.attention.numbers import copied
from models.dataflow.matrices import column_norms, matrix_of
from models.flow.again import Again
from models.flow.drafts import (
    Draft,
    ExpertsDraft,
    HeadsDraft,
    ModuleDraft,
    NetworkDraft,
    NormDraft,
    OutputDraft,
    ProjectionDraft,
    SumDraft,
)
from models.flow.model import is_off
from models.flow.targets import Target
from models.forward.current_run import CurrentRun
from models.protocol.arrays import read_only
from models.protocol.flow import (
    Box,
    Expert,
    FeedForwardBox,
    HeadsBox,
    ModuleBox,
    Neuron,
    NormBox,
    OutputBox,
    ProjectionBox,
    SumBox,
)

NEURONS = 32
"""How many hidden units of a feed-forward network are named."""

_NOTHING = read_only(np.zeros(0, np.float32))


@dataclass(frozen=True, slots=True, eq=False)
class Position:
    """Where a block is looked at."""

    run: CurrentRun
    block: Again
    index: int
    target: Target

    def row(self, t: Tensor | None) -> Tensor | None:
        """The vector at this position, (width,) float32; None where `t` has no single one."""
        if t is None:
            return None
        vectors = self.block.layout.vectors(t, len(self.block.before))
        return None if vectors is None else vectors[self.index]


@singledispatch
def box_of(draft: Draft, here: Position) -> Box:
    raise TypeError(f"No box is drawn of a {type(draft).__name__}.")


def _common(draft: Draft, here: Position) -> dict[str, Any]:
    before, after = here.row(draft.given), here.row(draft.gave)
    kind, parameters = here.block.once(("kind", id(draft)), lambda: _kind(draft, here))
    return {
        "module": draft.module,
        "kind": kind,
        "part": draft.part,
        "reads": draft.boxes,
        "before": None if before is None else copied(before),
        "after": _NOTHING if after is None else copied(after),
        "parameters": parameters,
    }


def _kind(draft: Draft, here: Position) -> tuple[str, int]:
    """The class of a draft's module, and how many numbers its calls learned."""
    units = {id(unit.module): unit.module for unit in draft.units}.values()
    own = {id(p): p for module in units for p in module.parameters()}.values()
    kind = ""
    if draft.module:
        kind = type(draft.units[0].module if len(draft.units) == 1 else _module(here, draft.module)).__name__
    return kind, sum(p.numel() for p in own)


def _is_off(here: Position, part: str) -> bool:
    return is_off(here.run.trace.interventions, here.run.model, here.block.stack, here.block.layer, part)


def _module(here: Position, name: str) -> nn.Module | nn.Parameter:
    """What is called `name` in the model."""
    owner, _, last = name.rpartition(".")
    found: nn.Module | nn.Parameter = getattr(here.run.model.module.get_submodule(owner), last)
    return found


def _count(learned: nn.Module | nn.Parameter) -> int:
    """How many numbers it learned."""
    return learned.numel() if isinstance(learned, nn.Parameter) else sum(p.numel() for p in learned.parameters())


@box_of.register
def _(draft: NormDraft, here: Position) -> Box:
    norm, before = draft.call.norm, here.row(draft.given)
    common = _common(draft, here)
    if before is None:
        return _module_box(common)
    off = draft.number > 0 and _is_off(here, f"norm{draft.number}")
    mean, deviation = norm.statistics(before[None].cpu())
    return NormBox(
        **common,
        rms=norm.rms,
        mean=float(mean),
        deviation=float(deviation),
        eps=norm.eps,
        off=off,
        gain=None if norm.gain is None or off else copied(norm.gain),
        bias=None if norm.bias is None or off else copied(norm.bias),
    )


@box_of.register
def _(draft: ProjectionDraft, here: Position) -> Box:
    module = draft.units[0].module
    rows, columns = matrix_of(module).shape
    return ProjectionBox(
        **_common(draft, here),
        makes=draft.makes,
        rows=int(rows),
        columns=int(columns),
        bias=getattr(module, "bias", None) is not None,
    )


@box_of.register
def _(draft: HeadsDraft, here: Position) -> Box:
    site, trace = draft.site.site, here.run.trace
    x = trace.inputs[trace.index(site.ref)]
    weights = attention.weights(x, Part(None, [here.index]))[0, :, 0]  # (heads, keys)
    joined = _joined(draft, here, x, weights)
    return HeadsBox(
        **(_common(draft, here) | {"after": copied(joined.reshape(-1))}),
        site=site.ref,
        heads=site.heads,
        key_heads=site.key_heads,
        head_dim=site.head_dim,
        weights=copied(weights),
        norms=copied(torch.linalg.vector_norm(joined, dim=-1)),
    )


def _joined(draft: HeadsDraft, here: Position, x: AttentionInputs, weights: Tensor) -> Tensor:
    """What each head gives at this position, (heads, value_dim) float32: what W_O read, where it read just that."""
    read = here.row(draft.gave)
    if x.precomputed is not None:  # the values are not seen
        return weights.new_zeros(x.heads, 0) if read is None else read.reshape(x.heads, -1)
    if read is not None and read.numel() % x.heads == 0:
        parts = read.reshape(x.heads, -1)
        by_head = ("by head", draft.site.site.ref)
        if here.block.once(by_head, lambda: _is_close(parts, _mixed(x, weights))):
            return parts
    return _mixed(x, weights)


def _mixed(x: AttentionInputs, weights: Tensor) -> Tensor:
    """Weights of one row, (heads, keys), times values: (heads, value_dim) float32."""
    return torch.matmul(weights[:, None].to(x.value.dtype), Part().take_keys(x.value, x.heads)[0])[:, 0].float()


def _is_close(one: Tensor, other: Tensor) -> bool:
    """Whether a module joined heads in their order: within rounding of the coarsest number format."""
    return one.shape == other.shape and bool((one - other).abs().max() <= 2e-2 * other.abs().max())


@box_of.register
def _(draft: OutputDraft, here: Position) -> Box:
    module, given = draft.units[0].module, here.row(draft.given)
    weight, heads = matrix_of(module), draft.site.site.heads
    norms = None
    if given is not None and weight.shape[0] == len(given) and len(given) % heads == 0:
        parts = given.to(weight.device).reshape(heads, 1, -1)  # (heads, 1, value_dim)
        writes = torch.bmm(parts, weight.float().reshape(heads, parts.shape[-1], -1))[:, 0]  # (heads, width)
        norms = copied(torch.linalg.vector_norm(writes, dim=-1))
    return OutputBox(
        **_common(draft, here),
        rows=int(weight.shape[0]),
        columns=int(weight.shape[1]),
        bias=getattr(module, "bias", None) is not None,
        norms=norms,
    )


@box_of.register
def _(draft: NetworkDraft, here: Position) -> Box:
    network = draft.network
    hidden = here.row(network.last.given[0])
    common = _common(draft, here)
    count = int(matrix_of(network.last.module).shape[0])
    off = _is_off(here, draft.part)
    neurons = () if hidden is None or off else _neurons(draft, hidden.cpu(), here)
    return FeedForwardBox(
        **common,
        hidden=count,
        activation=network.activation,
        gated=network.gated,
        positive=None if hidden is None else int((hidden > 0).sum()),
        neurons=neurons,
        off=off,
    )


def _neurons(draft: NetworkDraft, hidden: Tensor, here: Position) -> tuple[Neuron, ...]:
    """The hidden units that write most, first the largest."""
    last = draft.network.last.module
    lengths = here.block.once(("columns", draft.network.last.number), lambda: column_norms(last))
    writes = hidden.abs() * lengths * abs(draft.factor)
    top = torch.topk(writes, min(NEURONS, len(writes)))
    effects = None
    if here.target.direction is not None and draft.straight:
        rows = matrix_of(last)[top.indices.to(matrix_of(last).device)].float().cpu()  # (neurons, width)
        effects = (hidden[top.indices] * draft.factor * (rows @ here.target.direction)).tolist()
    lengths_of_top, activations, places = top.values.tolist(), hidden[top.indices].tolist(), top.indices.tolist()
    return tuple(
        Neuron(i, activations[n], lengths_of_top[n], None if effects is None else effects[n])
        for n, i in enumerate(places)
    )


@box_of.register
def _(draft: ExpertsDraft, here: Position) -> Box:
    router = draft.router
    place = here.block.layout.row * len(here.block.before) + here.index
    chosen = sorted(
        (Expert(index=int(i), share=float(s)) for i, s in zip(router.chosen[place], router.shares[place], strict=True)),
        key=lambda expert: -expert.share,
    )
    return FeedForwardBox(
        **(_common(draft, here) | {"parameters": _count(_module(here, draft.module))}),
        hidden=router.hidden,
        activation=router.activation,
        gated=router.gated,
        positive=None,
        neurons=(),
        experts=tuple(chosen),
        expert_count=router.count,
        off=_is_off(here, draft.part),
    )


@box_of.register
def _(draft: SumDraft, here: Position) -> Box:
    return SumBox(**_common(draft, here), factors=draft.factors)


@box_of.register
def _(draft: ModuleDraft, here: Position) -> Box:
    common = _common(draft, here)
    if len(draft.units) != 1:  # all of a sublayer, with what it learned outside of modules without children
        common["parameters"] = _count(_module(here, draft.module))
    return _module_box(common)


def _module_box(common: dict[str, Any]) -> ModuleBox:
    before, after = common["before"], common["after"]
    return ModuleBox(
        **common,
        norm_before=None if before is None else float(np.linalg.norm(before)),
        norm_after=float(np.linalg.norm(after)),
    )
