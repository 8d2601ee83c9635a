"""How long the gradient of each part of a model is: an embedding, a block, the head."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

NORMS_EVERY = 10  # steps
AND_HEAD = " and head"
"""What the name of a part ends with whose embedding is the output matrix too."""

_STACK = re.compile(r"(?:^|\.)(encoder|decoder)\.")
_BLOCK = re.compile(r"\.(?:h|layers?|blocks?)\.([0-9]+)\.")
_EMBEDDING = re.compile(r"embed|shared|wte|wpe", re.IGNORECASE)
_NORM = re.compile(r"norm|ln_f", re.IGNORECASE)


class StateGradient(NamedTuple):
    """Lengths of the gradient of one hidden state of a recurrent encoder: the root of the mean square over rows."""

    whole: float
    read: float  # what the decoder reads of it: by attention, and of the last states as its own first one
    passed: float  # by way of the states that were made from it


class Tied(NamedTuple):
    """An output matrix that embeds texts too, and the part of its gradient that it has as the head."""

    weight: nn.Parameter
    head: Tensor


def gradient_norms(
    parts: Mapping[str, Sequence[nn.Parameter]], tied: Tied | None = None
) -> tuple[tuple[str, float], ...]:
    """By the name of the part; 0 where it has no gradient. Of a tied matrix the head is told apart, and comes last."""
    found = []
    for name, parameters in parts.items():
        own = (p.grad if tied is None or p is not tied.weight else _by_embedding(tied) for p in parameters)
        lengths = [gradient.norm() for gradient in own if gradient is not None]
        part = name if tied is None else name.removesuffix(AND_HEAD)
        found.append((part, float(torch.stack(lengths).norm()) if lengths else 0.0))
    return (*found, *([] if tied is None else [("head", float(tied.head.norm()))]))


def _by_embedding(tied: Tied) -> Tensor:
    assert tied.weight.grad is not None
    return tied.weight.grad - tied.head


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
