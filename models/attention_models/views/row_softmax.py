"""The softmax of rows of scores, taken apart into what each number of it is made of."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class RowSoftmax:
    """weight = numerator / denominator, of every row. Float64: it is recomputed beside the weights, not in their place.

    Attributes:
        shift: (rows,), what is subtracted from a row before exp: its largest visible score or its sink's; NaN where
            nothing is visible and there is no sink, which is no softmax.
        numerators: (rows, keys), exp(score - shift), 0 where masked.
        sink: (rows,), the sink's exp(sink - shift): all there is of a row in which nothing is visible. None without.
        denominator: (rows,), their sum.
    """

    shift: np.ndarray
    numerators: np.ndarray
    sink: np.ndarray | None
    denominator: np.ndarray


def taken_apart(scores: np.ndarray, masked: np.ndarray, sink: float | None) -> RowSoftmax:
    """Of `scores` (rows, keys) before the mask, `masked` (rows, keys) and a head's sink, a score that no key has."""
    entering = np.where(masked, -math.inf, scores.astype(np.float64))
    largest = entering.max(axis=1, initial=-math.inf if sink is None else sink)
    shift = np.where(np.isneginf(largest), math.nan, largest)
    numerators = np.exp(entering - np.nan_to_num(shift)[:, None])
    of_sink = None if sink is None else np.exp(sink - shift)
    denominator = numerators.sum(axis=1) + (0.0 if of_sink is None else of_sink)
    return RowSoftmax(shift, numerators, of_sink, denominator)
