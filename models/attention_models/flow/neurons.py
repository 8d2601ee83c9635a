"""The hidden units of a feed-forward network that write most, and what each write does to a logit directly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_models.attention.numbers import to_numpy
from attention_models.protocol.flow import Neuron

NEURONS = 32
"""How many are named."""


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """One hidden layer at one position.

    Attributes:
        hidden: (hidden,) float32, as the last matrix reads it.
        factor: what it writes is multiplied by.
        matrix: (hidden, width), the last matrix, as it multiplies from the right.
        lengths: (hidden,) float32, those of its rows.
        expert: of a mixture, which one it is of.
    """

    hidden: np.ndarray
    factor: float
    matrix: Tensor
    lengths: np.ndarray
    expert: int | None = None


def largest(layers: Sequence[Units], direction: Tensor | None) -> tuple[Neuron, ...]:
    """Those of `layers` whose writes are longest, the longest first. `direction` (width,) is that of a logit."""
    found = [neuron for units in layers for neuron in _largest_of(units, direction)]
    if len(layers) > 1:
        found = sorted(found, key=lambda neuron: -neuron.write_norm)[:NEURONS]
    return tuple(found)


def _largest_of(units: Units, direction: Tensor | None) -> list[Neuron]:
    writes = np.abs(units.hidden) * units.lengths * abs(units.factor)
    top = torch.topk(torch.from_numpy(writes), min(NEURONS, len(writes)))
    places = top.indices.numpy()
    activations = units.hidden[places]
    effects: list[float] | list[None] = [None] * len(places)
    if direction is not None:
        rows = to_numpy(units.matrix.index_select(0, top.indices.to(units.matrix.device)))  # (neurons, width)
        effects = (activations * units.factor * (rows @ direction.numpy())).tolist()
    named = zip(places.tolist(), activations.tolist(), top.values.tolist(), effects, strict=True)
    return [Neuron(*one, units.expert) for one in named]
