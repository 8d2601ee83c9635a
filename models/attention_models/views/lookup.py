"""Attention in the plane: score functions, softmax with a temperature, mixing. For a handful of small vectors.

NumPy alone, in float64, and far below a millisecond a call, so a window may call it directly. The attention of real
models is in `attention_models.attention.attention`.

    dot       s = q . k                            Luong et al. 2015, section 3.1
    general   s = q^T W k                          Luong et al. 2015, equation 8
    additive  s = v^T tanh(W_q q + W_k k)          Bahdanau et al. 2015, appendix A.1.2
    weight    w_i = exp(s_i / T) / sum_j exp(s_j / T)
    answer    sum_i w_i v_i
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class SoftLookup:
    """One query's lookup: nothing in it depends on anything but scores, values and temperature."""

    scores: Array  # (keys,)
    numerators: Array  # (keys,) exp((score - largest score) / temperature); 1 or 0 at temperature 0
    weights: Array  # (keys,), sum 1
    answer: Array  # (value_dim,)


def look_up(scores: ArrayLike, values: ArrayLike, temperature: float) -> SoftLookup:
    """Mix `values` (keys, value_dim) by the softmax of `scores` (keys,).

    Raises:
        ValueError: as `soft_weights`, or another number of values than of scores.
    """
    s, v = np.asarray(scores, np.float64), np.asarray(values, np.float64)
    numerators = _numerators(s, temperature)
    w = numerators / numerators.sum()
    if v.ndim != 2 or len(v) != len(w):
        raise ValueError(f"Each key needs one value: there are {len(w)} keys, and values of shape {v.shape}.")
    return SoftLookup(s, numerators, w, w @ v)


def soft_weights(scores: ArrayLike, temperature: float = 1.0) -> Array:
    """Softmax of `scores / temperature`, (keys,), with both limits.

    0 gives everything to the largest score (equal ones share it), infinity the same to every key.

    Raises:
        ValueError: no scores, one that is not finite, or a temperature below 0.
    """
    numerators = _numerators(np.asarray(scores, np.float64), temperature)
    weights: Array = numerators / numerators.sum()
    return weights


def _numerators(s: Array, temperature: float) -> Array:
    if s.ndim != 1 or not len(s) or not np.isfinite(s).all():
        raise ValueError("Softmax needs one finite score a key, and at least one key.")
    if not temperature >= 0:
        raise ValueError(f"The temperature is {temperature}; it must be 0 or more.")
    below = s - s.max()  # softmax does not change, and nothing overflows
    if temperature == 0:
        return np.where(below == 0, 1.0, 0.0)
    with np.errstate(over="ignore"):  # a very small temperature: exp(-inf) is 0, as it should be
        numerators: Array = np.exp(below / temperature)
    return numerators


# --------------------------------------------------------------------------- score functions


def dot_scores(query: ArrayLike, keys: ArrayLike) -> Array:
    """(keys,) scores of `query` (d,) with each row of `keys` (keys, d)."""
    return np.asarray(keys, np.float64) @ np.asarray(query, np.float64)


def general_scores(query: ArrayLike, keys: ArrayLike, weight: ArrayLike) -> Array:
    """(keys,) scores through the matrix `weight` (d_query, d_key)."""
    return np.asarray(keys, np.float64) @ (np.asarray(query, np.float64) @ np.asarray(weight, np.float64))


def additive_scores(
    query: ArrayLike, keys: ArrayLike, query_weight: ArrayLike, key_weight: ArrayLike, direction: ArrayLike
) -> Array:
    """(keys,) scores of a layer with one hidden row: `direction` (hidden,), weights (hidden, d)."""
    return hidden(query, keys, query_weight, key_weight) @ np.asarray(direction, np.float64)


def hidden(query: ArrayLike, keys: ArrayLike, query_weight: ArrayLike, key_weight: ArrayLike) -> Array:
    """(keys, hidden): tanh(W_q q + W_k k), what additive attention weighs."""
    q = np.asarray(query_weight, np.float64) @ np.asarray(query, np.float64)  # (hidden,)
    k = np.asarray(keys, np.float64) @ np.asarray(key_weight, np.float64).T  # (keys, hidden)
    return np.tanh(q + k)


# --------------------------------------------------------------------------- words


def word_similarity(first: str, second: str) -> float:
    """How alike two words are spelled, 0 to 1: the cosine of their counts of letters and of neighbouring letters.

    Case does not matter. 1 for the same word, 0 for words without a common letter, or where one is empty.
    """
    a, b = _spelling(first), _spelling(second)
    common = sum(count * b[part] for part, count in a.items())
    length = math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))
    return min(1.0, common / length) if length else 0.0


def _spelling(word: str) -> Counter[str]:
    letters = word.strip().casefold()
    return Counter(letters) + Counter(letters[i : i + 2] for i in range(len(letters) - 1))
