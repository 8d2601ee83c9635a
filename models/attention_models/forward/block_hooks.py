"""Edits of what calls within blocks return, and of the stream that enters blocks, for the length of forward passes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from attention_models.forward.model import Model
from attention_models.forward.sublayers import Call
from attention_models.protocol.values import SiteRef

Edit = Callable[[Any, Any], Any]
"""From what a call was given, (args, kwargs), and what it returned, to what it is to return; None leaves it."""

Edits = dict[SiteRef, dict[Call, Edit]]
"""By block."""

Entering = Callable[[SiteRef, Tensor], Tensor]
"""From a block and the stream that enters it, as the block is given it, to what is to enter."""


@contextmanager
def hooked(
    model: Model, edits: Edits, first: SiteRef | None = None, entering: Entering | None = None
) -> Iterator[None]:
    """While it lasts, `edits` and `entering` act on this thread's passes.

    `first` is the block that a pass over part of the model begins with.
    """
    handles = _hooks(model, edits, first, entering) if edits or entering else []
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def tensor_of(out: Any) -> Any:
    """What a call returned, without what some return beside it."""
    return out[0] if isinstance(out, (tuple, list)) else out


def with_tensor(out: Any, changed: Tensor) -> Any:
    """`out`, its tensor replaced by `changed`."""
    return type(out)((changed, *out[1:])) if isinstance(out, (tuple, list)) else changed


def _hooks(model: Model, edits: Edits, first: SiteRef | None, entering: Entering | None) -> list[RemovableHandle]:
    """Hooks that act in this thread alone; a module that blocks share is edited in those that are meant."""
    thread = threading.get_ident()
    ran: Counter[str] = Counter() if first is None else Counter({first.stack: first.layer})
    calls: Counter[nn.Module] = Counter()  # within the block that runs
    now: dict[Call, Edit] = {}
    stacks = {block: stack for stack, block in model.blocks}

    def enter(block: nn.Module, args: Any, kwargs: Any) -> Any:
        if threading.get_ident() != thread:
            return None
        ref = SiteRef(stacks[block], ran[stacks[block]])
        ran[ref.stack] += 1
        calls.clear()
        now.clear()
        now.update(edits.get(ref, {}))
        hidden = args[0] if args else kwargs.get("hidden_states")
        if entering is None or not isinstance(hidden, Tensor):
            return None
        changed = entering(ref, hidden)
        return ((changed, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": changed})

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
        handles.append(block.register_forward_pre_hook(enter, with_kwargs=True))
        handles.append(block.register_forward_hook(leave, always_call=True))
    for module in dict.fromkeys(call.module for at in edits.values() for call in at):
        handles.append(module.register_forward_hook(edit, with_kwargs=True))
    return handles
