"""How a model's answers come from its last residual stream: found once, in a run of a few tokens of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attention_models.dataflow.anatomy import Anatomy, Reader
from attention_models.dataflow.blocks import BlockCall, WatchedRecorder, on_blocks
from attention_models.dataflow.matrices import is_matrix
from attention_models.dataflow.norms import Norm, norm_of
from attention_models.dataflow.own_attention import own_sites_of
from attention_models.dataflow.watch import Unit, Watch
from attention_models.forward.capture import recording
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.values import SiteRef

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
        before: by site, the normalisation of the stream that its queries, keys and values are made of.
    """

    known: bool
    adds: bool
    alters: bool
    outer: bool
    norm: Norm | None
    norm_module: nn.Module | None
    head: nn.Module | None
    outputs: Mapping[SiteRef, nn.Module]
    before: Mapping[SiteRef, FoundNorm]


def readout_of(model: Model, trace: Trace) -> Readout:
    """That of `model`, of which `trace` is a run."""
    if not isinstance(model.readout, Readout):
        model.readout = _found(model, trace)
    return model.readout


@torch.no_grad()
def _found(model: Model, trace: Trace) -> Readout:
    watch = Watch(model.module_names)
    recorder = WatchedRecorder(model.module_names, model.seq2seq, watch=watch)
    read = _Blocks(model, trace, watch, recorder)
    few = _few(model, trace)
    with (
        recording(recorder),
        on_blocks(model, watch, recorder, read.enter, read.leave),
        watch.watching(model.module.modules()),
    ):
        out = model.forward(few)
        logits = getattr(out, "logits", None)
        answer = watch.node(logits) if isinstance(logits, Tensor) else -1
    read.close()
    blocks, last = read.anatomies, read.last
    known = bool(blocks) and all(anatomy.known for anatomy in blocks)
    adds = known and all(anatomy.adds for anatomy in blocks)
    alters = any(sublayer.alters for anatomy in blocks for sublayer in anatomy.sublayers)
    norms: FoundNorm = (None, None)
    head = None
    if last is not None:
        norms, head = _between(watch, read.after_last, watch.graph.whole(last.end), answer)
    return Readout(known, adds, alters, last is not None and last.outer, *norms, head, read.outputs, read.before)


class _Blocks:
    """What is read of each block while the model runs."""

    def __init__(self, model: Model, trace: Trace, watch: Watch, recorder: WatchedRecorder) -> None:
        self._model, self._trace, self._watch, self._recorder = model, trace, watch, recorder
        self.anatomies: list[Anatomy] = []  # of the stack that predicts, and its last block
        self.last: BlockCall | None = None
        self.outputs: dict[SiteRef, nn.Module] = {}
        self.before: dict[SiteRef, FoundNorm] = {}
        self._units = 0  # until that had run
        self._waiting: Reader | None = None  # the block whose stream was not found in it

    @property
    def after_last(self) -> list[Unit]:
        """What ran after the last block."""
        return self._watch.units[self._units :]

    def enter(self, call: BlockCall) -> None:
        self._settle([call.start] if call.layer else [])

    def leave(self, call: BlockCall) -> None:
        own = own_sites_of(self._model, self._trace, call.stack, call.layer)
        reader = Reader(self._watch, call, self._recorder.seen[call.first_site :], own)
        anatomy = reader.anatomy()
        if call.stack == self._model.info.predicting_stack:
            self.last, self._units = call, len(self._watch.units)
        if anatomy.known:
            self._read(reader, anatomy)
        else:
            self._waiting = reader

    def close(self) -> None:
        self._settle(self._watch.graph.whole(unit.reads[0]) for unit in self.after_last if unit.reads)

    def _settle(self, nodes: Iterable[int]) -> None:
        """Read the block that waits, with the first of `nodes` that is the stream with what it gave added to it."""
        if self._waiting is None:
            return
        reader, self._waiting = self._waiting, None
        tried = (reader.added_outside(node) for node in nodes)
        self._read(reader, next((anatomy for anatomy in tried if anatomy is not None), None) or reader.anatomy())

    def _read(self, reader: Reader, anatomy: Anatomy) -> None:
        for sublayer in anatomy.sublayers:
            output = reader.output_matrix(sublayer)
            if output is not None and len(sublayer.sites) == 1:
                self.outputs[sublayer.sites[0].site.ref] = output.module
            if sublayer.before is not None:
                found = sublayer.before.norm, sublayer.before.unit.module
                self.before |= {site.site.ref: found for site in sublayer.sites}
        if reader.call.stack == self._model.info.predicting_stack:
            self.anatomies.append(anatomy)


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
