"""The operations of a forward pass as a graph: every tensor is a node that knows which nodes it was made of.

Nothing is told by a name of a module or a family: torch itself reports each operation that it dispatches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from torch import Tensor

SAME = frozenset(
    (
        *("view", "_unsafe_view", "reshape", "_reshape_alias", "transpose", "permute", "t", "contiguous", "clone"),
        *("alias", "detach", "squeeze", "unsqueeze", "_to_copy", "to", "lift_fresh", "expand", "flatten", "copy_"),
    )
)
"""Operations that give the numbers that they are given, in another shape, number format or place."""

PARTS = frozenset(("slice", "select", "split", "split_with_sizes", "unbind", "narrow", "chunk", "as_strided", "index"))
"""Operations that give some of the numbers that they are given."""


@dataclass(slots=True, eq=False)
class Node:
    """One tensor: the operation that made it and the nodes of what it was made of.

    Attributes:
        op: torch's name of the operation without its overload, "addmm"; "given" for a tensor that was there before.
        reads: the nodes of its tensor arguments, in their order.
        factor: what `op` multiplies by, where it is a product with (or a quotient by) one number.
        unit: the number of the module call that gave it; -1 for an operation outside of modules without children.
        part: of an operation with several results, which one; of a part of a tensor, where it was cut.
        shape: of the tensor.
        value: the tensor, where it is held.
    """

    op: str
    reads: tuple[int, ...] = ()
    factor: float | None = None
    unit: int = -1
    part: tuple[object, ...] = ()
    shape: tuple[int, ...] = ()
    value: Tensor | None = None
    adds: float = 1.0  # of a sum: what its second operand is multiplied by


@dataclass(frozen=True, slots=True)
class Term:
    """One summand: `factor` times the tensor of node `node`.

    `seen` is the node that was added, which has the same numbers in another shape; -1 where a factor lies between.
    """

    node: int
    factor: float = 1.0
    seen: int = -1


@dataclass(slots=True, eq=False)
class Graph:
    """Nodes in the order in which their tensors were made."""

    nodes: list[Node] = field(default_factory=list)

    def add(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def origin(self, number: int) -> Term:
        """The node whose numbers `number` has, and the factor that they were multiplied by on the way."""
        factor = 1.0
        while True:
            node = self.nodes[number]
            if node.unit >= 0:
                return Term(number, factor)
            if node.op in SAME and node.reads and self._keeps_all(node):
                number = node.reads[-1] if node.op == "copy_" else node.reads[0]
            elif node.op in PARTS and node.reads and self.nodes[node.reads[0]].shape == node.shape:
                number = node.reads[0]  # all of it
            elif node.factor is not None and len(node.reads) == 1:
                factor *= node.factor
                number = node.reads[0]
            else:
                return Term(number, factor)

    def whole(self, number: int) -> int:
        """The node that `number` is, or some positions of."""
        while True:
            number = self.origin(number).node
            node = self.nodes[number]
            if node.unit >= 0 or node.op not in (*PARTS, "expand") or not node.reads:
                return number
            number = node.reads[0]

    def _keeps_all(self, node: Node) -> bool:
        return node.op != "expand" or size_of(node.shape) == size_of(self.nodes[node.reads[0]].shape)

    def is_sum(self, number: int) -> bool:
        node = self.nodes[number]
        return node.unit < 0 and node.op in ("add", "add_", "sub", "sub_") and len(node.reads) == 2

    def summands(self, number: int) -> tuple[Term, Term]:
        """The two operands of a sum."""
        node = self.nodes[number]
        sign = -1.0 if node.op in ("sub", "sub_") else 1.0
        return Term(node.reads[0]), Term(node.reads[1], sign * node.adds)

    def terms(self, number: int, stops: Iterable[int] = (), factor: float = 1.0) -> list[Term]:
        """`number` taken apart into what it is the sum of. Nothing that is among `stops` is taken apart."""
        held = frozenset(stops)
        origin = self.origin(number) if number not in held else Term(number)
        factor *= origin.factor
        if origin.node in held or not self.is_sum(origin.node):
            return [Term(origin.node, factor, number if origin.factor == 1.0 else -1)]
        return [
            term
            for operand in self.summands(origin.node)
            for term in self.terms(operand.node, held, factor * operand.factor)
        ]

    def walk(self, number: int, after: Callable[[int], Iterable[int]]) -> Iterator[int]:
        """Every node that `number` depends on, itself first. `after` says with which nodes to go on from one."""
        seen, waiting = {number}, [number]
        while waiting:
            here = waiting.pop()
            yield here
            for reads in after(here):
                if reads not in seen:
                    seen.add(reads)
                    waiting.append(reads)


def size_of(shape: tuple[int, ...]) -> int:
    """How many numbers a tensor of this shape has."""
    size = 1
    for count in shape:
        size *= count
    return size
