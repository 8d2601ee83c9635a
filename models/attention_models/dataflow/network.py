"""Feed-forward networks and matrices, told by what is computed and not by what they are called."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from attention_models.dataflow.anatomy import Reader, Sublayer
from attention_models.dataflow.graph import PARTS, SAME
from attention_models.dataflow.matrices import is_matrix
from attention_models.dataflow.watch import Unit

FUNCTIONS = {"gelu": "GELU", "relu": "ReLU", "relu_": "ReLU", "silu": "SiLU", "silu_": "SiLU"}
"""What torch calls an activation function, and what it is called in print."""

_CLASSES = {
    "GELUActivation": "GELU",
    "NewGELUActivation": "GELU (tanh)",
    "FastGELUActivation": "GELU (tanh)",
    "GELUTanh": "GELU (tanh)",
    "PytorchGELUTanh": "GELU (tanh)",
    "BloomGelu": "GELU (tanh)",
    "QuickGELUActivation": "GELU (sigmoid)",
    "ClippedGELUActivation": "GELU (clipped)",
    "SiLUActivation": "SiLU",
    "SiLU": "SiLU",
    "ReLUSquaredActivation": "ReLU²",
    "LaplaceActivation": "Laplace",
    "MishActivation": "Mish",
    "LinearActivation": "linear",
    "ReLU6": "ReLU6",
}
"""Classes of transformers and torch whose name says the function less well."""

_BETWEEN = (
    SAME
    | PARTS
    | frozenset(
        (
            *(
                "mul",
                "mul_",
                "add",
                "add_",
                "sub",
                "div",
                "neg",
                "clamp",
                "clamp_min",
                "clamp_max",
                "pow",
                "exp",
                "erf",
            ),
            *("sigmoid", "tanh", "relu", "relu_", "gelu", "silu", "silu_", "softplus", "square", "given", "written"),
        )
    )
)
"""Operations that act on each number alone: what may stand between the matrices of a feed-forward network."""


@dataclass(slots=True, eq=False)
class Network:
    """A feed-forward network of two matrices, three with a gate."""

    first: list[Unit]  # that read the stream
    functions: list[Unit]  # modules that apply a function
    last: Unit  # that writes
    activation: str
    gated: bool

    @property
    def units(self) -> set[int]:
        return {unit.number for unit in (*self.first, *self.functions, self.last)}


def network_of(reader: Reader, sublayer: Sublayer) -> Network | None:
    """The network that a sublayer is; None where it is none, or not one that can be read."""
    return network_at(reader, sublayer.inner[0]) if len(sublayer.terms) == 1 else None


def network_at(reader: Reader, number: int) -> Network | None:
    """The network that gave node `number`."""
    graph, watch = reader.graph, reader.watch
    last = watch.unit_of(number)
    if last is None or not is_matrix(last.module):
        return None
    first: dict[int, Unit] = {}
    functions: dict[int, Unit] = {}
    named: set[str] = set()
    gated = False
    waiting, seen = [last.reads[0]], set()
    while waiting:
        here = waiting.pop()
        if here in seen:
            continue
        seen.add(here)
        unit = watch.unit_of(here)
        node = graph.nodes[here]
        if unit is not None and is_matrix(unit.module):
            first[unit.number] = unit
            continue
        if unit is not None:
            if any(True for _ in unit.module.parameters()) or len(unit.reads) != 1:
                return None
            functions[unit.number] = unit
            named.add(name_of(unit.module))
            waiting.append(unit.reads[0])
            continue
        if node.op not in _BETWEEN or here < reader.call.first_node:
            if node.op == "given":
                continue
            return None
        if node.op in FUNCTIONS:
            named.add(FUNCTIONS[node.op])
        if node.op in ("mul", "mul_") and len(node.reads) == 2:
            one, other = (_sources(reader, n) for n in node.reads)
            gated = gated or bool(one and other and not one & other)
        waiting += node.reads
    if not first or len({unit.reads[0] for unit in first.values()}) > 1:
        return None
    return Network(
        [first[n] for n in sorted(first)],
        [functions[n] for n in sorted(functions)],
        last,
        named.pop() if len(named) == 1 else "",
        gated,
    )


def name_of(module: nn.Module) -> str:
    """What an activation function is called: "GELU"."""
    name = type(module).__name__
    if name == "GELU" and getattr(module, "approximate", "none") == "tanh":
        return "GELU (tanh)"
    return _CLASSES.get(name, name.removesuffix("Activation"))


def _sources(reader: Reader, number: int) -> set[tuple[int, tuple[object, ...]]]:
    """Which matrices, and which parts of what they give, node `number` is made of."""
    found: set[tuple[int, tuple[object, ...]]] = set()
    waiting: list[tuple[int, tuple[object, ...]]] = [(number, ())]
    seen: set[tuple[int, tuple[object, ...]]] = set()
    while waiting:
        here, part = waiting.pop()
        if (here, part) in seen:
            continue
        seen.add((here, part))
        unit, node = reader.watch.unit_of(here), reader.graph.nodes[here]
        if unit is not None and is_matrix(unit.module):
            found.add((unit.number, part))
            continue
        if node.op in PARTS and unit is None:
            part = (*part, *map(str, node.part))
        reads = node.reads if unit is None else unit.reads
        waiting += [(n, part) for n in reads if n >= reader.call.first_node]
    return found
