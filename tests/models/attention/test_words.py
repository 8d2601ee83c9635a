"""Weights between words, against the sums and means of Clark et al. 2019 written out cell by cell."""

from __future__ import annotations

import numpy as np
import pytest

from attention_models.attention.word_weights import merged_mask, merged_weights
from attention_models.protocol.word_spans import Words


def words(*lengths: int) -> Words:
    starts = np.cumsum([0, *lengths])
    return Words(tuple(starts[:-1].tolist()), int(starts[-1]))


def written_out(weights: np.ndarray, queries: Words, keys: Words) -> np.ndarray:
    found = np.zeros((len(queries), len(keys)))
    for a in range(len(queries)):
        for b in range(len(keys)):
            to_pieces = [sum(weights[i, j] for j in keys.tokens(b)) for i in queries.tokens(a)]
            found[a, b] = sum(to_pieces) / len(to_pieces)
    return found


def random_rows(queries: int, keys: int, seed: int) -> np.ndarray:
    scores = np.random.default_rng(seed).normal(size=(queries, keys)) * 3
    weights: np.ndarray = np.exp(scores)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


@pytest.mark.parametrize(
    ("queries", "keys"),
    [
        (words(1, 3, 1, 2), words(1, 3, 1, 2)),
        (words(4), words(1, 1, 5)),
        (words(2, 2, 2), words(6)),
        (words(1), words(1)),
    ],
)
def test_from_averaged_and_to_summed(queries, keys):
    weights = random_rows(queries.count, keys.count, seed=len(keys))
    found = merged_weights(weights, queries, keys)
    np.testing.assert_allclose(found, written_out(weights, queries, keys), rtol=1e-14, atol=1e-16)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)


def test_float32_is_summed_in_float64_and_stays_float32():
    queries, keys = words(100, 200, 100), words(1, 399)
    weights = random_rows(400, 400, seed=2).astype(np.float32)
    found = merged_weights(weights, queries, keys)
    assert found.dtype == np.float32
    exact = written_out(weights.astype(np.float64), queries, keys)
    np.testing.assert_array_equal(found, exact.astype(np.float32))


def test_a_word_of_one_piece_keeps_its_very_weights():
    weights = random_rows(5, 5, seed=3).astype(np.float32)
    np.testing.assert_array_equal(merged_weights(weights, Words.alone(5), Words.alone(5)), weights)
    some = merged_weights(weights, words(1, 2, 1, 1), words(1, 2, 1, 1))
    np.testing.assert_array_equal(some[np.ix_([0, 2, 3], [0, 2, 3])], weights[np.ix_([0, 3, 4], [0, 3, 4])])


def test_a_cell_is_masked_where_all_its_pieces_are():
    masked = np.triu(np.ones((4, 4), bool), 1)
    pairs = words(2, 2)
    assert merged_mask(masked, pairs, pairs).tolist() == [[False, True], [False, False]]
    assert merged_mask(masked, words(1, 3), Words.alone(4)).tolist() == [
        [False, True, True, True],
        [False, False, False, False],
    ]


def test_words_and_their_tokens():
    w = words(1, 3, 2)
    assert [w.word(token) for token in range(-1, 7)] == [-1, 0, 1, 1, 1, 2, 2, -1]
    assert [list(w.tokens(word)) for word in range(3)] == [[0], [1, 2, 3], [4, 5]]
    assert w.part(1, 3) == words(3, 2)
    assert not w.are_tokens
    assert Words.alone(3).are_tokens
