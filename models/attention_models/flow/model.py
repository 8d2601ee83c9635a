"""What every block writes into the residual stream of a run: the model run once more, and watched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from attention_models.attention.numbers import copied
from attention_models.dataflow.anatomy import Anatomy, Reader, value_of, written
from attention_models.dataflow.blocks import BlockCall, SiteNodes, WatchedRecorder, on_blocks
from attention_models.dataflow.graph import Term
from attention_models.dataflow.norms import norm_of
from attention_models.dataflow.own_attention import own_sites_of
from attention_models.dataflow.watch import Unit, Watch, unwatched
from attention_models.flow.layout import Layout, norms
from attention_models.flow.recurrent_flow import unrolled
from attention_models.forward.batches import encode, real_keys
from attention_models.forward.context import Context
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.intervened import intervened
from attention_models.forward.logits import last_only
from attention_models.forward.model import Model
from attention_models.forward.recurrent_model import RecurrentModel
from attention_models.forward.trace import Trace
from attention_models.protocol.ablation import LAYER, Ablation
from attention_models.protocol.flow import BlockFlow, FlowRequest, FlowView, StackFlow, Written
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.request import Report, ShouldStop
from attention_models.protocol.values import SiteRef

Kind = Literal["tokens", "positions", "segments"]
Inputs = Mapping[str, Tensor]


def embedding_of(watch: Watch, call: BlockCall, layout: Layout, model: Model, inputs: Inputs) -> tuple[Written, ...]:
    """The summands of what enters `call`, before any normalisation or projection that they go through together."""
    found = []
    for term in _summands(watch, call):
        value = value_of(term.node, watch)
        rows = None if value is None else _rows(value * term.factor, call, layout)
        if rows is None and term.seen >= 0:  # patches: rows and columns of what a convolution gave
            shaped = watch.graph.nodes[term.seen].value
            rows = None if shaped is None else _rows(shaped, call, layout)
        if rows is not None:
            node = _gathered(watch, term.node)
            unit = watch.unit_of(node)
            module = unit.name if unit is not None else _name(value, model)
            kind = _kind(watch, node, unit, model, inputs)
            found.append(Written(part=kind, module=module, norms=copied(norms(rows))))
    return tuple(found)


def _gathered(watch: Watch, node: int) -> int:
    """Where a table gave its rows, which are moved to the first token of a text that is padded on the left."""
    nodes = watch.graph.nodes
    while watch.unit_of(node) is None and nodes[node].op in ("gather", "expand", "unsqueeze"):
        node = nodes[node].reads[0]
    return node


def _summands(watch: Watch, call: BlockCall) -> list[Term]:
    number, factor = call.start, 1.0
    while True:
        terms = watch.graph.terms(number, (), factor)
        if len(terms) > 1:
            return terms
        if parts := _side_by_side(watch, terms[0]):
            return parts
        unit = watch.unit_of(terms[0].node)
        if unit is None or not unit.given or not unit.gave or not unit.given[0].is_floating_point():
            return terms
        number, factor = unit.reads[0], 1.0
        if norm_of(unit.module, unit.given[0], unit.gave[0]) is None and not isinstance(unit.module, nn.Linear):
            return terms


def _side_by_side(watch: Watch, term: Term) -> list[Term]:
    """What was concatenated to make it, each with dimensions of its own; empty where nothing was."""
    made = watch.graph.nodes[term.node]
    if made.unit >= 0 or made.op != "cat" or any(watch.graph.nodes[n].shape[-1] == made.shape[-1] for n in made.reads):
        return []
    return [part for n in made.reads for part in watch.graph.terms(n, (), term.factor)]


def _rows(value: Tensor, call: BlockCall, layout: Layout) -> Tensor | None:
    """(tokens, width) of a summand, which may be the same for all texts of a batch."""
    assert call.before is not None
    shape = (*call.before.shape[:-1], value.shape[-1])
    try:
        return layout.rows(torch.broadcast_to(value, shape))
    except RuntimeError:  # no vector for each position
        return None


def _kind(watch: Watch, node: int, unit: Unit | None, model: Model, inputs: Inputs) -> Kind:
    """Of which table it comes; what is made of a picture is that of the tokens."""
    if unit is None:
        made = watch.graph.nodes[node]
        return "positions" if made.op == "given" else "tokens"
    rows = next((n for n in range(unit.first, node + 1) if watch.graph.nodes[n].op == "embedding"), None)
    if rows is None:
        return "tokens" if any(t.is_floating_point() for t in unit.given) else "positions"
    table, places = (watch.graph.nodes[n] for n in watch.graph.nodes[rows].reads)
    ids = (inputs[name] for name in ("input_ids", "decoder_input_ids") if name in inputs)
    if places.value is None or any(torch.equal(places.value.flatten(), given.flatten()) for given in ids):
        return "tokens"
    configs = (getattr(model.config, name, model.config) for name in ("encoder", "decoder", "text_config"))
    return "segments" if table.shape[0] in {getattr(c, "type_vocab_size", 0) for c in configs} else "positions"


def _name(value: Tensor | None, model: Model) -> str:
    return next((name for name, p in model.module.named_parameters() if p is value), "")


@dataclass(slots=True, eq=False)
class Watched:
    """A run that was watched: its flow, and of every block what it was called with."""

    stacks: tuple[StackFlow, ...]
    deviation: float
    calls: dict[tuple[str, int], BlockCall]
    inputs: dict[str, Tensor]
    layout: Layout
    real: dict[str, Tensor]


def answer(request: FlowRequest, context: Context) -> FlowView:
    run = context.run(request.run)
    if isinstance(run.model, RecurrentModel):
        return FlowView(request=request, stacks=(), recurrent=unrolled(run.model, run.trace), deviation=0.0)
    watched = watched_run(run, context.should_stop, context.report)
    return FlowView(request=request, stacks=watched.stacks, deviation=watched.deviation)


def watched_run(run: CurrentRun, should_stop: ShouldStop, report: Report) -> Watched:
    """The run, watched: once, then kept with it."""
    return run.kept.get_or_compute(
        Watched, lambda: watch(run.model, run.trace, run.text, run.written, should_stop, report)
    )


@torch.no_grad()
def watch(model: Model, trace: Trace, text: Any, target: Any, should_stop: ShouldStop, report: Report) -> Watched:
    """Run `model` again on what `trace` is of, with the same interventions, and read every block as it runs.

    Raises:
        Cancelled: `should_stop()` was true between two blocks.
    """
    report("Reading what each block writes", 0.0)
    encoded = encode(model, text, target)
    shared = encoded.inputs
    batch = next(iter(shared.values())).shape[0]
    real = real_keys(model, shared) if batch > 1 else {}
    graph = Watch(model.module_names)
    recorder = WatchedRecorder(
        model.module_names, model.seq2seq, should_stop, trace.interventions, real=real, watch=graph
    )
    graph.holds_all = True  # until the first block: what is embedded
    reading = _Reading(model, trace, graph, recorder, encoded.row, shared, report)
    with (
        intervened(model, shared, recorder) as inputs,
        on_blocks(model, graph, recorder, reading.enter, reading.leave),
        graph.watching(model.module.modules()),
    ):
        asked: dict[str, Any] = {**inputs, **last_only(model, batch * len(encoded.tokens))}
        model.forward(asked)
        with unwatched():
            reading.close()
    return Watched(reading.stacks(), reading.deviation, reading.calls, shared, reading.layout, real)


class _Reading:
    """Collects what is read of each block while the model runs."""

    def __init__(
        self,
        model: Model,
        trace: Trace,
        watch: Watch,
        recorder: WatchedRecorder,
        row: int,
        inputs: dict[str, Tensor],
        report: Report,
    ) -> None:
        self.model, self.trace, self.watch, self.recorder = model, trace, watch, recorder
        self.inputs = inputs
        self.batch = next(iter(inputs.values())).shape[0]
        self.layout = Layout(model, row, self.batch)
        self.report = report
        self.embedding: dict[str, tuple[Written, ...]] = {}
        self.entering: dict[str, np.ndarray] = {}
        self.blocks: dict[str, list[BlockFlow]] = {}
        self.calls: dict[tuple[str, int], BlockCall] = {}
        self.last_norm: dict[str, str] = {}
        self.latest: BlockCall | None = None
        self.waiting: Reader | None = None
        self.after_latest = 0
        self.first_layer: dict[tuple[str, int], int] = {}
        self.deviation = 0.0

    def enter(self, call: BlockCall) -> None:
        if call.layer == 0:
            self.close()
        elif call.before is not None and not self._settle(call.before, call.start):
            self._give_up()
        if call.layer == 0 and call.before is not None:
            self.embedding[call.stack] = embedding_of(self.watch, call, self.layout, self.model, self.inputs)
            self.entering[call.stack] = self.norms(call.before)
            self.watch.holds_all = False
            self.watch.forget(0, 0)

    def leave(self, call: BlockCall) -> None:
        sites = self.recorder.seen[call.first_site :]
        reader = Reader(self.watch, call, sites, own_sites_of(self.model, self.trace, call.stack, call.layer))
        anatomy = reader.anatomy()
        self.latest, self.after_latest = call, len(self.watch.units)
        if anatomy.known or call.start < 0:
            self._read(call, reader, anatomy)
        else:
            self.waiting = reader  # what it gives may be added outside of it
        of_stack = len(self.trace.residual.get(call.stack, ())) - 1
        self.watch.holds_all = call.stack == "encoder" and self.model.seq2seq and call.layer + 1 == of_stack

    def _settle(self, stream: Tensor, node: int) -> bool:
        """Read the block that waits with `stream` for what it became, if it was added to."""
        if self.waiting is None:
            return False
        reader, call = self.waiting, self.waiting.call
        anatomy = reader.added_outside(node)
        if anatomy is None:
            return False
        call.after = stream
        self.waiting = None
        self._read(call, reader, anatomy)
        return True

    def _give_up(self) -> None:
        """Take the block that waits as one that could not be read."""
        if self.waiting is not None:
            reader, self.waiting = self.waiting, None
            self._read(reader.call, reader, reader.anatomy())

    def _read(self, call: BlockCall, reader: Reader, anatomy: Anatomy) -> None:
        self.blocks.setdefault(call.stack, []).append(self._flow(call, anatomy, reader.sites))
        self.deviation = max(self.deviation, self._deviation(call))
        call.let_go(self.batch)
        self.calls[call.stack, call.layer] = call
        self.watch.forget(call.first_unit, call.first_node)
        done, of = sum(map(len, self.blocks.values())), sum(len(s) - 1 for s in self.trace.residual.values())
        self.report("Reading what each block writes", done / of if of else None)

    def close(self) -> None:
        """After the last block of a stack: the normalisation that reads what leaves it."""
        if self.latest is None:
            return
        if self.waiting is not None:
            later = self.watch.units[self.after_latest :]
            if not any(unit.given and self._settle(unit.given[0], unit.reads[0]) for unit in later):
                self._give_up()
        end = self.watch.graph.whole(self.latest.end)
        for unit in self.watch.units[self.after_latest :]:
            reads = unit.given and unit.gave and self.watch.graph.whole(unit.reads[0]) == end
            if reads and norm_of(unit.module, unit.given[0], unit.gave[0]) is not None:
                self.last_norm[self.latest.stack] = unit.name
                return

    def _flow(self, call: BlockCall, anatomy: Anatomy, sites: Sequence[SiteNodes]) -> BlockFlow:
        before, after = call.before, call.after
        parts, left = [], None
        if before is not None and after is not None:
            left = self.layout.rows(after).float() - self.layout.rows(before).float().to(after.device)
        for sublayer in anatomy.sublayers:
            wrote = written(sublayer, self.watch)
            if wrote is None:
                continue
            rows = self.layout.rows(wrote).float()
            left = None if left is None else left - rows.to(left.device)
            off = is_off(self.trace.interventions, self.model, call.stack, call.layer, sublayer.part)
            parts.append(Written(part=sublayer.part, module=sublayer.module, norms=copied(norms(rows)), off=off))
        key = (call.stack, id(call.module))
        first = self.first_layer.setdefault(key, call.layer)
        return BlockFlow(
            ref=SiteRef(call.stack, call.layer),
            module=call.name,
            placement=anatomy.placement,
            parallel=anatomy.parallel,
            written=tuple(parts),
            norms=np.zeros(0, np.float32) if after is None else self.norms(after),
            remainder=np.zeros(0, np.float32) if left is None else copied(norms(left)),
            sites=tuple(site.site.ref for site in sites),
            shared_with=None if first == call.layer else first,
        )

    def _deviation(self, call: BlockCall) -> float:
        stream = self.trace.residual.get(call.stack, ())
        if call.after is None or call.layer + 1 >= len(stream) or (call.outer and call.layer + 2 == len(stream)):
            return 0.0  # what is added outside of the last block, the run did not keep
        off = self.layout.rows(call.after).float() - stream[call.layer + 1].float().to(call.after.device)
        return float(off.abs().max()) if off.numel() else 0.0

    def norms(self, t: Tensor) -> np.ndarray:
        return copied(norms(self.layout.rows(t)))

    def stacks(self) -> tuple[StackFlow, ...]:
        order = [stack for stack in ("encoder", "decoder") if stack in self.blocks]
        return tuple(
            StackFlow(
                stack=stack,
                embedding=self.embedding.get(stack, ()),
                norms=self.entering.get(stack, np.zeros(0, np.float32)),
                blocks=tuple(self.blocks[stack]),
                last_norm=self.last_norm.get(stack, ""),
            )
            for stack in order
        )


def is_off(interventions: Iterable[Intervention], model: Model, stack: str, layer: int, part: str) -> bool:
    """Whether a sublayer gives nothing, by itself or with all of its layer."""
    parts, block = ("mlp" if part == "feed_forward" else part, LAYER), SiteRef(stack, layer)
    skips = (item.of_stack(model.info.predicting_stack) for item in interventions if isinstance(item, Ablation))
    return any(s.part in parts and s.site == block and s.fill == "zero" and not s.on for s in skips)
