"""What two runs of transformers' own eager forward differ by, head by head, in plain NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from attention_models.protocol.two_runs import AlignedAxis
from attention_models.protocol.values import SiteRef

Weights = Mapping[SiteRef, np.ndarray]
"""(heads, queries, keys) by site."""

Groups = Sequence[tuple[range, range]]
"""Which queries, or keys, of one run stand for which of the other; one of the two may be empty."""


def groups_of(axis: AlignedAxis) -> Groups:
    return [(range(*place.a), range(*place.b)) for place in axis.places]


def one_for_one(count: int) -> Groups:
    return [(range(i, i + 1), range(i, i + 1)) for i in range(count)]


def cell(weights: np.ndarray, rows: range, columns: range) -> float:
    """The mean over some queries of the weight on some keys, in float64."""
    return float(np.mean([sum(float(weights[i, k]) for k in columns) for i in rows]))


def head_change(p: np.ndarray, q: np.ndarray, queries: Groups, keys: Groups) -> float:
    """The mean total variation distance of aligned rows, row by row and key by key."""
    distances = []
    for of_a, of_b in queries:
        if of_a and of_b:
            left = [cell(p, of_a, columns) for columns, _ in keys]
            right = [cell(q, of_b, columns) for _, columns in keys]
            apart = sum(abs(x - y) for x, y in zip(left, right, strict=True)) + abs(sum(left) - sum(right))
            distances.append(apart / 2)
    return sum(distances) / len(distances)


def changes(a: Weights, b: Weights, queries: Groups, keys: Groups) -> dict[tuple[SiteRef, int], float]:
    """Of every head, held against that of the same layer and number."""
    return {
        (site, head): head_change(a[site][head], b[site][head], queries, keys)
        for site in a
        for head in range(len(a[site]))
    }
