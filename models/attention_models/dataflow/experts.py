"""Mixtures of experts, told by their router: the largest few of some numbers are chosen for each position."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from attention_models.dataflow.anatomy import Reader, Sublayer
from attention_models.dataflow.expert_units import ExpertUnits, expert_units_of
from attention_models.dataflow.network import FUNCTIONS, name_of
from attention_models.dataflow.watch import PRODUCTS, ROUTER


@dataclass(frozen=True, slots=True, eq=False)
class Router:
    """Which experts were chosen at each position, (positions, chosen), with the share of each, and how many there are.

    Positions are those of the whole batch, one text after another. Of an expert's network the size of its hidden layer
    (0 where it is not found), its activation function and whether it has a gate; `units` are None where they were not
    found.
    """

    chosen: Tensor
    shares: Tensor
    count: int
    hidden: int
    activation: str
    gated: bool
    units: ExpertUnits | None


def router_of(reader: Reader, sublayer: Sublayer) -> Router | None:
    """The router of a sublayer; None where it has none, or one whose shares are not found."""
    graph = reader.graph
    inside: set[int] = set()
    for term in sublayer.terms:
        inside |= reader.cone(term.node, frozenset(sublayer.reads))[0]
    inside |= {n for unit in sublayer.units for n in range(unit.first, max(unit.gives) + 1)}
    found = [n for n in sorted(inside) if graph.nodes[n].op == ROUTER and graph.nodes[n].part[-1:] == (0,)]
    if not found:
        return None
    top = found[-1]  # where groups of experts are chosen first (DeepSeek), the last choice is of experts
    values, places = graph.nodes[top], graph.nodes[top + 1]
    count = graph.nodes[values.reads[0]].shape[-1]
    if values.value is None or places.value is None or values.value.dim() != 2:
        return None
    # they are made into shares after: a softmax, a sigmoid, a quotient by their sum
    shares = values.value
    made = {top, top + 1}
    for n in range(top + 2, min(max(inside) + 1, top + 2 + _WITHIN)):
        node = graph.nodes[n]
        if n not in inside or not made & set(node.reads):
            continue
        if node.op not in _MAKES_SHARES:
            continue
        made.add(n)
        if node.value is None or not node.value.is_floating_point():
            continue
        if node.shape == values.shape:
            shares = node.value
        elif node.shape == (values.shape[0], count):
            shares = node.value.gather(1, places.value)
    width = graph.nodes[sublayer.terms[0].node].shape[-1]
    units = expert_units_of(reader, sorted(inside), _sums(reader, sublayer), values.shape[0], width)
    return Router(places.value, shares.float(), count, *_network(reader, sublayer, sorted(inside)), units)


def _sums(reader: Reader, sublayer: Sublayer) -> set[int]:
    """The nodes that a sublayer's summands are, in whatever shape."""
    found = {reader.graph.origin(number).node for number in sublayer.inner}
    return found | {term.seen for term in sublayer.terms if term.seen >= 0 and not sublayer.on_write}


def _network(reader: Reader, sublayer: Sublayer, inside: list[int]) -> tuple[int, str, bool]:
    """What there is to know of the experts' own networks: their last product has the hidden layer on its left."""
    nodes = reader.graph.nodes
    width = nodes[sublayer.terms[0].node].shape[-1]
    products = [n for n in inside if nodes[n].op in PRODUCTS and nodes[n].shape]
    last = next((n for n in reversed(products) if nodes[n].shape[-1] == width), None)
    if last is None:
        return 0, "", False
    left = nodes[last].reads[1 if nodes[last].op in ("addmm", "baddbmm") else 0]
    hidden = nodes[left].shape[-1]
    calls = {name_of(unit.module) for unit in sublayer.units if not any(True for _ in unit.module.parameters())}
    named = calls | {FUNCTIONS[nodes[n].op] for n in inside if nodes[n].op in FUNCTIONS}
    made = [nodes[n].shape[-1] for n in products if n < last]
    gated = 2 * hidden in made or made.count(hidden) > 1
    return hidden, named.pop() if len(named) == 1 else "", gated


_WITHIN = 40
"""How many operations after the choice its shares are made at the latest."""

_MAKES_SHARES = frozenset(
    (
        *("_softmax", "softmax", "sigmoid", "sigmoid_", "div", "div_", "mul", "mul_", "sum", "add", "add_", "gather"),
        *("scatter", "scatter_", "_to_copy", "view", "clone", "copy_", "full_like", "transpose", "written"),
    )
)
