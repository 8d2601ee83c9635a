"""The plane's attention, against loops in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attention_models.views.lookup import (
    additive_scores,
    dot_scores,
    general_scores,
    hidden,
    look_up,
    soft_weights,
    word_similarity,
)

TOLERANCE = 1e-12  # float64, a handful of terms


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.parametrize(("keys", "dim"), [(1, 2), (4, 2), (5, 3)])
def test_scores_equal_loops(rng, keys, dim):
    q, k = rng.normal(size=dim), rng.normal(size=(keys, dim))
    weight = rng.normal(size=(dim, dim))
    query_weight, key_weight, direction = rng.normal(size=(3, dim)), rng.normal(size=(3, dim)), rng.normal(size=3)
    dot, general, additive = np.zeros(keys), np.zeros(keys), np.zeros(keys)
    for i in range(keys):
        dot[i] = sum(q[a] * k[i, a] for a in range(dim))
        general[i] = sum(q[a] * weight[a, b] * k[i, b] for a in range(dim) for b in range(dim))
        for h in range(3):
            inside = sum(query_weight[h, a] * q[a] + key_weight[h, a] * k[i, a] for a in range(dim))
            additive[i] += direction[h] * math.tanh(inside)
    np.testing.assert_allclose(dot_scores(q, k), dot, atol=TOLERANCE)
    np.testing.assert_allclose(general_scores(q, k, weight), general, atol=TOLERANCE)
    np.testing.assert_allclose(additive_scores(q, k, query_weight, key_weight, direction), additive, atol=TOLERANCE)
    np.testing.assert_allclose(hidden(q, k, query_weight, key_weight) @ direction, additive, atol=TOLERANCE)


@pytest.mark.parametrize("temperature", [0.05, 0.7, 1.0, 20.0])
def test_weights_equal_the_formula(rng, temperature):
    scores = rng.normal(size=6)
    expected = np.array([math.exp(s / temperature) for s in scores])
    expected /= math.fsum(expected)
    np.testing.assert_allclose(soft_weights(scores, temperature), expected, atol=TOLERANCE)
    values = rng.normal(size=(6, 4))
    found = look_up(scores, values, temperature)
    mixed = [math.fsum(expected[i] * values[i, c] for i in range(6)) for c in range(4)]
    np.testing.assert_allclose(found.answer, mixed, atol=TOLERANCE)
    np.testing.assert_allclose(found.numerators / found.numerators.sum(), found.weights, atol=TOLERANCE)
    assert found.numerators.max() == 1.0


def test_temperature_0_is_argmax_and_infinity_is_uniform():
    scores = [0.3, 2.0, -5.0, 1.999]
    np.testing.assert_array_equal(soft_weights(scores, 0.0), [0, 1, 0, 0])
    np.testing.assert_array_equal(soft_weights(scores, math.inf), [0.25] * 4)
    np.testing.assert_allclose(soft_weights(scores, 1e-6), [0, 1, 0, 0], atol=TOLERANCE)
    np.testing.assert_allclose(soft_weights(scores, 1e9), [0.25] * 4, atol=1e-8)


def test_equal_scores_share_at_temperature_0():
    np.testing.assert_array_equal(soft_weights([1.0, 1.0, 0.0], 0.0), [0.5, 0.5, 0])


def test_large_scores_and_tiny_temperatures_do_not_overflow():
    np.testing.assert_array_equal(soft_weights([1e300, -1e300], 1e-300), [1, 0])
    np.testing.assert_array_equal(soft_weights([5e307, 5e307], 1.0), [0.5, 0.5])


@pytest.mark.parametrize(
    ("scores", "temperature", "says"),
    [([], 1.0, "at least one key"), ([math.nan], 1.0, "finite"), ([1.0], -1.0, "0 or more"), ([1.0], math.nan, "nan")],
)
def test_what_is_no_softmax_is_refused(scores, temperature, says):
    with pytest.raises(ValueError, match=says):
        soft_weights(scores, temperature)


def test_each_key_needs_one_value():
    with pytest.raises(ValueError, match="2 keys"):
        look_up([1.0, 2.0], [[1.0]], 1.0)


def test_similarity_of_spelling():
    assert word_similarity("apple", "Apple ") == pytest.approx(1.0, abs=TOLERANCE)
    assert word_similarity("apple", "xyz") == 0.0
    assert word_similarity("", "apple") == 0.0
    assert word_similarity("apple", "appel") == word_similarity("appel", "apple")
    assert word_similarity("apple", "appel") > word_similarity("apple", "grape")
    # by hand: ab has a, b, ab; abc has a, b, c, ab, bc; three in common
    assert word_similarity("ab", "abc") == pytest.approx(3 / math.sqrt(3 * 5), abs=TOLERANCE)
