"""The numbers of one box at one position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, singledispatch
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from attention_models.attention import attention
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.attention.numbers import copied, to_numpy
from attention_models.dataflow.blocks import SiteNodes
from attention_models.dataflow.matrices import column_norms, matrix_of
from attention_models.dataflow.network import Network
from attention_models.flow.block_rerun import BlockRerun
from attention_models.flow.box_specs import (
    BoxSpec,
    ExpertsSpec,
    HeadsSpec,
    ModuleSpec,
    NetworkSpec,
    NormSpec,
    OutputSpec,
    ProjectionSpec,
    SumSpec,
)
from attention_models.flow.model import is_off
from attention_models.flow.targets import Target
from attention_models.forward.current_run import CurrentRun
from attention_models.protocol.ablation import head_skip
from attention_models.protocol.flow import (
    Box,
    Expert,
    FeedForwardBox,
    FirstTerms,
    HeadsBox,
    ModuleBox,
    Neuron,
    NormBox,
    OutputBox,
    ProjectionBox,
    SumBox,
)
from attention_models.protocol.values import Site, read_only

# The hidden units of a feed-forward network that write most, and what each write does to a logit directly.


NEURONS = 32
"""How many are named."""


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """One hidden layer at one position.

    Attributes:
        hidden: (hidden,) float32, as the last matrix reads it.
        factor: what it writes is multiplied by.
        matrix: (hidden, width), the last matrix, as it multiplies from the right.
        lengths: (hidden,) float32, those of its rows.
        expert: of a mixture, which one it is of.
    """

    hidden: np.ndarray
    factor: float
    matrix: Tensor
    lengths: np.ndarray
    expert: int | None = None


def largest(layers: Sequence[Units], direction: Tensor | None) -> tuple[Neuron, ...]:
    """Those of `layers` whose writes are longest, the longest first. `direction` (width,) is that of a logit."""
    found = [neuron for units in layers for neuron in _largest_of(units, direction)]
    if len(layers) > 1:
        found = sorted(found, key=lambda neuron: -neuron.write_norm)[:NEURONS]
    return tuple(found)


def _largest_of(units: Units, direction: Tensor | None) -> list[Neuron]:
    writes = np.abs(units.hidden) * units.lengths * abs(units.factor)
    top = torch.topk(torch.from_numpy(writes), min(NEURONS, len(writes)))
    places = top.indices.numpy()
    activations = units.hidden[places]
    effects: list[float] | list[None] = [None] * len(places)
    if direction is not None:
        rows = to_numpy(units.matrix.index_select(0, top.indices.to(units.matrix.device)))  # (neurons, width)
        effects = (activations * units.factor * (rows @ direction.numpy())).tolist()
    named = zip(places.tolist(), activations.tolist(), top.values.tolist(), effects, strict=True)
    return [Neuron(*one, units.expert) for one in named]


_WRITTEN_OUT = 3  # terms of a sum
_NOTHING = read_only(np.zeros(0, np.float32))


@dataclass(frozen=True, slots=True, eq=False)
class Position:
    """Where a block is looked at."""

    run: CurrentRun
    block: BlockRerun
    index: int
    target: Target

    def row(self, t: Tensor | None) -> np.ndarray | None:
        """The vector at this position, (width,) float32; None where `t` has no single one."""
        vectors = None if t is None else self.block.vectors(t)
        return None if vectors is None else vectors.row(self.index)

    def tensor(self, t: Tensor | None) -> Tensor | None:
        """As `row`, where `t` lies."""
        vectors = None if t is None else self.block.vectors(t)
        return None if vectors is None else vectors.tensor[self.index].float()


@singledispatch
def box_of(draft: BoxSpec, here: Position) -> Box:
    raise TypeError(f"No box is drawn of a {type(draft).__name__}.")


def _common(draft: BoxSpec, here: Position) -> dict[str, Any]:
    after = here.row(draft.gave)
    about = here.block.get_or_compute(("about", id(draft)), lambda: _about(draft, here))
    return {**about, "before": here.row(draft.given), "after": _NOTHING if after is None else after}


def _about(draft: BoxSpec, here: Position) -> dict[str, Any]:
    """What is the same at every position."""
    kind, parameters = _kind(draft, here)
    return {
        "module": draft.module,
        "kind": kind,
        "part": draft.part,
        "reads": draft.boxes,
        "parameters": parameters,
    }


def _kind(draft: BoxSpec, here: Position) -> tuple[str, int]:
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
def _(draft: NormSpec, here: Position) -> Box:
    common = _common(draft, here)
    if common["before"] is None:
        return _module_box(common)
    mean, deviation = draft.call.norm.statistics(common["before"])
    formula = here.block.get_or_compute(("formula", id(draft)), lambda: _formula(draft, here))
    return NormBox(**common, **formula, mean=mean, deviation=deviation)


def _formula(draft: NormSpec, here: Position) -> dict[str, Any]:
    """What is the same of a normalisation at every position."""
    norm, off = draft.call.norm, draft.number > 0 and _is_off(here, f"norm{draft.number}")
    return {
        "rms": norm.rms,
        "eps": norm.eps,
        "off": off,
        "gain": None if norm.gain is None or off else copied(norm.gain),
        "bias": None if norm.bias is None or off else copied(norm.bias),
    }


@box_of.register
def _(draft: ProjectionSpec, here: Position) -> Box:
    module = draft.units[0].module
    matrix, common = matrix_of(module), _common(draft, here)
    rows, columns = matrix.shape
    return ProjectionBox(
        **common,
        makes=draft.makes,
        rows=int(rows),
        columns=int(columns),
        bias=getattr(module, "bias", None) is not None,
        first=here.block.get_or_compute(("first", id(draft)), lambda: _first(module, matrix, common, len(draft.units))),
    )


def _first(module: nn.Module, matrix: Tensor, common: Mapping[str, Any], units: int) -> FirstTerms | None:
    """The same at every position."""
    before, bias = common["before"], getattr(module, "bias", None)
    if units != 1 or before is None or (len(before), len(common["after"])) != tuple(matrix.shape):
        return None
    return FirstTerms(copied(matrix[:_WRITTEN_OUT].float()), copied(bias) if isinstance(bias, Tensor) else None)


@box_of.register
def _(draft: HeadsSpec, here: Position) -> Box:
    site, trace = draft.site.site, here.run.trace
    x = trace.inputs[trace.index(site.ref)]
    weights = attention.weights(x, Part(None, [here.index]))[0, :, 0]  # (heads, keys)
    common = _common(draft, here)
    joined = _joined(draft, here, x, weights, common["after"])
    return HeadsBox(
        **(common | {"after": read_only(joined.reshape(-1))}),
        site=site.ref,
        heads=site.heads,
        key_heads=site.key_heads,
        head_dim=site.head_dim,
        weights=copied(weights),
        norms=read_only(np.sqrt(np.square(joined).sum(axis=1))),
        off=here.block.get_or_compute(("off", id(draft)), lambda: _heads_off(draft.site.site, here)),
    )


def _heads_off(site: Site, here: Position) -> tuple[int, ...]:
    """The heads of which nothing is written."""
    run = here.run
    on, predicting = run.trace.interventions, run.model.info.predicting_stack
    skips = [head_skip(on, site.ref, head, predicting) for head in range(site.heads)]
    return tuple(head for head, skip in enumerate(skips) if skip is not None and skip.fill == "zero")


def _joined(draft: HeadsSpec, here: Position, x: AttentionInputs, weights: Tensor, read: np.ndarray) -> np.ndarray:
    """What each head gives at this position, (heads, value_dim) float32: what W_O read, where it read just that."""
    if x.precomputed is not None:  # the values are not seen
        made = _made_by_heads(draft.site, here)
        return read.reshape(x.heads, -1) if made is None else to_numpy(made[:, here.index])
    if len(read) and len(read) % x.heads == 0:
        parts = read.reshape(x.heads, -1)
        by_head = ("by head", draft.site.site.ref)
        if here.block.get_or_compute(by_head, lambda: _is_close(parts, to_numpy(_mixed(x, weights)))):
            return parts
    return to_numpy(_mixed(x, weights))


def _made_by_heads(site: SiteNodes, here: Position) -> Tensor | None:
    """What the heads of a family's own attention give, (heads, tokens, value_dim); None where it is not held so."""
    mixed, first = here.block.reader.graph.nodes[site.mixed].value, here.block.layout.row * site.site.heads
    if mixed is None or mixed.shape[:2] != (here.block.layout.batch * site.site.heads, len(here.block.before)):
        return None
    return mixed[first : first + site.site.heads]


