"""How a model's answers come from its last residual stream: found once, in a run of a few tokens of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from models.dataflow.anatomy import Anatomy, Reader
from models.dataflow.blocks import BlockCall, WatchedRecorder, on_blocks
from models.dataflow.matrices import is_matrix
from models.dataflow.norms import Norm, norm_of
from models.dataflow.own_attention import own_sites_of
from models.dataflow.watch import Unit, Watch
from models.forward.capture import recording
from models.forward.model import Model
from models.forward.trace import Trace
from models.protocol.values import SiteRef

_PROBE = 8
"""Tokens that are run."""

_SIDE = 32
"""Pixels a side of the picture that is run."""


FoundNorm = tuple[Norm | None, nn.Module | None]
"""A normalisation as a formula, and what computes it."""


@dataclass(frozen=True, slots=True, eq=False)
class Readout:
    """What stands between the last block of the stack that predicts and the logits.

    Attributes:
        known: whether every block could be read.
        adds: what a block reads is left as it is, and sublayers are added to it.
        alters: what a sublayer gives is normalised or scaled before it is added.
        outer: what the last block gives is added to the stream outside of it, which a run does not keep.
        norm: the normalisation of what leaves the last block; None where the head reads that as it is.
        norm_module: what computes that.
        head: the matrix that gives the logits; None where something else stands there.
        outputs: by site, the matrix that multiplies its joined heads (W_O); only those that were found.
    """

    known: bool
    adds: bool
    alters: bool
    outer: bool
    norm: Norm | None
    norm_module: nn.Module | None
    head: nn.Module | None
    outputs: Mapping[SiteRef, nn.Module]


def readout_of(model: Model, trace: Trace) -> Readout:
    """That of `model`, of which `trace` is a run."""
    if not isinstance(model.readout, Readout):
        model.readout = _found(model, trace)
    return model.readout


@torch.no_grad()
def _found(model: Model, trace: Trace) -> Readout:
    watch = Watch(model.module_names)
    recorder = WatchedRecorder(model.module_names, model.seq2seq, watch=watch)
    stack = model.info.predicting_stack
    blocks: list[Anatomy] = []
    last: list[tuple[BlockCall, int]] = []
    waiting: list[Reader] = []  # the block whose stream was not found in it
    outputs: dict[SiteRef, nn.Module] = {}

    def enter(call: BlockCall) -> None:
        if waiting and call.layer:
            read(waiting[0], waiting.pop().added_outside(call.start))

    def leave(call: BlockCall) -> None:
        own = own_sites_of(model, trace, call.stack, call.layer)
        reader = Reader(watch, call, recorder.seen[call.first_site :], own)
        anatomy = reader.anatomy()
        if call.stack == stack:
            last[:] = [(call, len(watch.units))]
        if anatomy.known:
            read(reader, anatomy)
        else:
            waiting[:] = [reader]

    def read(reader: Reader, anatomy: Anatomy | None) -> None:
        anatomy = reader.anatomy() if anatomy is None else anatomy
        for sublayer in anatomy.sublayers:
            output = reader.output_matrix(sublayer)
            if output is not None and len(sublayer.sites) == 1:
                outputs[sublayer.sites[0].site.ref] = output.module
        if reader.call.stack == stack:
            blocks.append(anatomy)

    few = _few(model, trace)
    with recording(recorder), on_blocks(model, watch, recorder, enter, leave), watch.watching(model.module.modules()):
        out = model.forward(few)
        logits = getattr(out, "logits", None)
        answer = watch.node(logits) if isinstance(logits, Tensor) else -1
    if waiting:
        later = (unit.reads[0] for unit in watch.units[last[0][1] :] if unit.reads) if last else ()
        tried = (waiting[0].added_outside(watch.graph.whole(node)) for node in later)
        read(waiting[0], next((anatomy for anatomy in tried if anatomy is not None), None))
    known = bool(blocks) and all(anatomy.known for anatomy in blocks)
    adds = known and all(anatomy.adds for anatomy in blocks)
    alters = any(sublayer.alters for anatomy in blocks for sublayer in anatomy.sublayers)
    norms: FoundNorm = (None, None)
    head = None
    if last:
        call, first = last[0]
        norms, head = _between(watch, watch.units[first:], watch.graph.whole(call.end), answer)
    outer = bool(last) and last[0][0].outer
    return Readout(known, adds, alters, outer, *norms, head, outputs)


def _few(model: Model, trace: Trace) -> dict[str, Tensor]:
    """A few tokens of what was run; of a vision model an empty picture."""
    if model.info.family == "vision":
        given: Any = np.zeros((_SIDE, _SIDE, model.info.channels), np.uint8)
        return model.encode(given).inputs
    read = [token.id for token in trace.source or trace.tokens][:_PROBE]
    return model.encode(read, [] if model.seq2seq else None).inputs


def _between(watch: Watch, units: Sequence[Unit], end: int, answer: int) -> tuple[FoundNorm, nn.Module | None]:
    """The normalisation of the stream `end`, and the matrix that makes `answer` of what it gives."""
    norm, module = None, None
    read = {end}
    head: nn.Module | None = None
    made = watch.graph.whole(answer) if answer >= 0 else -1
    for unit in units:
        if not unit.given or not unit.gave or watch.graph.whole(unit.reads[0]) not in read:
            continue
        formula = norm_of(unit.module, unit.given[0], unit.gave[0])
        if formula is not None and norm is None:
            norm, module = formula, unit.module
            read = {unit.gives[0]}
        elif is_matrix(unit.module) and (made in unit.gives or _after_head(watch, answer, unit)):
            head = unit.module
    return (norm, module), head


def _after_head(watch: Watch, answer: int, unit: Unit) -> bool:
    """Whether the logits are those of `unit`, changed one by one: by a bias, a factor, a cap."""
    if answer < 0:
        return False
    size = watch.graph.nodes[unit.gives[0]].shape[-1:]

    def after(here: int) -> tuple[int, ...]:
        node = watch.graph.nodes[here]
        return node.reads if node.unit < 0 and node.shape[-1:] == size else ()

    return any(number in unit.gives for number in watch.graph.walk(answer, after))
