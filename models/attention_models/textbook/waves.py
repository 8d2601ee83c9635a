"""The textbook's position schemes, in numpy alone: sinusoids, ALiBi's slopes, T5's buckets.

No torch is imported here, and each call takes about a millisecond at the sizes that a window shows (up to 512 x 512):
a panel may call these directly.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Layout = Literal["interleaved", "halves"]


def sinusoidal(positions: int, width: int, base: float = 10_000.0, layout: Layout = "interleaved") -> Floats:
    """The table of Vaswani et al. 2017, section 3.5: (positions, width) float64.

    Pair i of the dimensions holds the sine and the cosine of position / base^(2i / width). Interleaved, as printed in
    the paper, they are dimensions 2i and 2i + 1; in halves, as in Marian, all sines come before all cosines.

    Raises:
        ValueError: fewer than one position or dimension, or a base of 1 or less.
    """
    if positions < 1:
        raise ValueError(f"A table of {positions} positions is empty: give 1 or more.")
    angles = np.arange(positions)[:, None] / wavelengths(width, base) * 2 * math.pi  # (positions, pairs)
    sines, cosines = np.sin(angles), np.cos(angles[:, : width // 2])
    if layout == "halves":
        return np.concatenate([sines, cosines], axis=1)
    table = np.empty((positions, width))
    table[:, 0::2], table[:, 1::2] = sines, cosines
    return table


def wavelengths(width: int, base: float = 10_000.0) -> Floats:
    """In how many positions each pair of dimensions comes round once: 2 pi base^(2i / width), (ceil(width / 2),).

    Raises:
        ValueError: fewer than one dimension, or a base of 1 or less.
    """
    if width < 1:
        raise ValueError(f"A table of {width} dimensions is empty: give 1 or more.")
    if not base > 1 or not math.isfinite(base):
        raise ValueError(f"The base of the wavelengths has to be a number above 1, not {base}.")
    lengths: Floats = 2 * math.pi * base ** (np.arange(0, width, 2) / width)
    return lengths


def dot_products(table: NDArray[np.floating]) -> Floats:
    """Every position's vector times every other's: (positions, positions)."""
    rows = table.astype(np.float64)
    products: Floats = rows @ rows.T
    return products


def cosines(table: NDArray[np.floating]) -> Floats:
    """Cosine of the angle between each two positions, (positions, positions); 0 for a vector of zeros."""
    rows = table.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return dot_products(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0))


def distances(table: NDArray[np.floating]) -> Floats:
    """Euclidean distance between each two positions: (positions, positions)."""
    products = dot_products(table)
    squares = np.diag(products)
    apart: Floats = np.sqrt(np.maximum(squares[:, None] + squares[None] - 2 * products, 0.0))
    return apart


def principal_components(table: NDArray[np.floating], count: int = 3) -> tuple[Floats, Floats]:
    """The directions in which positions differ most.

    Returns:
        The coordinates of each position along the first `count` of them, (count, positions), and each one's share of
        the whole variance, (count,). The sign of a component means nothing; its largest coordinate is made positive.
    """
    centred = table.astype(np.float64) - table.mean(axis=0, dtype=np.float64)
    # eigenvectors of the covariance: five times faster than singular values of the table
    strengths, directions = np.linalg.eigh(centred.T @ centred)  # ascending
    scores = (centred @ directions[:, ::-1][:, :count]).T  # (count, positions)
    signs = np.sign(scores[np.arange(len(scores)), np.abs(scores).argmax(axis=1)])
    total = float(np.square(centred).sum())
    shares = strengths[::-1][:count] / total if total > 0 else np.zeros(len(scores))
    return scores * np.where(signs == 0, 1.0, signs)[:, None], shares


def alibi_slopes(heads: int) -> Floats:
    """How much each head's score falls a token of distance: Press et al. 2022, section 3; (heads,).

    For a power of two, 2^(-8h / heads) for h = 1 ... heads; for other numbers every second slope of the next power of
    two fills up, as in the authors' code.

    Raises:
        ValueError: fewer than one head.
    """
    if heads < 1:
        raise ValueError(f"There are no slopes for {heads} heads: give 1 or more.")
    power = 2 ** math.floor(math.log2(heads))
    slopes = 2.0 ** (-8 / power * np.arange(1, power + 1))
    between = 2.0 ** (-4 / power * np.arange(1, 2 * (heads - power), 2))
    return np.concatenate([slopes, between])


def mpt_slopes(heads: int) -> Floats:
    """ALiBi's slopes as MPT has them: where `heads` is no power of two, from the next larger one; (heads,)."""
    power = 2 ** math.ceil(math.log2(heads))
    slopes: Floats = 2.0 ** (-8 / power * np.arange(1, power + 1))
    return slopes if power == heads else np.concatenate([slopes[1::2], slopes[::2]])[:heads]


def t5_buckets(
    distance: NDArray[np.integer], bidirectional: bool, buckets: int = 32, farthest: int = 128
) -> NDArray[np.int64]:
    """Which bias T5 adds for a key that stands `distance` after its query (before it: negative), in the same shape.

    Raffel et al. 2020, section 2.1: near distances have a bucket each, farther ones share buckets that grow with the
    logarithm, and all beyond `farthest` share the last. A bidirectional stack gives half of them to later keys.
    """
    if bidirectional:
        buckets //= 2
        first = (distance > 0) * buckets
        apart = np.abs(distance)
    else:
        first = np.zeros_like(distance)
        apart = np.maximum(-distance, 0)
    exact = buckets // 2
    # in float32, as the model has it: where a bucket ends is a matter of rounding
    ratio = np.log(np.maximum(apart, 1).astype(np.float32) / np.float32(exact))
    far = exact + (ratio / np.float32(math.log(farthest / exact)) * (buckets - exact)).astype(np.int64)
    chosen: NDArray[np.int64] = first + np.where(apart < exact, apart, np.minimum(far, buckets - 1))
    return chosen
