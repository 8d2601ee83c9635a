"""Rollout and flow of three tokens by hand; ranks against their formula."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_models.effects.rollout import flow, mixed_with_identity, rank_correlation, rollout
from attention_models.protocol.request import Cancelled

FIRST = np.array([[1.0, 0.0, 0.0], [0.6, 0.4, 0.0], [0.2, 0.3, 0.5]])
SECOND = np.array([[1.0, 0.0, 0.0], [0.1, 0.9, 0.0], [0.7, 0.2, 0.1]])


def test_rollout_of_three_tokens_and_two_layers() -> None:
    mixed = mixed_with_identity([FIRST, SECOND])
    # half identity: [1, 0, 0], [.3, .7, 0], [.1, .15, .75] and [1, 0, 0], [.05, .95, 0], [.35, .1, .55]
    np.testing.assert_allclose(mixed[0], np.array([[1, 0, 0], [0.3, 0.7, 0], [0.1, 0.15, 0.75]]))
    by_hand = [
        0.35 * 1 + 0.1 * 0.3 + 0.55 * 0.1,
        0.1 * 0.7 + 0.55 * 0.15,
        0.55 * 0.75,
    ]
    np.testing.assert_allclose(rollout(mixed)[2], by_hand, atol=1e-12)
    np.testing.assert_allclose(rollout(mixed).sum(axis=1), 1, atol=1e-12)


def least_cut(layers: list[np.ndarray], position: int, token: int) -> float:
    """The capacity of the smallest cut of two layers, every one of the 2^3 tried: the largest flow is as large."""
    cuts: list[float] = []
    for side in product((True, False), repeat=3):  # which tokens in the middle are on the side of the source
        upper = sum(layers[1][position, j] for j in range(3) if not side[j])
        lower = sum(layers[0][j, token] for j in range(3) if side[j])
        cuts.append(float(upper + lower))
    return min(cuts)


@given(st.lists(st.integers(0, 9), min_size=18, max_size=18))
def test_the_largest_flow_is_the_smallest_cut(numbers: list[int]) -> None:
    layers = [np.array(numbers[:9], float).reshape(3, 3) / 10, np.array(numbers[9:], float).reshape(3, 3) / 10]
    for position in range(3):
        found = flow(layers, position)
        for token in range(3):
            assert found[token] == pytest.approx(least_cut(layers, position, token), abs=1e-9)


def test_flow_by_hand() -> None:
    layers = mixed_with_identity([FIRST, SECOND])
    # to the first token: through the first .35 of 1, through the second .1 of .3, through the third .55 of .1
    assert flow(layers, 2)[0] == pytest.approx(0.35 + 0.1 + 0.1)
    with pytest.raises(Cancelled):
        flow(layers, 2, lambda: True)


def test_ranks() -> None:
    a, b = np.array([1.0, 5.0, 2.0, 9.0]), np.array([0.1, 0.4, 0.3, 0.2])
    difference = np.array([1, 3, 2, 4]) - np.array([1, 4, 3, 2])
    assert rank_correlation(a, b) == pytest.approx(1 - 6 * (difference**2).sum() / (4 * 15))
    assert rank_correlation(a, -a) == pytest.approx(-1)
    assert np.isnan(rank_correlation(a, np.ones(4)))
    tied = np.array([1.0, 1.0, 2.0, 3.0])  # ranks 1.5, 1.5, 3, 4
    assert rank_correlation(tied, np.array([1.5, 1.5, 3.0, 4.0])) == pytest.approx(1)
