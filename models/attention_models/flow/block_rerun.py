"""One block of a run, computed again and watched: everything that its boxes show, at every position."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor

from attention_models.dataflow.anatomy import Anatomy, Reader
from attention_models.dataflow.blocks import BlockCall, WatchedRecorder
from attention_models.dataflow.own_attention import own_sites_of
from attention_models.dataflow.watch import Watch
from attention_models.flow.box_specs import BoxSpec
from attention_models.flow.layout import Layout, Vectors, vectors_of
from attention_models.flow.model import Watched, watched_run
from attention_models.flow.recurrent_flow import NO_BLOCKS
from attention_models.forward.context import Context
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.intervened import intervened
from attention_models.forward.recurrent_model import RecurrentModel
from attention_models.protocol.errors import InputError
from attention_models.protocol.request import ShouldStop
from attention_models.protocol.values import SiteRef

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class BlockRerun:
    """One block that ran again. `reader` holds the tensors of every module in it."""

    stack: str
    layer: int
    call: BlockCall
    reader: Reader
    anatomy: Anatomy
    layout: Layout
    before: Tensor  # (tokens, width)
    after: Tensor
    drafts: list[BoxSpec] | None = None
    _made: dict[Hashable, Any] = field(default_factory=dict)

    def get_or_compute(self, key: Hashable, make: Callable[[], T]) -> T:
        """What is the same at every position, made when it is first needed."""
        if key not in self._made:
            self._made[key] = make()
        made: T = self._made[key]
        return made

    def vectors(self, t: Tensor) -> Vectors | None:
        """`t`, which is kept, position by position; None where it has no one vector for each."""
        return self.get_or_compute(("vectors", id(t)), lambda: vectors_of(self.layout.vectors(t, len(self.before))))


def block_of(run: CurrentRun, stack: str, layer: int, context: Context) -> BlockRerun:
    """The block, from what is kept of the run or computed again.

    Raises:
        InputError: the model has no blocks.
        IndexError: the run has no such block.
    """
    if isinstance(run.model, RecurrentModel):
        raise InputError(NO_BLOCKS)
    kept = run.kept.get(BlockRerun)
    if kept is not None and (kept.stack, kept.layer) == (stack, layer):
        return kept
    watched = watched_run(run, context.should_stop, context.report)
    if (stack, layer) not in watched.calls:
        raise IndexError(f"This run has no block {layer} in its {stack}.")
    run.kept.drop(BlockRerun)  # the one before makes room
    return run.kept.put(compute(run, watched, stack, layer, context.should_stop))


@torch.no_grad()
def compute(run: CurrentRun, watched: Watched, stack: str, layer: int, should_stop: ShouldStop) -> BlockRerun:
    """Call the block's module with what it was called with, under the same interventions."""
    model, trace, call = run.model, run.trace, watched.calls[stack, layer]
    stream = trace.residual[stack]
    hidden = watched.layout.hidden(stream[layer])
    args, kwargs = call.called_with(hidden)
    watch = Watch(model.module_names)
    recorder = WatchedRecorder(
        model.module_names, model.seq2seq, should_stop, trace.interventions, real=watched.real, watch=watch
    )
    recorder.take_layers(call.layers)
    again = BlockCall(stack, layer, call.name, call.module, args, kwargs, call.layers)
    given = args[0] if args else kwargs["hidden_states"]
    with (
        intervened(model, watched.inputs, recorder, SiteRef(stack, layer)),
        watch.watching(call.module.modules()),
        model.ready(),
    ):
        again.start = watch.node(given)
        again.first_node = len(watch.graph.nodes)
        watch.held_size = given.numel()
        watch.expert_width = given.shape[-1]
        out = call.module(*args, **kwargs)
        after = out[0] if isinstance(out, (tuple, list)) else out
        if not isinstance(after, Tensor):
            raise InputError(f"Block {layer} gives no tensor, so nothing can be said of what it does.")
        if call.outer:
            after = given + after
        again.end = watch.node(after)
    given, after = (watched.layout.rows(t) for t in (given, after))
    if not call.outer:
        after = stream[layer + 1]  # the run's own: what is computed here is held against it
    reader = Reader(watch, again, recorder.seen, own_sites_of(model, trace, stack, layer))
    return BlockRerun(
        stack,
        layer,
        again,
        reader,
        reader.anatomy(),
        watched.layout,
        given,
        after,
    )
