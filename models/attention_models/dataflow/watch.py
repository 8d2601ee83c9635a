"""Watches a forward pass: every operation that torch dispatches, and every call of a module, as a `Graph`."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils.weak import WeakTensorKeyDictionary

from attention_models.dataflow.graph import PARTS, Graph, Node

ROUTER = "topk"
"""The operation that chooses the largest few of some numbers: experts."""

_MOST_EXPERTS = 512

MATRICES = ("mm", "addmm", "bmm")
"""Operations that multiply by a learned matrix, where their last operand is one."""

PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "_grouped_mm", "grouped_mm_fallback")
"""Products of matrices."""

_SCALINGS = ("mul", "mul_", "div", "div_")


@dataclass(slots=True, eq=False)
class Unit:
    """One call of a module that has no modules inside, or of a matrix by the operation alone, as it ran.

    `given` and `gave` are its tensor arguments and results, `reads` and `gives` their nodes. They are held until
    `Watch.forget`.
    """

    number: int
    name: str
    module: nn.Module
    given: tuple[Tensor, ...]
    reads: tuple[int, ...]
    gave: tuple[Tensor, ...] = ()
    gives: tuple[int, ...] = ()
    first: int = 0  # of the nodes that it made


class Watch(TorchDispatchMode):
    """While it is active in a thread, it keeps the graph of all that is computed there.

    Tensors die as they would: held are what modules without children were given and gave (`units`), and results of
    the size `held_size` (any, while `holds_all`) that no module without children gave. `forget` lets go of these.
    """

    def __init__(self, names: Mapping[nn.Module, str]) -> None:
        """`names` are those of the modules."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.graph = Graph()
        self.units: list[Unit] = []
        self.held_size = 0
        self.holds_all = False
        self.expert_width = 0  # of what chosen experts write, while their rows are held; 0 while they are not
        self._routed = -1  # positions for which experts were chosen: what is made of the choice is held
        self._names = names
        self._thread = threading.get_ident()  # another's passes through the same modules are none of this one
        self._node_of = WeakTensorKeyDictionary()
        self._writes: dict[int, tuple[StorageWeakRef, int]] = {}  # by storage: its last write, where it was a part's
        self._frames: list[Unit] = []  # of the modules that are running
        self._owners: dict[int, tuple[nn.Module, str]] | None = None

    # ----------------------------------------------------------------- operations

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if _written(func):
            self._save(func, args)
        out = func(*args, **kwargs)
        self._note(func, args, kwargs, out)
        return out

    def _note(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> None:
        name = func.overloadpacket.__name__
        target = kwargs.get("out")  # what it is written into gives nothing to it
        tensors = list(_flat((*args, *(value for key, value in kwargs.items() if key != "out"))))
        written = _written(func)
        reads = tuple(self.node(t) for t in tensors)
        node = Node(name, reads, unit=-1)
        if name in _SCALINGS and len(reads) == 1 and len(args) == 2:
            other = args[1] if isinstance(args[0], Tensor) else args[0]
            if isinstance(other, (int, float)):
                node.factor = 1.0 / other if name.startswith("div") and other else float(other)
        elif name in _SCALINGS and len(tensors) == 2:
            self._scalar_product(node, name, tensors)
        elif name in ("add", "add_", "sub", "sub_"):
            node.adds = float(kwargs.get("alpha", args[2] if len(args) > 2 else 1.0))
        elif name in PARTS:
            node.part = tuple(a for a in args[1:] if isinstance(a, int))
        if name == "embedding" and len(tensors) == 2:
            self.graph.nodes[reads[1]].value = tensors[1]  # which rows were looked up
        results = list(_flat((out,)))
        for place, t in enumerate(results):
            part = (*node.part, place) if len(results) > 1 else node.part
            made = Node(name, reads, node.factor, -1, part, tuple(t.shape), None, node.adds)
            if self._is_held(name, t):
                made.value = t
            number = self.graph.add(made)
            self._node_of[t] = number
            if written or target is not None:
                self._note_write(t, number)
        if name in MATRICES and not self._frames_are_units():
            self._note_matrix(name, tensors, reads, results[0])
        if self.expert_width and self._routed >= 0 and name in PRODUCTS:
            self._hold_product(name, tensors, reads)

    def note(self, op: str, reads: Sequence[int], out: Tensor) -> int:
        """Note something that was computed unwatched; returns its node."""
        number = self.graph.add(Node(op, tuple(reads), shape=tuple(out.shape)))
        self._node_of[out] = number
        return number

    def _note_matrix(self, name: str, tensors: Sequence[Tensor], reads: Sequence[int], out: Tensor) -> None:
        """A product with a learned matrix that no module of its own makes (torch's nn.MultiheadAttention; einsum)."""
        place = 1 if name == "addmm" else 0
        learned = self.graph.nodes[self.graph.origin(reads[place + 1]).node].value
        owner = self._owner(learned)
        if owner is None or not isinstance(learned, nn.Parameter):
            return
        module, called = owner
        bias = self.graph.nodes[self.graph.origin(reads[0]).node].value if place else None
        given = tensors[place]
        if name == "bmm":
            weight = tensors[1]
            if weight.shape[0] != 1 or weight.numel() != learned.numel():
                return
            # the axes of its parameter may be in another order
            module = _matrix(nn.Parameter(weight[0].mT, requires_grad=False), None)
            given, out_rows = given[0], out[0]
        else:
            out_rows = out
            if not isinstance(module, nn.Linear):
                module = _matrix(learned, bias if isinstance(bias, nn.Parameter) else None)
        number = self._node_of[out]
        unit = Unit(len(self.units), called, module, (given,), (reads[place],), (out_rows,), (number,), number)
        self.units.append(unit)
        self.graph.nodes[number].unit = unit.number

    def _hold_product(self, name: str, tensors: Sequence[Tensor], reads: Sequence[int]) -> None:
        """Hold what a product reads on its left; its right operand is the weights."""
        place = 1 if name in ("addmm", "baddbmm") else 0
        self.graph.nodes[reads[place]].value = tensors[place]

    def _owner(self, learned: Tensor | None) -> tuple[nn.Module, str] | None:
        """The module that has a parameter, and what to call the matrix: as the module, or as the parameter."""
        if learned is None:
            return None
        if self._owners is None:
            self._owners = {}
            for module, name in self._names.items():
                for own, p in module.named_parameters(recurse=False):
                    self._owners[id(p)] = module, name if own == "weight" else f"{name}.{own}"
        return self._owners.get(id(learned))

    def _is_held(self, name: str, t: Tensor) -> bool:
        if name == ROUTER and t.dim() == 2:
            self._routed = t.shape[0]
        if t.dim() == 2 and t.shape[0] == self._routed and t.shape[1] <= _MOST_EXPERTS:
            return True
        if self.expert_width and self._routed >= 0 and self._is_of_experts(t):
            return True
        if self._frames_are_units():
            return False
        return self.holds_all or t.numel() == self.held_size

    def _is_of_experts(self, t: Tensor) -> bool:
        """Which position each row is of, its share, or what it writes."""
        return t.dim() <= 1 or t.shape[-1] == 1 or (t.dim() == 2 and t.shape[1] == self.expert_width)

    def _save(self, func: Any, args: Sequence[Any]) -> None:
        """Before an operation writes into a tensor that is held: what is held is what it was."""
        t = args[0] if args and isinstance(args[0], Tensor) else None
        number: int | None = None if t is None else self._node_of.get(t)
        if t is None or number is None or self._writes_elsewhere(func):
            return
        node = self.graph.nodes[number]
        unit = self.unit_of(number)
        if unit is not None and unit.gave:
            before = t.clone()
            unit.gave = tuple(before if gave is t else gave for gave in unit.gave)
        elif node.value is t and node.op != "given":
            node.value = t.clone()

    @staticmethod
    def _writes_elsewhere(func: Any) -> bool:
        return str(func._overloadname).endswith("out")

    def _frames_are_units(self) -> bool:
        return bool(self._frames) and not any(True for _ in self._frames[-1].module.children())

    def _scalar_product(self, node: Node, name: str, tensors: Sequence[Tensor]) -> None:
        """A product with a tensor of one number is one with that number (Gemma's embeddings)."""
        single = [t for t in tensors if t.numel() == 1 and t.device.type != "meta"]
        other = [t for t in tensors if t.numel() != 1]
        if len(single) == 1 and len(other) == 1 and (single[0] is tensors[1] or name.startswith("mul")):
            number = float(single[0])
            node.reads = (self.node(other[0]),)
            node.factor = 1.0 / number if name.startswith("div") and number else number

    def node(self, t: Tensor) -> int:
        """The node of a tensor; one of its own for a tensor that was there before."""
        number: int | None = self._node_of.get(t)
        if number is None:
            number = self.graph.add(Node("given", shape=tuple(t.shape), value=t))
            self._node_of[t] = number
        write = self._writes.get(_storage(t)) if self._writes else None
        if write is not None and write[1] > number and self.graph.nodes[number].op != "given":
            # part of its memory was written since: it is made of both
            number = self.graph.add(Node("written", (number, write[1]), shape=tuple(t.shape)))
            self._node_of[t] = number
        return number

    def _note_write(self, t: Tensor, number: int) -> None:
        key = _storage(t)
        if key:
            before = self._writes.get(key)
            if before is not None:
                number = self.graph.add(Node("written", (before[1], number), shape=tuple(t.shape)))
                self._node_of[t] = number
            self._writes[key] = (StorageWeakRef(t.untyped_storage()), number)

    # ----------------------------------------------------------------- modules

    @contextmanager
    def watching(self, modules: Iterable[nn.Module]) -> Iterator[Watch]:
        """While it lasts, operations and the calls of `modules` are watched."""
        handles = []
        for module in modules:
            handles.append(module.register_forward_pre_hook(self._enter, with_kwargs=True))
            handles.append(module.register_forward_hook(self._leave, always_call=True))
        try:
            with self:
                yield self
        finally:
            for handle in handles:
                handle.remove()
            self._frames.clear()

    def _enter(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if threading.get_ident() != self._thread:
            return
        given = tuple(_flat((*args, *kwargs.values())))
        reads = tuple(self.node(t) for t in given)
        unit = Unit(-1, self._names.get(module, ""), module, given, reads, first=len(self.graph.nodes))
        self._frames.append(unit)

    def _leave(self, module: nn.Module, _args: Any, out: Any) -> None:
        if threading.get_ident() != self._thread:
            return
        unit = self._frames.pop() if self._frames else None
        if unit is None or unit.module is not module or any(True for _ in module.children()):
            return
        unit.gave = tuple(_flat((out,)))
        unit.gives = tuple(self.node(t) for t in unit.gave)
        if not any(number >= unit.first for number in unit.gives):
            return  # it hands on what it was given: dropout
        unit.number = len(self.units)
        self.units.append(unit)
        for number in unit.gives:
            if number >= unit.first:
                self.graph.nodes[number].unit = unit.number

    def unit_of(self, number: int) -> Unit | None:
        """The call that gave node `number`."""
        unit = self.graph.nodes[number].unit
        return None if unit < 0 else self.units[unit]

    def forget(self, first_unit: int, first_node: int) -> None:
        """Let go of the tensors of units and nodes from these on."""
        for unit in self.units[first_unit:]:
            unit.given = unit.gave = ()
        for node in self.graph.nodes[first_node:]:
            if node.op != "given":
                node.value = None


@contextmanager
def unwatched() -> Iterator[None]:
    """While it lasts, nothing of this thread is watched: what is computed is of whoever reads the graph."""
    with _disable_current_modes():
        yield


def _matrix(weight: nn.Parameter, bias: nn.Parameter | None) -> nn.Linear:
    """A module for a matrix that has none."""
    module = nn.Linear.__new__(nn.Linear)
    nn.Module.__init__(module)  # without numbers of its own, which would be drawn
    module.weight = weight
    module.register_parameter("bias", bias)
    module.out_features, module.in_features = weight.shape
    return module


def _flat(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _flat(value)
        elif isinstance(value, dict):
            yield from _flat(value.values())


@lru_cache(maxsize=4096)
def _written(func: Any) -> bool:
    """Whether it writes into one of its arguments."""
    return any(a.alias_info is not None and a.alias_info.is_write for a in func._schema.arguments)


def _storage(t: Tensor) -> int:
    try:
        key: int = t.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):  # a tensor without memory, as a mask that is made row by row
        return 0
    return key
