"""Takes a model's absolute positions away, or shifts them, for the length of one forward pass.

Learned and sinusoidal tables are modules whose output is replaced by zeros; rotations (RoPE) take the positions that
the model is given. A learned bias by distance (T5) is dropped where the attention function gets it (`models.edits`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from models.errors import InputError
from models.interventions import Intervention, Positions
from models.model import Model

_TABLE = re.compile(r"(^|\.)(wpe|position_embeddings?|embed_positions|pos_embed(dings)?)$")


def position_tables(model: Model) -> list[nn.Module]:
    """The modules that give each position its vector: learned or sinusoidal tables. Empty for RoPE, T5 and none."""
    return [
        module
        for module, name in model.module_names.items()
        if _TABLE.search(name) and isinstance(getattr(module, "weight", None), Tensor)
    ]


@contextmanager
def edited_positions(
    model: Model, inputs: dict[str, Tensor], interventions: Sequence[Intervention]
) -> Iterator[dict[str, Tensor]]:
    """The inputs to run with, while positions are as `interventions` say.

    Raises:
        InputError: the model can not count from elsewhere, or its table ends before the last token.
    """
    mode = next((item for item in interventions if isinstance(item, Positions)), None)
    if mode is None:
        yield inputs
        return
    tables = position_tables(model)
    if mode.mode == "shift":
        yield {**inputs, "position_ids": _shifted(model, inputs, tables, mode.by)}
        return
    if not tables and model.accepts("position_ids"):
        inputs = {**inputs, "position_ids": torch.zeros_like(inputs["input_ids"])}  # every token turned by nothing
    handles = [table.register_forward_hook(_nothing) for table in tables]
    try:
        yield inputs
    finally:
        for handle in handles:
            handle.remove()


def _nothing(_module: nn.Module, _args: Any, out: Tensor) -> Tensor:
    return torch.zeros_like(out)


def _shifted(model: Model, inputs: dict[str, Tensor], tables: list[nn.Module], by: int) -> Tensor:
    name, count = model.info.name, inputs["input_ids"].shape[1]
    if not model.accepts("position_ids"):
        raise InputError(f"{name} always counts its positions from 0: they can not be shifted.")
    for table in tables:
        assert isinstance(table.weight, Tensor)
        size = table.weight.shape[0]
        if by + count > size:
            raise InputError(
                f"Position {by + count - 1} is past the end of {name}'s table, which holds {size:,}: "
                f"with {count} tokens, positions can be shifted by up to {size - count}."
            )
    return torch.arange(by, by + count, device=inputs["input_ids"].device)[None]
