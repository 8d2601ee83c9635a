"""The blocks of a model as they run: what each was called with, and which part of the graph is its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from attention_models.attention.inputs import AttentionInputs
from attention_models.dataflow.watch import Watch, unwatched
from attention_models.forward.capture import Recorder, active
from attention_models.forward.model import Model
from attention_models.protocol.values import Site

ATTENTION = "attention"
"""What made the heads' outputs, among the operations of a graph."""


@dataclass(slots=True, eq=False)
class SiteNodes:
    """An attention module as it ran: its site, and the nodes of what it was handed.

    `mixed` is the node of the heads' outputs. `module` is None where a family computes attention itself.
    """

    site: Site
    module: nn.Module | None
    query: int
    key: int
    value: int
    mixed: int = -1


@dataclass(slots=True)
class WatchedRecorder(Recorder):
    """A recorder that notes in `watch` which tensors attention was handed."""

    watch: Watch | None = None
    seen: list[SiteNodes] = field(default_factory=list)

    def keep(self, module: nn.Module, x: AttentionInputs, stack: str = "") -> AttentionInputs:
        with unwatched():  # masks that interventions make are none of the model's
            kept = Recorder.keep(self, module, x, stack)
        if self.watch is not None:
            nodes = (self.watch.node(t) for t in (x.query, x.key, x.value))
            self.seen.append(SiteNodes(self.sites[-1], module, *nodes))
        return kept

    def mix(self, x: AttentionInputs) -> Tensor:
        with unwatched():
            out = Recorder.mix(self, x)
        if self.watch is not None:
            site = self.seen[-1]
            site.mixed = self.watch.note(ATTENTION, (site.query, site.key, site.value), out)
        return out

    def layers_taken(self) -> dict[str, set[int]]:
        """The layers that ran, by stack: what a later pass over one block has to begin with."""
        return {stack: set(taken) for stack, taken in self._layers.items()}

    def take_layers(self, layers: dict[str, set[int]]) -> None:
        self._layers = {stack: set(taken) for stack, taken in layers.items()}


@dataclass(slots=True, eq=False)
class BlockCall:
    """One call of a block. Nodes and units from `first_node` and `first_unit` on are its own."""

    stack: str
    layer: int  # how many blocks of its stack ran before
    name: str
    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    layers: dict[str, set[int]]
    first_node: int = 0
    first_unit: int = 0
    first_site: int = 0
    before: Tensor | None = None
    after: Tensor | None = None
    start: int = -1  # the node of the stream as it enters
    end: int = -1  # and as it leaves
    outer: bool = False  # what it gives is added to the stream outside of it

    def let_go(self, batch: int) -> None:
        """Keep the arguments without the stream, which the trace has; of a batch the stream too."""
        self.before = self.after = None
        if batch == 1 and hidden_of(self.args, self.kwargs) is not None:
            if self.args:
                self.args = (None, *self.args[1:])
            else:
                self.kwargs = {**self.kwargs, "hidden_states": None}

    def called_with(self, hidden: Tensor) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Its arguments, with the stream in its place."""
        if self.args:
            return (hidden if self.args[0] is None else self.args[0], *self.args[1:]), self.kwargs
        if self.kwargs.get("hidden_states") is None:
            return (), {**self.kwargs, "hidden_states": hidden}
        return (), self.kwargs


def hidden_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
    """The stream among the arguments of a block."""
    hidden = args[0] if args else kwargs.get("hidden_states")
    return hidden if isinstance(hidden, Tensor) else None


@contextmanager
def on_blocks(
    model: Model,
    watch: Watch,
    recorder: WatchedRecorder,
    enter: Callable[[BlockCall], None],
    leave: Callable[[BlockCall], None],
) -> Iterator[None]:
    """While it lasts, `enter` and `leave` are called around every block that runs."""
    calls: dict[str, int] = {}
    open_calls: list[BlockCall] = []
    handles = []

    def before(stack: str, name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if active() is not recorder:  # another thread's pass
                return
            layer = calls.get(stack, 0)
            calls[stack] = layer + 1
            call = BlockCall(stack, layer, name, module, args, kwargs, recorder.layers_taken())
            call.before = hidden_of(args, kwargs)
            if call.before is not None:
                call.start = watch.node(call.before)
                watch.held_size = call.before.numel()
            call.first_node, call.first_unit = len(watch.graph.nodes), len(watch.units)
            call.first_site = len(recorder.seen)
            open_calls.append(call)
            with unwatched():
                enter(call)

        return hook

    def after(_module: nn.Module, _args: Any, out: Any) -> None:
        if active() is not recorder:
            return
        call = open_calls.pop()
        given = out[0] if isinstance(out, (tuple, list)) else out
        if isinstance(given, Tensor):
            call.after, call.end = given, watch.node(given)
        with unwatched():
            leave(call)

    for stack, block in dict.fromkeys(model.blocks):
        name = model.module_names[block]
        handles.append(block.register_forward_pre_hook(before(stack, name), with_kwargs=True))
        handles.append(block.register_forward_hook(after))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
