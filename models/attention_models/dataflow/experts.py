"""Mixtures of experts, told by their router: the largest few of some numbers are chosen for each position."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attention_models.dataflow.anatomy import Reader, Sublayer
from attention_models.dataflow.graph import SAME
from attention_models.dataflow.network import FUNCTIONS, name_of
from attention_models.dataflow.watch import PRODUCTS, ROUTER

# The hidden units of the experts that were chosen, from the products of matrices that made them.
# Experts keep their matrices one on another in one parameter, and their rows of hidden units in an order of their own.
# Which position and which expert a row is of is followed through what was dispatched: an index, a repetition, the ends
# of groups. It counts only where the rows, added up position by position, are what is written into the stream.


_GROUPED = ("_grouped_mm", "grouped_mm_fallback")
_WITH_BIAS = ("addmm", "baddbmm")
_TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-9, torch.bfloat16: 3e-2, torch.float16: 6e-3}


@dataclass(frozen=True, slots=True, eq=False)
class ExpertUnits:
    """The hidden layers of experts, a row for each pair of a position and an expert that ran for it.

    Attributes:
        hidden: (pairs, hidden), as the last matrix reads it.
        positions: (pairs,) of the whole batch, one text after another.
        experts: (pairs,).
        factors: (pairs,) float32, what each one's write is multiplied by.
        matrices: (experts, hidden, width), the last matrix of each, as it multiplies from the right.
    """

    hidden: Tensor
    positions: Tensor
    experts: Tensor
    factors: Tensor
    matrices: Tensor


@dataclass(slots=True, eq=False)
class _Rows:
    """What one product made: its rows, and what became of them before they were added up."""

    hidden: Tensor
    positions: Tensor
    experts: Tensor
    factors: Tensor
    wrote: Tensor  # (pairs, width)


def expert_units_of(
    reader: Reader, inside: list[int], sums: Iterable[int], positions: int, width: int
) -> ExpertUnits | None:
    """Those among the nodes `inside`, in their order; None where they do not make one of `sums`, which are written."""
    walk = _Walk(reader, inside, positions, width)
    matrices: Tensor | None = None
    found: list[_Rows] = []
    for number in inside:
        stack = walk.matrices_of(number)
        if stack is None:
            continue
        if matrices is not None and matrices.data_ptr() != stack.data_ptr():
            return None
        rows = walk.rows_of(number)
        if rows is None:
            return None
        matrices = stack
        found.append(rows)
    if matrices is None:
        return None
    every = _Rows(
        *(
            torch.cat([getattr(r, name) for r in found])
            for name in ("hidden", "positions", "experts", "factors", "wrote")
        )
    )
    if not any(walk.is_sum_of(every, number) for number in sums):
        return None
    return ExpertUnits(every.hidden, every.positions, every.experts, every.factors, matrices)


class _Walk:
    def __init__(self, reader: Reader, inside: list[int], positions: int, width: int) -> None:
        self.nodes = reader.graph.nodes
        self.order, self.inside = inside, frozenset(inside)
        self.positions, self.width = positions, width

    def matrices_of(self, number: int) -> Tensor | None:
        """(experts, hidden, width), if node `number` is a product with the last matrix of experts."""
        node = self.nodes[number]
        if node.op not in PRODUCTS or node.shape[-1:] != (self.width,):
            return None
        right = node.reads[2 if node.op in _WITH_BIAS else 1]
        turned = False
        while not isinstance(self.nodes[right].value, nn.Parameter):
            turned ^= self.nodes[right].op in ("t", "transpose")
            if self.nodes[right].op not in (*SAME, "select") or not self.nodes[right].reads:
                return None
            right = self.nodes[right].reads[0]
        learned = self.nodes[right].value
        if learned is None or learned.dim() != 3 or learned.is_meta:
            return None
        matrices = learned.detach().mT if turned else learned.detach()
        left = self.nodes[node.reads[1 if node.op in _WITH_BIAS else 0]]
        return matrices if matrices.shape[1:] == (left.shape[-1], self.width) else None

    def rows_of(self, number: int) -> _Rows | None:
        node = self.nodes[number]
        left = node.reads[1 if node.op in _WITH_BIAS else 0]
        hidden, experts = self.nodes[left].value, self._experts(number)
        positions = self._positions(left)
        if hidden is None or experts is None or positions is None:
            return None
        hidden = hidden.detach().reshape(-1, hidden.shape[-1])
        written = self._written(number, len(hidden))
        if written is None or not len(hidden) == len(experts) == len(positions):
            return None
        return _Rows(hidden, positions, experts.to(positions.device), *written)

    def _experts(self, number: int) -> Tensor | None:
        """Of which expert each row of a product is."""
        node = self.nodes[number]
        if node.op in _GROUPED:
            ends = self.nodes[node.reads[2]].value
            if ends is None:
                return None
            return torch.searchsorted(
                ends, torch.arange(node.shape[0], device=ends.device, dtype=ends.dtype), right=True
            )
        if node.op in ("bmm", "baddbmm"):  # all experts, each with as many rows
            return torch.arange(node.shape[0]).repeat_interleave(node.shape[1])
        right = node.reads[2 if node.op == "addmm" else 1]
        while self.nodes[right].op != "select":
            right = self.nodes[right].reads[0]
        return torch.full((node.shape[0],), int(str(self.nodes[right].part[1])))

    def _positions(self, number: int) -> Tensor | None:
        """For which position each row is: where the rows were taken from."""
        rows = self._count(number)
        while True:
            node = self.nodes[number]
            if node.op == "index" and len(node.reads) == 2 and self._count(node.reads[0]) == self.positions:
                taken = self.nodes[node.reads[1]].value
                return None if taken is None or taken.dim() != 1 else taken
            if node.op == "repeat" and self._count(node.reads[0]) == self.positions:
                return torch.arange(self.positions).repeat(rows // self.positions)
            read = [n for n in self._reads(number) if self._count(n) == rows and self.nodes[n].shape[-1] > 1]
            if not read or number not in self.inside:
                return None
            number = read[0]

    def _written(self, number: int, rows: int) -> tuple[Tensor, Tensor] | None:
        """What each row of a product was multiplied by, (rows,), and what came of it, (rows, width)."""
        factors, value = torch.ones(rows), self.nodes[number].value
        while True:
            later = self.order[bisect_right(self.order, number) :]
            after = next((n for n in later if number in self.nodes[n].reads), None)
            if after is None:
                break
            node = self.nodes[after]
            if node.op in ("mul", "mul_") and len(node.reads) == 2 and self._count(after) == rows:
                other = self.nodes[next((n for n in node.reads if n != number), number)]
                if other.value is None or other.value.numel() != rows:
                    return None
                factors = factors * other.value.detach().reshape(-1).float().cpu()
            elif (
                node.op not in ("add", "add_", *SAME) or node.shape[-1:] != (self.width,) or self._count(after) != rows
            ):
                break
            number = after
            value = node.value if node.value is not None or node.op not in SAME else value
        return None if value is None else (factors, value.detach().reshape(-1, self.width))

    def is_sum_of(self, rows: _Rows, number: int) -> bool:
        """Whether node `number` is what was written, added up position by position."""
        value = self.nodes[number].value
        if value is None or value.numel() != self.positions * self.width:
            return False
        made, wrote = value.detach().float().reshape(self.positions, self.width), rows.wrote.float()
        total = torch.zeros_like(made).index_add_(0, rows.positions.to(made.device), wrote.to(made.device))
        largest = max(1e-30, float(total.abs().max()))
        return float((made - total).abs().max()) <= _TOLERANCE.get(value.dtype, 1e-5) * largest

    def _count(self, number: int) -> int:
        """How many rows a node has."""
        count = 1
        for size in self.nodes[number].shape[:-1]:
            count *= size
        return count

    def _reads(self, number: int) -> tuple[int, ...]:
        node = self.nodes[number]
        if node.op in _WITH_BIAS:
            return node.reads[1:2]
        return node.reads[:1] if node.op in PRODUCTS else node.reads


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
