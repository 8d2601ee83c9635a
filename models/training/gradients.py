"""How long the gradient of each part of a model is: an embedding, a block, the head."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import nn

NORMS_EVERY = 10  # steps

_STACK = re.compile(r"(?:^|\.)(encoder|decoder)\.")
_BLOCK = re.compile(r"\.(?:h|layers?|blocks?)\.([0-9]+)\.")
_EMBEDDING = re.compile(r"embed|shared|wte|wpe", re.IGNORECASE)
_NORM = re.compile(r"norm|ln_f", re.IGNORECASE)


class StateGradient(NamedTuple):
    """Lengths of the gradient of one hidden state of a recurrent encoder: the root of the mean square over rows."""

    whole: float
    read: float  # what the decoder reads of it: by attention, and of the last states as its own first one
    passed: float  # by way of the states that were made from it


def gradient_norms(parts: Mapping[str, Sequence[nn.Parameter]]) -> tuple[tuple[str, float], ...]:
    """By the name of the part; 0 where it has no gradient."""
    found = []
    for name, parameters in parts.items():
        lengths = [p.grad.norm() for p in parameters if p.grad is not None]
        found.append((name, float(torch.stack(lengths).norm()) if lengths else 0.0))
    return tuple(found)


def parts_of(named: Mapping[str, nn.Parameter]) -> dict[str, list[nn.Parameter]]:
    """Parameters of a transformers model by the part that they belong to: "embedding", "decoder block 1", "head"."""
    found: dict[str, list[nn.Parameter]] = {}
    for name, parameter in named.items():
        found.setdefault(_part_of(name), []).append(parameter)
    return found


def _part_of(name: str) -> str:
    stack = _STACK.search(name)
    which = "" if stack is None else f"{stack[1]} "
    if block := _BLOCK.search(name):
        return f"{which}block {block[1]}"
    if _EMBEDDING.search(name):
        return f"{which}embedding"
    return f"{which}norm" if _NORM.search(name) else "head"
