"""Figures that are of no model: shares, products of random vectors, sinusoids."""

from __future__ import annotations

import numpy as np

from attention_models.lessons.reading import Reading
from attention_models.textbook.waves import cosines, sinusoidal
from attention_models.views.lookup import soft_weights
from attention_models.views.variance import softmax

_SEED = 0
_DRAWS, _KEYS = 4096, 16  # of random queries and keys, in figures of dot products


def softmax_share(r: Reading) -> float:
    """The share of number `at` by softmax."""
    return float(soft_weights(r.fact.numbers)[_at(r)])


def division(r: Reading) -> float:
    """The share of number `at` by plain division by the sum."""
    numbers = np.array(r.fact.numbers, np.float64)
    if not len(numbers) or (numbers < 0).any() or not numbers.sum() > 0:
        raise ValueError("shares are made of numbers that are not negative, one of them above 0")
    return float((numbers / numbers.sum())[_at(r)])


def variance(r: Reading) -> float:
    """Measured, of q . k of vectors of width `at` drawn from a normal distribution of deviation 1."""
    q, k = _drawn(r.fact.at)
    return float((q * k[:, 0]).sum(axis=-1).var(ddof=1))


def largest_share(r: Reading) -> float:
    """The mean largest weight of a softmax over 16 such products; of the products over √d where numbers = [1]."""
    q, k = _drawn(r.fact.at)
    scores = np.einsum("nd,nkd->nk", q, k)
    return float(softmax(scores / np.sqrt(r.fact.at) if r.fact.numbers == (1.0,) else scores).max(axis=-1).mean())


def _drawn(width: int) -> tuple[np.ndarray, np.ndarray]:
    if not 1 <= width <= 1024:
        raise ValueError("a width is 1 to 1024")
    rng = np.random.default_rng((_SEED, width))
    draws = max(256, _DRAWS // max(1, width // 16))
    return rng.standard_normal((draws, width)), rng.standard_normal((draws, _KEYS, width))


def turn_error(r: Reading) -> float:
    """The largest difference between PE(pos + k) and PE(pos) turned by k; width 64, 100 positions, k = `at`."""
    k, width = r.fact.at, 64
    if not 0 <= k <= 1000:
        raise ValueError("it turns by 0 to 1000 positions")
    table = sinusoidal(100 + k, width)  # sines and cosines in turn
    angles = k / 10_000.0 ** (np.arange(0, width, 2) / width)
    sines, waves = table[:100, 0::2], table[:100, 1::2]
    turned = np.empty_like(table[:100])
    turned[:, 0::2] = sines * np.cos(angles) + waves * np.sin(angles)
    turned[:, 1::2] = waves * np.cos(angles) - sines * np.sin(angles)
    return float(np.abs(turned - table[k : 100 + k]).max())


def wave_likeness(r: Reading) -> float:
    """The cosine of the vectors of two positions, `numbers`, of width 64."""
    if len(r.fact.numbers) != 2 or not all(0 <= n < 1000 for n in r.fact.numbers):
        raise ValueError("it is of two positions below 1000")
    one, other = (int(n) for n in r.fact.numbers)
    return float(cosines(sinusoidal(max(one, other) + 1, 64))[one, other])


def _at(r: Reading) -> int:
    if not 0 <= r.fact.at < len(r.fact.numbers):
        raise LookupError(f"there is no number {r.fact.at}")
    return r.fact.at
