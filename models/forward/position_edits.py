"""Takes a model's absolute positions away, or shifts them, for the length of one forward pass.

Learned and sinusoidal tables are modules whose output is replaced by zeros; rotations (RoPE) take the positions that
the model is given. A learned bias by distance (T5) is dropped where the attention function gets it
(`models.attention.edits`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from models.files.devices import weight_of
from models.forward.model import Model
from models.protocol.errors import InputError
from models.protocol.interventions import Intervention, Positions

_TABLE = re.compile(r"(^|\.)(wpe|position_embeddings?|embed_positions|pos_embed(dings)?)$")


def position_tables(model: Model) -> dict[str, nn.Module]:
    """The modules that give each position its vector, by name: learned or sinusoidal. Empty for RoPE, T5 and none."""
    return {
        name: module
        for module, name in model.module_names.items()
        if _TABLE.search(name) and _weight(module) is not None
    }


def table_rows(table: nn.Module) -> Tensor:
    """The vectors that a table can give, from the one of a text's first token on: (positions, width)."""
    weight = _weight(table)
    assert weight is not None
    return weight[first_id(table) + int(getattr(table, "offset", 0)) :]


def first_id(table: nn.Module) -> int:
    """The position id of a text's first token: RoBERTa and its kin begin after the id of their padding."""
    padding = getattr(table, "padding_idx", None)
    # where the module adds an offset of its own it is asked for 0
    return padding + 1 if isinstance(padding, int) and not hasattr(table, "offset") else 0


def has_rotation(model: Model) -> bool:
    """Whether queries and keys are turned by their positions (RoPE)."""
    return any(name.endswith("inv_freq") for name, _ in model.module.named_buffers())


def has_distance_bias(model: Model) -> bool:
    """Whether a learned bias by distance is added to the scores (T5)."""
    return any(name.endswith("relative_attention_bias") for name in model.module_names.values())


def why_not_off(model: Model) -> str:
    """Why its positions cannot be turned off; "" where they can."""
    if model.info.textbook:
        return f"{model.info.name} has no positions to turn off: it reads word after word."
    if position_tables(model) or has_distance_bias(model):
        return ""
    if has_rotation(model):
        takes = model.accepts("position_ids") and not model.seq2seq
        return "" if takes else f"{model.info.name} counts its own positions: they cannot be taken from outside."
    return f"{model.info.name} has no positions that could be turned off here."


def why_not_shifted(model: Model) -> str:
    """Why its positions cannot be counted from elsewhere; "" where they can."""
    if not (position_tables(model) or has_rotation(model)):
        if has_distance_bias(model):
            return f"{model.info.name} looks at distances only: a shift of all positions leaves them as they are."
        return f"{model.info.name} has no positions that could be shifted."
    if model.seq2seq or not model.accepts("position_ids"):
        return f"{model.info.name} always counts its positions from 0: they cannot be shifted."
    return ""


@contextmanager
def edited_positions(
    model: Model, inputs: dict[str, Tensor], interventions: Sequence[Intervention], past: int = 0
) -> Iterator[dict[str, Tensor]]:
    """The inputs to run with, while positions are as `interventions` say. `past` tokens ran before these.

    Raises:
        InputError: the model has no positions to turn off, cannot count from elsewhere, or its table ends before the
            last token.
    """
    mode = next((item for item in interventions if isinstance(item, Positions)), None)
    if mode is None:
        yield inputs
        return
    refusal = why_not_off(model) if mode.mode == "off" else why_not_shifted(model)
    if refusal:
        raise InputError(refusal)
    tables = position_tables(model)
    if mode.mode == "shift":
        yield {**inputs, "position_ids": _shifted(model, inputs, list(tables.values()), mode.by, past)}
        return
    if not tables and has_rotation(model):
        inputs = {**inputs, "position_ids": torch.zeros_like(inputs["input_ids"])}  # every token turned by nothing
    handles = [table.register_forward_hook(_nothing) for table in tables.values()]
    try:
        yield inputs
    finally:
        for handle in handles:
            handle.remove()


def _weight(module: nn.Module) -> Tensor | None:
    for name in ("weight", "weights"):  # fairseq's sinusoids are a buffer, in the plural
        weight = getattr(module, name, None)
        if isinstance(weight, Tensor) and weight.dim() == 2:
            return weight_of(module, name)
    return None


def _nothing(_module: nn.Module, _args: Any, out: Tensor) -> Tensor:
    return torch.zeros_like(out)


def _shifted(model: Model, inputs: dict[str, Tensor], tables: list[nn.Module], by: int, past: int) -> Tensor:
    name, count = model.info.name, past + inputs["input_ids"].shape[1]
    size = min((len(table_rows(table)) for table in tables), default=None)
    if size is not None and by + count > size:
        raise InputError(
            f"Position {by + count - 1:,} is past the end of {name}'s table, which holds {size:,}: "
            f"with {count} tokens, positions can be shifted by up to {size - count:,}."
        )
    start = by + (first_id(tables[0]) if tables else 0)
    return torch.arange(start + past, start + count, device=inputs["input_ids"].device)[None]