Order = Literal["head by head", "dimension by dimension", "unknown"]


def _order(site: SiteNodes, every: Tensor | None, here: Position) -> Order:
    """How W_O's input `every` is joined of what the heads give: XLNet has the first number of each, then the second."""
    vectors = None if every is None else here.block.vectors(every)
    if site.module is not None or vectors is None:
        return "head by head"
    made = _made_by_heads(site, here)
    if made is None:
        return "unknown"
    if torch.equal(made.transpose(0, 1).reshape(made.shape[1], -1), vectors.tensor):
        return "head by head"
    is_turned = torch.equal(made.permute(1, 2, 0).reshape(made.shape[1], -1), vectors.tensor)
    return "dimension by dimension" if is_turned else "unknown"


def _mixed(x: AttentionInputs, weights: Tensor) -> Tensor:
    """Weights of one row, (heads, keys), times values: (heads, value_dim) float32."""
    return torch.matmul(weights[:, None].to(x.value.dtype), Part().take_keys(x.value, x.heads)[0])[:, 0].float()


def _is_close(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether a module joined heads in their order: within rounding of the coarsest number format."""
    return one.shape == other.shape and bool(np.abs(one - other).max() <= 2e-2 * np.abs(other).max())


@box_of.register
def _(draft: OutputSpec, here: Position) -> Box:
    module, given, common = draft.units[0].module, here.tensor(draft.given), _common(draft, here)
    weight, heads, norms = matrix_of(module), draft.site.site.heads, None
    order = here.block.get_or_compute(("order", id(draft)), lambda: _order(draft.site, draft.given, here))
    matrix = weight
    if given is not None and weight.shape[0] == len(given) and len(given) % heads == 0 and order != "unknown":
        by_head = weight.float()
        if order == "dimension by dimension":
            given = given.reshape(-1, heads).T.reshape(-1)
            common["before"] = copied(given)
            by_head = by_head.reshape(-1, heads, weight.shape[1]).transpose(0, 1)
            matrix = by_head.reshape(weight.shape)  # as `before` is
        parts = given.to(weight.device).reshape(heads, 1, -1)  # (heads, 1, value_dim)
        writes = torch.bmm(parts, by_head.reshape(heads, parts.shape[-1], -1))[:, 0]  # (heads, width)
        norms = copied(torch.linalg.vector_norm(writes, dim=-1))
    off = _is_off(here, draft.part)
    if off and norms is not None:
        norms = read_only(np.zeros_like(norms))
    return OutputBox(
        **common,
        rows=int(weight.shape[0]),
        columns=int(weight.shape[1]),
        bias=getattr(module, "bias", None) is not None,
        first=here.block.get_or_compute(("first", id(draft)), lambda: _first(module, matrix, common, len(draft.units))),
        norms=norms,
        off=off,
    )


@box_of.register
def _(draft: NetworkSpec, here: Position) -> Box:
    network = draft.network
    units = _units(network, draft.factor, here)
    off = _is_off(here, draft.part)
    return FeedForwardBox(
        **_common(draft, here),
        hidden=here.block.get_or_compute(("hidden", id(draft)), lambda: int(matrix_of(network.last.module).shape[0])),
        activation=network.activation,
        gated=network.gated,
        positive=None if units is None else int(np.count_nonzero(units.hidden > 0)),
        neurons=() if units is None or off else largest((units,), here.target.direction if draft.straight else None),
        off=off,
    )


def _units(network: Network, factor: float, here: Position) -> Units | None:
    """A network's hidden layer at this position."""
    hidden, last = here.row(network.last.given[0]), network.last.module
    if hidden is None:
        return None
    lengths = here.block.get_or_compute(("columns", network.last.number), lambda: column_norms(matrix_of(last)))
    return Units(hidden, factor, matrix_of(last), lengths)


@box_of.register
def _(draft: ExpertsSpec, here: Position) -> Box:
    router, off = draft.router, _is_off(here, draft.part)
    place = here.block.layout.row * len(here.block.before) + here.index
    chosen = sorted(
        (Expert(index=int(i), share=float(s)) for i, s in zip(router.chosen[place], router.shares[place], strict=True)),
        key=lambda expert: -expert.share,
    )
    units = [] if off else _expert_units(draft, place, {expert.index for expert in chosen}, here)
    count = here.block.get_or_compute(("count", id(draft)), lambda: _count(_module(here, draft.module)))
    return FeedForwardBox(
        **(_common(draft, here) | {"parameters": count}),
        hidden=router.hidden,
        activation=router.activation,
        gated=router.gated,
        positive=sum(int(np.count_nonzero(one.hidden > 0)) for one in units) if units else None,
        neurons=largest(units, here.target.direction if draft.straight else None),
        experts=tuple(chosen),
        expert_count=router.count,
        off=off,
    )


def _expert_units(draft: ExpertsSpec, place: int, chosen: set[int], here: Position) -> list[Units]:
    """The hidden layers of the experts that were chosen at `place`, and of networks beside them; none if not read."""
    pairs = draft.router.units
    if pairs is None:
        return []
    units = []
    for pair in torch.nonzero(pairs.positions == place)[:, 0].tolist():
        expert = int(pairs.experts[pair])
        if expert in chosen:
            matrix = pairs.matrices[expert]
            lengths = here.block.get_or_compute(("columns", id(draft), expert), partial(column_norms, matrix))
            factor = draft.factor * float(pairs.factors[pair])
            units.append(Units(to_numpy(pairs.hidden[pair]), factor, matrix, lengths, expert))
    beside = (_units(network, factor, here) for network, factor in zip(draft.shared, draft.factors, strict=True))
    return [*units, *(one for one in beside if one is not None)]


@box_of.register
def _(draft: SumSpec, here: Position) -> Box:
    return SumBox(**_common(draft, here), factors=draft.factors)


@box_of.register
def _(draft: ModuleSpec, here: Position) -> Box:
    common = _common(draft, here)
    if len(draft.units) != 1:  # all of a sublayer, with what it learned outside of modules without children
        common["parameters"] = _count(_module(here, draft.module))
    return _module_box(common)


def _module_box(common: dict[str, Any]) -> ModuleBox:
    before, after = common["before"], common["after"]
    return ModuleBox(
        **common,
        norm_before=None if before is None else float(np.linalg.norm(before)),
        norm_after=float(np.linalg.norm(after)) if len(after) else None,
    )
