"""transformers' description of a mask, a function of places, made into a mask that takes no room in a long text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map
from transformers.masking_utils import causal_mask_function, sdpa_mask

from attention_models.attention.incremental import BlockSize
from attention_models.protocol.values import is_long

# Masks of long texts: evaluated where they are needed, never held.
# A mask of 32,768 x 32,768 cells takes 1 GB, once for each kind of layer (sliding windows: Beltagy et al. 2020, section
# 3.1; chunks; padding; what a person chose). Which cells are open is a function of the places of query and key, though,
# and a function takes no room: a `MaskFunction` evaluates it for some rows and keys. `RowMask` makes a tensor of it,
# with shape, dtype and device but no memory, that passes through a model's code as any other mask does.


Places = slice | list[int]
Cells = Callable[[Places, slice], Tensor]
"""From queries and keys to bool that broadcasts to (batch, 1, rows, keys), True is visible."""

GROUP = 64
"""Rows that share an entry in the table of what is visible."""

# Cells evaluated at once to make the table.
_BLOCK = BlockSize(1 << 21)


class MaskFunction:
    """Which keys are visible to each query, as a function of their places."""

    def __init__(
        self, cells: Cells, queries: int, keys: int, device: torch.device, kept: Sequence[Tensor] = ()
    ) -> None:
        """`cells` is evaluated on `device`; `kept` are tensors that it holds on to, for whoever counts bytes."""
        self._cells = cells
        self.queries, self.keys, self.device, self.kept = queries, keys, device, tuple(kept)

    def block(self, rows: Places | None = None, keys: slice | None = None) -> Tensor:
        """(batch, 1, rows, keys) bool, True is visible."""
        wanted, across = resolve_rows(rows, self.queries), slice(*(keys or slice(None)).indices(self.keys)[:2])
        cells = self._cells(wanted, across)
        return cells.expand(-1, -1, count(wanted), across.stop - across.start)

    def of_text(self, text: int) -> MaskFunction:
        """That of one text of a batch."""

        def cells(rows: Places, keys: slice) -> Tensor:
            made = self._cells(rows, keys)
            return made if made.shape[0] == 1 else made[text : text + 1]

        return MaskFunction(cells, self.queries, self.keys, self.device, self.kept)

    def reach(self, rows: slice) -> slice:
        """A run of keys outside of which nothing is visible to `rows`: the shortest for the groups they are in."""
        table = self._table[_groups(rows)]
        table = table[table[:, 0] < table[:, 1]]
        start, stop = int(table[:, 0].min(initial=self.keys)), int(table[:, 1].max(initial=0))
        return slice(start, stop) if start < stop else slice(0, 0)

    def open_run(self, rows: slice) -> slice:
        """A run of keys visible to each of `rows`, and to all that share a group with them; empty where none is."""
        table = self._table[_groups(rows)]
        start, stop = int(table[:, 2].max(initial=0)), int(table[:, 3].min(initial=self.keys))
        return slice(start, stop) if start < stop else slice(0, 0)

    def work(self, first: int, last: int) -> int:
        """How many cells the rows from `first` to before `last` reach."""
        starts = np.arange(len(self._table)) * GROUP
        rows = np.clip(last - starts, 0, GROUP) - np.clip(first - starts, 0, GROUP)
        return int((rows * np.maximum(self._table[:, 1] - self._table[:, 0], 0)).sum())

    @cached_property
    def _table(self) -> np.ndarray:
        """Of each group of rows: first key and last key + 1 of what is visible to one, and to all. (groups, 4).

        What is visible to all is left out where it is no single run.
        """
        # every cell is evaluated once, with one wait for the device, so that no view has to ask again
        return torch.cat([_runs(part) for part in self._parts()]).cpu().numpy()

    def _parts(self) -> Iterator[Tensor]:
        """All cells, some groups at a time: (batch, groups, rows, keys)."""
        step = max(1, _BLOCK.on(self.device) // (GROUP * self.keys)) * GROUP
        whole = self.queries // GROUP * GROUP
        for start in range(0, whole, step):
            yield self.block(slice(start, min(start + step, whole)))[:, 0].unflatten(1, (-1, GROUP))
        if whole < self.queries:
            yield self.block(slice(whole, self.queries))


def _runs(cells: Tensor) -> Tensor:
    """The table of (batch, groups, rows, keys): (groups, 4) int."""
    some, every = cells.any(dim=2).any(dim=0), cells.all(dim=2).all(dim=0)  # (groups, keys)
    runs = []
    for keys, is_run in ((some, False), (every, True)):
        first = keys.int().argmax(dim=1)
        last, size = keys.shape[1] - keys.int().flip(1).argmax(dim=1), keys.sum(dim=1)
        there = (size == last - first) if is_run else size > 0
        runs += [torch.where(there, first, 0), torch.where(there, last, 0)]
    return torch.stack(runs, dim=1)


def _groups(rows: slice) -> slice:
    return slice(rows.start // GROUP, -(-rows.stop // GROUP))


def resolve_rows(rows: Places | None, queries: int) -> Places:
    """`rows` as a slice with start and stop, or a list of places that count from 0."""
    if isinstance(rows, list):
        return [range(queries)[row] for row in rows]
    start, stop, step = (rows or slice(None)).indices(queries)
    return slice(start, max(start, stop)) if step == 1 else list(range(start, stop, step))


def count(rows: Places) -> int:
    return len(rows) if isinstance(rows, list) else rows.stop - rows.start


def places(rows: Places, device: torch.device, first: int = 0) -> Tensor:
    """`rows` as numbers that count from `first`, (rows,)."""
    if isinstance(rows, list):
        return torch.tensor(rows, dtype=torch.long, device=device) + first
    return torch.arange(first + rows.start, first + rows.stop, device=device)


class RowMask(Tensor):
    """A bool mask, (batch, heads or 1, queries, keys), of which rows and keys are made when they are asked for.

    What torch does with it elsewhere is done with the whole of it.
    """

    functions: tuple[MaskFunction, ...]
    of_head: tuple[int, ...]  # which function is each head's; one number stands for all heads

    # else torch would call the results of operations masks too
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(
        cls,
        functions: Sequence[MaskFunction],
        of_head: Sequence[int] = (0,),
        batch: int = 1,
        device: torch.device | None = None,
    ) -> RowMask:
        first = functions[0]
        shape = (batch, len(of_head), first.queries, first.keys)
        mask: RowMask = Tensor._make_wrapper_subclass(cls, shape, dtype=torch.bool, device=device or first.device)
        mask.functions, mask.of_head = tuple(functions), tuple(of_head)
        return mask

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"RowMask({tuple(self.shape)}, device={self.device})"

    def block(self, heads: list[int] | None = None, rows: Places | None = None, keys: slice | None = None) -> Tensor:
        """Some of it as an ordinary tensor, (batch, heads, rows, keys); one head where all of them are masked alike."""
        wanted = self._of(heads)
        made = {i: self.functions[i].block(rows, keys).to(self.device) for i in set(wanted)}
        return made[wanted[0]] if len(made) == 1 else torch.cat([made[i] for i in wanted], dim=1)

    def reach(self, heads: list[int] | None, rows: slice) -> slice:
        """As `MaskFunction.reach`, for some heads together."""
        runs = [self.functions[i].reach(rows) for i in set(self._of(heads))]
        runs = [run for run in runs if run.start < run.stop]
        if not runs:
            return slice(0, 0)
        return slice(min(run.start for run in runs), max(run.stop for run in runs))

    def open_run(self, heads: list[int] | None, rows: slice) -> slice:
        """As `MaskFunction.open_run`, for some heads together."""
        runs = [self.functions[i].open_run(rows) for i in set(self._of(heads))]
        start, stop = max(run.start for run in runs), min(run.stop for run in runs)
        return slice(start, stop) if start < stop else slice(0, 0)

    def heads_alike(self) -> Iterator[list[int] | None]:
        """The heads of each function; None: all of them."""
        for i in range(len(self.functions)):
            yield None if len(self.functions) == 1 else [head for head, own in enumerate(self.of_head) if own == i]

    def work(self, first: int, last: int, heads: int) -> int:
        """How many cells of `heads` heads the rows from `first` to before `last` reach."""
        each = heads // len(self.of_head)
        return sum(each * self.functions[i].work(first, last) for i in self.of_head)

    def of_text(self, text: int) -> RowMask:
        """That of one text of a batch, batch 1."""
        return RowMask([function.of_text(text) for function in self.functions], self.of_head, device=self.device)

    def _of(self, heads: list[int] | None) -> tuple[int, ...]:
        if heads is None or len(self.of_head) == 1:
            return self.of_head
        return tuple(self.of_head[head] for head in heads)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        kwargs, packet = kwargs or {}, func.overloadpacket
        if packet in (torch.ops.aten.detach, torch.ops.aten.alias):
            return args[0]._like()
        if packet is torch.ops.aten._to_copy and kwargs.get("dtype") in (None, torch.bool):
            return args[0]._like(kwargs.get("device"))  # a model spread over devices moves its masks along
        args, kwargs = tree_map(lambda part: part.block() if isinstance(part, RowMask) else part, (args, kwargs))
        return func(*args, **kwargs)

    def _like(self, device: torch.device | None = None) -> RowMask:
        return RowMask(self.functions, self.of_head, self.shape[0], device or self.device)


def held(mask: Tensor | None) -> Iterator[Tensor]:
    """The tensors with memory of their own that a mask is made of."""
    if isinstance(mask, RowMask):
        for part in (part for function in mask.functions for part in function.kept):
            yield from held(part)
    elif mask is not None:
        yield mask


class _Asked(Exception):
    """The function of a mask was called, so a mask is needed."""


def _ask(*_: Any) -> Tensor:
    raise _Asked


def mask_where_looked_at(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | Tensor = 0,
    kv_offset: int = 0,
    mask_function: Callable[..., Any] = causal_mask_function,
    attention_mask: Tensor | None = None,
    use_vmap: bool = False,
    device: torch.device | str = "cpu",
    **options: Any,
) -> Tensor | None:
    """As transformers' `sdpa_mask`, whose blocks a long text's `RowMask` asks for; none for a plain causal layer.

    Where there is none, the module's `is_causal` says whether it looks ahead.
    """
    place = (q_length, kv_length, q_offset, kv_offset)
    if not is_long(q_length, kv_length) or isinstance(q_offset, Tensor):
        given = {"attention_mask": attention_mask, "use_vmap": use_vmap, "device": device, **options}
        return sdpa_mask(batch_size, *place, mask_function, **given)  # type: ignore[arg-type]
    if attention_mask is not None and attention_mask.shape[-1] >= kv_length + kv_offset and bool(attention_mask.all()):
        attention_mask = None  # hides nothing
    given = {"attention_mask": attention_mask, "device": device, **options}
    try:
        return sdpa_mask(batch_size, *place, _ask, **given)  # type: ignore[arg-type]
    except _Asked:
        given |= {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False, "use_vmap": use_vmap}

    def cells(rows: Places, keys: slice) -> Tensor:
        first, function = q_offset, mask_function
        if isinstance(rows, slice):
            first += rows.start
        else:
            chosen = places(rows, torch.device(device), q_offset)
            first, function = 0, lambda b, h, q, k: mask_function(b, h, chosen[q], k)
        made = sdpa_mask(
            batch_size, count(rows), keys.stop - keys.start, first, kv_offset + keys.start, function, **given
        )
        assert made is not None
        return made

    kept = () if attention_mask is None else (attention_mask,)
    return RowMask([MaskFunction(cells, q_length, kv_length, torch.device(device), kept)], batch=batch_size)
