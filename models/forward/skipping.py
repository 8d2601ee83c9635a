"""Switches parts of blocks off for the length of one forward pass."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from models.forward.model import Model
from models.forward.sublayers import Blocks, Call, sublayers_of, without_gain
from models.protocol.errors import InputError
from models.protocol.interventions import Intervention, Skip, describe, part_name
from models.protocol.values import SiteRef

Edit = Callable[[Any, Any], Any]
"""From what a call was given, (args, kwargs), and what it returned, to what it is to return."""

Edits = dict[SiteRef, dict[Call, Edit]]


@contextmanager
def skipped(
    model: Model,
    inputs: Mapping[str, Tensor],
    interventions: Sequence[Intervention],
    first: SiteRef | None = None,
) -> Iterator[None]:
    """While it lasts, this thread's forward passes leave out what `interventions` switch off.

    `inputs` are those of a whole run of the model: the first time some of them are run to find its parts. `first` is
    the block that a pass over part of the model begins with.

    Raises:
        InputError: the model has no such block, or no such part of it is known.
    """
    skips = [item.of_stack(model.info.predicting_stack) for item in interventions if isinstance(item, Skip)]
    skips = [skip for skip in skips if not skip.on]
    if not skips:
        yield
        return
    if model.info.textbook:
        raise InputError(f"{model.info.name} is a recurrent model: interventions are for transformers.")
    handles = _hooked(model, _edits(model.info.name, sublayers_of(model, inputs), skips), first)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _edits(name: str, blocks: Blocks, skips: Sequence[Skip]) -> Edits:
    """What is to be done at which call of which block."""
    edits: Edits = {}
    for skip in skips:
        block = blocks.get(skip.site)
        if block is None:
            raise InputError(_no_block(name, blocks, skip))
        calls = block.calls.get(skip.part)
        if block.why and (skip.norm is None or calls is None):
            raise InputError(f"“{describe(skip)}” cannot be done: {block.why}")
        if calls is None:
            known = ", ".join(part_name(part) for part in block.calls)
            raise InputError(
                f"“{describe(skip)}”: this block of {name} has no {part_name(skip.part)} with anything to switch off. "
                f"It has {known}."
            )
        edit = _zero if skip.norm is None else _no_gain(calls[0].module)
        edits.setdefault(skip.site, {}).update(dict.fromkeys(calls, edit))
    return edits


def _no_block(name: str, blocks: Blocks, skip: Skip) -> str:
    of_stack = [ref.layer for ref in blocks if ref.stack == skip.site.stack]
    if not of_stack:
        stack = next((ref.stack for ref in blocks), "")
        has = f"its only stack is the {stack}" if stack else "no list of blocks was found in it"
        return f"“{describe(skip)}” cannot be done in {name}: {has}."
    return f"“{describe(skip)}”: {name} has no such layer; its {skip.site.stack} has layers 0 to {max(of_stack)}."


def _hooked(model: Model, edits: Edits, first: SiteRef | None) -> list[RemovableHandle]:
    """Hooks that act in this thread alone; a module that blocks share is edited in those that are meant."""
    thread = threading.get_ident()
    ran: Counter[str] = Counter() if first is None else Counter({first.stack: first.layer})
    calls: Counter[nn.Module] = Counter()  # within the block that runs
    now: dict[Call, Edit] = {}
    stacks = {block: stack for stack, block in model.blocks}

    def enter(block: nn.Module, _args: Any) -> None:
        if threading.get_ident() == thread:
            ref = SiteRef(stacks[block], ran[stacks[block]])
            ran[ref.stack] += 1
            calls.clear()
            now.clear()
            now.update(edits.get(ref, {}))

    def leave(_block: nn.Module, _args: Any, _out: Any) -> None:
        if threading.get_ident() == thread:
            now.clear()

    def edit(module: nn.Module, args: Any, kwargs: Any, out: Any) -> Any:
        if threading.get_ident() != thread:
            return None
        call = Call(module, calls[module])
        calls[module] += 1
        return now[call]((args, kwargs), out) if call in now else None

    handles: list[RemovableHandle] = []
    for block in stacks:
        handles += [block.register_forward_pre_hook(enter), block.register_forward_hook(leave, always_call=True)]
    for module in dict.fromkeys(call.module for at in edits.values() for call in at):
        handles.append(module.register_forward_hook(edit, with_kwargs=True))
    return handles


def _zero(_given: Any, out: Any) -> Any:
    if isinstance(out, (tuple, list)):
        return type(out)((torch.zeros_like(out[0]), *out[1:]))
    return torch.zeros_like(out)


def _no_gain(norm: nn.Module) -> Edit:
    plain = without_gain(norm)
    assert plain is not None  # or it would be no part

    def edit(given: Any, out: Tensor) -> Tensor:
        args, kwargs = given
        again: Tensor = plain.to(out.device)(*args, **kwargs)
        return again

    return edit
