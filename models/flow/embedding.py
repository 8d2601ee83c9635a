"""What the stream is made of as it enters the first block: embeddings of tokens, positions, segments."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from models.attention.numbers import copied
from models.dataflow.anatomy import value_of
from models.dataflow.blocks import BlockCall
from models.dataflow.graph import Term
from models.dataflow.norms import norm_of
from models.dataflow.watch import Unit, Watch
from models.flow.layout import Layout, norms
from models.forward.model import Model
from models.protocol.flow import Written

Kind = Literal["tokens", "positions", "segments"]


def embedding_of(watch: Watch, call: BlockCall, layout: Layout, model: Model) -> tuple[Written, ...]:
    """The summands of what enters `call`, before any normalisation or projection that they go through together."""
    found = []
    for term in _summands(watch, call):
        value = value_of(term.node, watch)
        rows = None if value is None else _rows(value, call, layout)
        if rows is not None:
            unit = watch.unit_of(term.node)
            found.append(
                Written(
                    part=_kind(watch, term.node, unit, model),
                    module=unit.name if unit is not None else _name(value, model),
                    norms=copied(norms(rows) * abs(term.factor)),
                )
            )
    return tuple(found)


def _summands(watch: Watch, call: BlockCall) -> list[Term]:
    number, factor = call.start, 1.0
    while True:
        terms = watch.graph.terms(number, (), factor)
        if len(terms) > 1:
            return terms
        unit = watch.unit_of(terms[0].node)
        if unit is None or not unit.given or not unit.gave or not unit.given[0].is_floating_point():
            return terms
        number, factor = unit.reads[0], 1.0
        if norm_of(unit.module, unit.given[0], unit.gave[0]) is None and not isinstance(unit.module, nn.Linear):
            return terms


def _rows(value: Tensor, call: BlockCall, layout: Layout) -> Tensor | None:
    """(tokens, width) of a summand, which may be the same for all texts of a batch."""
    assert call.before is not None
    shape = (*call.before.shape[:-1], value.shape[-1])
    try:
        return layout.rows(torch.broadcast_to(value, shape))
    except RuntimeError:  # no vector for each position
        return None


def _kind(watch: Watch, node: int, unit: Unit | None, model: Model) -> Kind:
    """Of which table it comes; what is made of the input is that of the tokens."""
    if unit is None:
        made = watch.graph.nodes[node]
        return "positions" if made.op == "given" and isinstance(made.value, nn.Parameter) else "tokens"
    get = getattr(model.module, "get_input_embeddings", None)
    if not isinstance(unit.module, nn.Embedding) or (callable(get) and unit.module is _table(get)):
        return "positions" if not unit.given or (not unit.given[0].is_floating_point() and _counts(unit)) else "tokens"
    if unit.module.num_embeddings == getattr(model.config, "type_vocab_size", 0):
        return "segments"
    return "positions" if not unit.given or _counts(unit) else "tokens"


def _table(get: object) -> nn.Module | None:
    try:
        found = get()  # type: ignore[operator]
    except NotImplementedError:  # transformers raises it of a family without one table
        return None
    return found if isinstance(found, nn.Module) else None


def _counts(unit: Unit) -> bool:
    """Whether it was asked for one place after another."""
    ids = unit.given[0].flatten()
    return not ids.is_floating_point() and len(ids) > 1 and bool((ids[1:] - ids[:-1] == 1).all())


def _name(value: Tensor | None, model: Model) -> str:
    return next((name for name, p in model.module.named_parameters() if p is value), "")
