"""Thumbnails of heads, against numpy, and how far rows are from 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attention_models.attention import attention, pooling
from attention_models.attention.incremental import BlockSize
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.attention.rounding import bounds
from tests.models.inputs import make, random_inputs


def pooled_by_numpy(weights: np.ndarray, cell: int, how: str) -> np.ndarray:
    """(heads, queries, keys) in squares of `cell`."""
    function = np.max if how == "max" else np.mean
    heads, queries, keys = weights.shape
    rows, columns = -(-queries // cell), -(-keys // cell)
    image = np.zeros((heads, rows, columns))
    for r in range(rows):
        for c in range(columns):
            square = weights[:, r * cell : (r + 1) * cell, c * cell : (c + 1) * cell]
            image[:, r, c] = function(square, axis=(1, 2))
    return image


@pytest.mark.parametrize("how", ["max", "mean"])
@pytest.mark.parametrize(
    ("queries", "keys", "cell"), [(1, 1, 1), (7, 7, 1), (100, 100, 4), (33, 33, 2), (1, 100, 4), (100, 7, 4)]
)
def test_pooled_equals_numpy(how: Any, queries: int, keys: int, cell: int) -> None:
    x = random_inputs(queries, keys)
    weights = attention.weights(x)[0].double().numpy()
    found = pooling.pooled(x, 32, None, how)
    assert found.cell == cell
    assert max(found.images.shape[1:]) <= 32
    np.testing.assert_allclose(found.images.numpy(), pooled_by_numpy(weights, cell, how), atol=1e-6)
    mean = pooled_by_numpy(weights.mean(axis=0, keepdims=True), cell, how)[0]
    np.testing.assert_allclose(found.mean.numpy(), mean, atol=1e-6)
    assert found.sums.report().error < 1e-6


def test_pooled_of_one_head() -> None:
    x = make("causal", 50, 50)
    one, all_heads = pooling.pooled(x, 16, [2]), pooling.pooled(x, 16)
    # one head at a time a processor may add in another order
    room = bounds(x, 2, None, attention.weights(x)[0, 2])
    off = float((one.images[0] - all_heads.images[2]).abs().max())
    assert off <= float((room.high - room.low).max()) < 2e-5


@pytest.mark.parametrize("how", ["max", "mean"])
@pytest.mark.parametrize("block", [1, 700, 5000])
@pytest.mark.parametrize("case", ["causal", "everything"])
def test_blocks_of_rows_equal_the_whole(how: Any, block: int, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = make(case, 100, 100)
    whole = pooling.pooled(x, 32, None, how)
    monkeypatch.setattr(pooling, "_BLOCK", BlockSize(block))
    taken = []
    real = attention.weights

    def watched(x: AttentionInputs, part: Part) -> Tensor:
        taken.append(part.rows)
        return real(x, part)

    monkeypatch.setattr(attention, "weights", watched)
    parts = pooling.pooled(x, 32, None, how)
    assert len(taken) > 1
    torch.testing.assert_close(parts.images, whole.images, atol=1e-6, rtol=0)
    torch.testing.assert_close(parts.mean, whole.mean, atol=1e-6, rtol=0)
    assert parts.sums.report().error == pytest.approx(whole.sums.report().error, abs=1e-6)


def test_row_error_finds_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    x, real = make("causal"), attention.weights
    monkeypatch.setattr(attention, "weights", lambda *args, **named: real(*args, **named) * 1.001)
    assert pooling.pooled(x, 32).sums.report().error == pytest.approx(1e-3, rel=1e-2)


def test_weights_that_are_not_numbers_are_no_small_error() -> None:
    x = make("plain")
    x.query[0, 1, 5] = torch.nan
    assert pooling.pooled(x, 32).sums.report().error == math.inf


def masked_by_numpy(masked: np.ndarray, cell: int) -> np.ndarray:
    """(heads, queries, keys) bool in squares of `cell`: whether all of each is masked."""
    heads, queries, keys = masked.shape
    rows, columns = -(-queries // cell), -(-keys // cell)
    found = np.zeros((heads, rows, columns), bool)
    for r in range(rows):
        for c in range(columns):
            found[:, r, c] = masked[:, r * cell : (r + 1) * cell, c * cell : (c + 1) * cell].all(axis=(1, 2))
    return found


@pytest.mark.parametrize("block", [1, 1 << 9, 1 << 24])
@pytest.mark.parametrize("case", ["plain", "causal", "bool mask", "float mask", "mask of keys", "sinks, bool mask"])
@pytest.mark.parametrize(("queries", "keys"), [(13, 13), (50, 50), (50, 31)])
def test_masked_squares_are_those_of_the_mask(
    case: str, queries: int, keys: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = make(case, queries, keys)
    if x.mask is not None and x.mask.shape[1] > 1:  # some heads see less, in whole squares
        low = False if x.mask.dtype == torch.bool else torch.finfo(x.mask.dtype).min
        x.mask[:, 1, ..., : keys // 2] = low
        x.mask[:, 2] = low
    cells = attention.masked_cells(x)
    whole = torch.zeros(4, queries, keys, dtype=torch.bool) if cells is None else cells[0].expand(4, queries, keys)
    monkeypatch.setattr(pooling, "_BLOCK", BlockSize(block))
    found = pooling.pooled(x, 16)
    masked = ~np.broadcast_to(found.visible.numpy(), found.images.shape)
    np.testing.assert_array_equal(masked, masked_by_numpy(whole.numpy(), found.cell))
    assert not found.images[torch.from_numpy(masked)].any()


def test_a_weight_that_rounds_to_0_is_not_masked() -> None:
    x = make("causal", 20, 20)
    x.query.mul_(1e4)
    found = pooling.pooled(x, 20)
    seen = torch.ones(20, 20, dtype=torch.bool).tril()
    assert (found.images[:, seen] == 0).any()
    assert torch.equal(found.visible[0], seen)
