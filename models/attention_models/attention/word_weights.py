"""Weights between words from weights between their pieces, as Clark et al. 2019, section 4.1, merge them.

Attention to a split word is the sum of the weights to its pieces, and attention from it their mean, so that each row of
words sums to what its rows of pieces do on average: to 1.
"""

from __future__ import annotations

import numpy as np

from attention_models.protocol.word_spans import Words


def merged_weights(weights: np.ndarray, queries: Words, keys: Words) -> np.ndarray:
    """Weights (query tokens, key tokens) as weights (query words, key words), in the same number format.

    A weight between two words of one piece each stays the very same. Sums are made in float64.
    """
    if queries.are_tokens and keys.are_tokens:
        return weights
    summed = np.add.reduceat(weights.astype(np.float64), keys.starts, axis=1)  # (query tokens, key words)
    mean = np.add.reduceat(summed, queries.starts, axis=0) / _lengths(queries)[:, None]  # (query words, key words)
    merged: np.ndarray = mean.astype(weights.dtype)
    return merged


def merged_mask(masked: np.ndarray, queries: Words, keys: Words) -> np.ndarray:
    """Mask (query tokens, key tokens), True where masked, as (query words, key words): True where all pieces are."""
    rows = np.logical_and.reduceat(masked, keys.starts, axis=1)
    cells: np.ndarray = np.logical_and.reduceat(rows, queries.starts, axis=0)
    return cells


def _lengths(words: Words) -> np.ndarray:
    """(words,) how many pieces each has."""
    lengths: np.ndarray = np.diff([*words.starts, words.count])
    return lengths
