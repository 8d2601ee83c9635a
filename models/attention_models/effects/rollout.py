"""Attention rollout and attention flow: how much of a position comes from each token, layers taken together.

Abnar and Zuidema 2020, "Quantifying Attention Flow in Transformers". The residual connection counts as much as
attention: of each layer half of the mean over heads, and half of the identity.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from attention_models.protocol.request import Cancelled, ShouldStop, never


def mixed_with_identity(weights: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Of each layer's mean weights, (tokens, tokens), half; the other half is the token itself. float64."""
    return [0.5 * w.astype(np.float64) + 0.5 * np.eye(len(w)) for w in weights]


def rollout(layers: Sequence[np.ndarray]) -> np.ndarray:
    """(tokens, tokens) float64: the product of `layers`, each (tokens, tokens), the first one rightmost."""
    product = np.eye(len(layers[0]))
    for layer in layers:
        product = layer @ product
    return product


def flow(layers: Sequence[np.ndarray], position: int, should_stop: ShouldStop = never) -> np.ndarray:
    """(tokens,) float64: the maximum flow from `position` after the last layer to each token before the first.

    Weights are capacities of the edges from a token to those that it attends to in the layer below.

    Raises:
        Cancelled: `should_stop()` was true between two tokens.
    """
    tokens = len(layers[0])
    found = np.zeros(tokens)
    for token in range(tokens):
        if should_stop():
            raise Cancelled
        found[token] = _maximum_flow(layers, position, token)
    return found


def _maximum_flow(layers: Sequence[np.ndarray], position: int, token: int) -> float:
    """Dinic's algorithm on the layered graph; node (l, i) is l * tokens + i, layer 0 the input."""
    tokens, depth = len(layers[0]), len(layers)
    edges: list[list[int]] = [[] for _ in range((depth + 1) * tokens)]  # of each node the edges that leave it
    to: list[int] = []
    left: list[float] = []  # capacity; an edge's reverse is the one beside it
    for number, layer in enumerate(layers):
        above, below = (number + 1) * tokens, number * tokens
        for i, j in zip(*np.nonzero(layer > 0), strict=True):
            if number + 1 == depth and i != position:
                continue
            if number == 0 and j != token:
                continue
            edges[above + i].append(len(to))
            edges[below + j].append(len(to) + 1)
            to += [below + int(j), above + int(i)]
            left += [float(layer[i, j]), 0.0]
    start, end = depth * tokens + position, token
    total = 0.0
    while True:
        level = _levels(edges, to, left, start, end)
        if level is None:
            return total
        next_edge = [0] * len(edges)
        while True:
            pushed = _push(edges, to, left, level, next_edge, start, end)
            if not pushed:
                break
            total += pushed


_LEAST = 1e-12


def _levels(edges: list[list[int]], to: list[int], left: list[float], start: int, end: int) -> list[int] | None:
    level = [-1] * len(edges)
    level[start] = 0
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for edge in edges[node]:
            if left[edge] > _LEAST and level[to[edge]] < 0:
                level[to[edge]] = level[node] + 1
                waiting.append(to[edge])
    return level if level[end] >= 0 else None


def _push(
    edges: list[list[int]],
    to: list[int],
    left: list[float],
    level: list[int],
    next_edge: list[int],
    start: int,
    end: int,
) -> float:
    """One path of the level graph, filled; 0 where there is none."""
    path: list[int] = []
    node = start
    while node != end:
        while next_edge[node] < len(edges[node]):
            edge = edges[node][next_edge[node]]
            if left[edge] > _LEAST and level[to[edge]] == level[node] + 1:
                path.append(edge)
                node = to[edge]
                break
            next_edge[node] += 1
        else:
            if not path:
                return 0.0
            edge = path.pop()
            node = to[edge ^ 1]
            next_edge[node] += 1
    pushed = min(left[edge] for edge in path)
    for edge in path:
        left[edge] -= pushed
        left[edge ^ 1] += pushed
    return pushed


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's: Pearson's correlation of ranks, ties given their mean rank. NaN where one is the same throughout."""
    ranks = [_ranks(values) for values in (a, b)]
    if len(a) < 2 or any(np.ptp(r) == 0 for r in ranks):
        return float("nan")
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[where]
