"""What the stream is made of as it enters the first block: embeddings of tokens, positions, segments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn

from attention_models.attention.numbers import copied
from attention_models.dataflow.anatomy import value_of
from attention_models.dataflow.blocks import BlockCall
from attention_models.dataflow.graph import Term
from attention_models.dataflow.norms import norm_of
from attention_models.dataflow.watch import Unit, Watch
from attention_models.flow.layout import Layout, norms
from attention_models.forward.model import Model
from attention_models.protocol.flow import Written

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
