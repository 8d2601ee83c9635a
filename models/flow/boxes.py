"""The numbers of one box at one position."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import torch
from torch import Tensor

from models.attention import attention
from models.attention.inputs import Part
from models.attention.numbers import copied
from models.dataflow.network import column_norms, matrix_of
from models.flow.again import Again
from models.flow.drafts import (
    Draft,
    HeadsDraft,
    ModuleDraft,
    NetworkDraft,
    NormDraft,
    OutputDraft,
    ProjectionDraft,
    SumDraft,
)
from models.flow.targets import Target
from models.forward.current_run import CurrentRun
from models.protocol.arrays import read_only
from models.protocol.flow import (
    Box,
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
    modules = {id(unit.module): unit.module for unit in draft.units}.values()
    own = {id(p): p for module in modules for p in module.parameters()}.values()
    kind = type(draft.units[-1].module).__name__ if len(draft.units) == 1 else ""
    return {
        "module": draft.module,
        "kind": kind,
        "part": draft.part,
        "reads": draft.boxes,
        "before": None if before is None else copied(before),
        "after": _NOTHING if after is None else copied(after),
        "parameters": sum(p.numel() for p in own),
    }


@box_of.register
def _(draft: NormDraft, here: Position) -> Box:
    norm, before = draft.call.norm, here.row(draft.given)
    common = _common(draft, here)
    if before is None:
        return _module_box(common)
    mean, deviation = norm.statistics(before[None].cpu())
    return NormBox(
        **common,
        rms=norm.rms,
        mean=float(mean),
        deviation=float(deviation),
        eps=norm.eps,
        gain=None if norm.gain is None else copied(norm.gain),
        bias=None if norm.bias is None else copied(norm.bias),
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
    mixed = torch.matmul(weights[:, None].to(x.value.dtype), Part().take_keys(x.value, x.heads)[0])[:, 0]
    joined = mixed.float()  # (heads, value_dim)
    return HeadsBox(
        **(_common(draft, here) | {"after": copied(joined.reshape(-1)), "kind": type(draft.site.module).__name__}),
        site=site.ref,
        heads=site.heads,
        key_heads=site.key_heads,
        head_dim=site.head_dim,
        weights=copied(weights),
        norms=copied(torch.linalg.vector_norm(joined, dim=-1)),
    )


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
    neurons = () if hidden is None else _neurons(draft, hidden.cpu(), here)
    return FeedForwardBox(
        **common,
        hidden=count,
        activation=network.activation,
        gated=network.gated,
        positive=None if hidden is None else int((hidden > 0).sum()),
        neurons=neurons,
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
    return tuple(
        Neuron(int(i), float(hidden[i]), float(length), None if effects is None else effects[place])
        for place, (length, i) in enumerate(zip(top.values, top.indices.tolist(), strict=True))
    )


@box_of.register
def _(draft: SumDraft, here: Position) -> Box:
    return SumBox(**_common(draft, here), factors=draft.factors)


@box_of.register
def _(draft: ModuleDraft, here: Position) -> Box:
    return _module_box(_common(draft, here))


def _module_box(common: dict[str, Any]) -> ModuleBox:
    before, after = common["before"], common["after"]
    return ModuleBox(
        **common,
        norm_before=None if before is None else float(np.linalg.norm(before)),
        norm_after=float(np.linalg.norm(after)),
    )
