"""Tiles of one head's map, against the softmax of whole rows in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from attention_models.attention import attention, tiles
from attention_models.attention.incremental import BlockSize
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.attention.rounding import bounds
from attention_models.attention.tiles import HeadTiles
from attention_models.protocol.request import Cancelled
from attention_models.protocol.values import TILE, Tile, top_level
from tests.models.inputs import LOWEST, make, random_inputs

HEAD = 2
CASES = (
    "plain",
    "causal",
    "bool mask",
    "float mask",
    "mask that also biases",
    "mask of keys",
    "bias, causal",
    "soft cap, causal",
    "sinks",
)


def window(queries: int, width: int) -> torch.Tensor:
    """(1, 1, queries, queries) bool: causal, the last `width` keys."""
    back = torch.arange(queries)[:, None] - torch.arange(queries)
    return ((back >= 0) & (back < width))[None, None]


def softmax(x: AttentionInputs) -> tuple[np.ndarray, np.ndarray]:
    """Every weight of the head in float64, and which keys are masked: (queries, keys) each."""
    q, k = x.query[0, HEAD].double().numpy(), x.key[0, HEAD // x.group].double().numpy()
    s = x.scale * q @ k.T
    bias, mask = (
        None if t is None else t.expand(1, len(x.query[0]), *s.shape)[0, HEAD].numpy() for t in (x.bias, x.mask)
    )
    if bias is not None:
        s += bias
    if x.softcap is not None:
        s = x.softcap * np.tanh(s / x.softcap)
    masked: Any = np.triu(np.ones(s.shape, bool), 1) if x.causal else np.zeros(s.shape, bool)
    if mask is not None:
        masked = ~mask if mask.dtype == bool else mask <= LOWEST / 2
        s += 0.0 if mask.dtype == bool else np.where(masked, 0.0, mask)
    e = np.where(masked, 0.0, np.exp(s - s.max()))
    total: np.ndarray = e.sum(1, keepdims=True)
    if x.sinks is not None:
        total += np.exp(float(x.sinks[HEAD]) - s.max())
    weights: np.ndarray = np.divide(e, total, out=np.zeros_like(e), where=total > 0)
    return weights, masked


class Reference:
    """The float64 weights of whole rows, and between which bounds float32 may round them."""

    def __init__(self, x: AttentionInputs) -> None:
        self.x = x
        self.weights, self.masked = softmax(x)
        room = bounds(x, HEAD, None, torch.from_numpy(self.weights).float())
        self.low, self.high = room.low.numpy(), room.high.numpy()

    def assert_holds(self, values: np.ndarray, tile: Tile, how: str = "max") -> None:
        """Largest and mean grow with the weights, so those of the bounds are bounds of a square."""
        hidden = self._squares(self.masked, tile, "min")
        np.testing.assert_array_equal(np.isnan(values), hidden == 1, err_msg=str(tile))
        seen = hidden == 0
        low, high = (self._squares(bound, tile, how)[seen] for bound in (self.low, self.high))
        # a mean of n weights is rounded as a sum is, and a largest one not at all
        more = (tile.cell + 2) * 2.0**-24 * high if how == "mean" else 0.0
        assert (low - more <= values[seen]).all(), tile
        assert (values[seen] <= high + more).all(), tile

    def _squares(self, cells: np.ndarray, tile: Tile, how: str) -> np.ndarray:
        part = cells[tile.rows(self.x.queries), tile.columns(self.x.keys)].astype(np.float64)
        part = np.pad(part, tuple((0, -size % tile.cell) for size in part.shape), constant_values=np.nan)
        split = (part.shape[0] // tile.cell, tile.cell, part.shape[1] // tile.cell, tile.cell)
        pool: Any = {"max": np.nanmax, "mean": np.nanmean, "min": np.nanmin}[how]
        image: np.ndarray = pool(part.reshape(split), axis=(1, 3))
        return image


def every_tile(queries: int, keys: int) -> list[Tile]:
    return [
        Tile(level, row, column)
        for level in range(top_level(queries, keys) + 1)
        for row in range(-(-queries // (TILE << level)))
        for column in range(-(-keys // (TILE << level)))
    ]


@pytest.mark.short(
    *("plain-mean", "bool mask-max", "float mask-mean", "mask of keys-max", "bias, causal-mean", "sinks-max"),
)
@pytest.mark.parametrize("how", ["max", "mean"])
@pytest.mark.parametrize("case", CASES)
def test_every_tile_equals_whole_rows_to_float32_rounding(how: Any, case: str) -> None:
    x = make(case, 601, 601)
    found, whole = HeadTiles(x, HEAD), Reference(x)
    for tile in reversed(every_tile(601, 601)):
        whole.assert_holds(found.tile(tile, how), tile, how)


def test_a_weight_that_is_off_by_more_than_rounding_is_seen() -> None:
    x = make("bias, causal", 601, 601)
    whole, tile = Reference(x), Tile(0, 1, 0)
    values = HeadTiles(x, HEAD).tile(tile)
    assert float(np.max(whole.high - whole.low)) < 2e-5
    values[5, np.nanargmax(values[5])] *= 1 + 3e-5
    with pytest.raises(AssertionError):
        whole.assert_holds(values, tile)


@pytest.mark.parametrize("order", [1, -1])
def test_order_and_blocks_make_no_difference(order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "_BLOCK", BlockSize(5000))  # a few rows at a time
    x = random_inputs(300, 700)
    found, whole = HeadTiles(x, HEAD), Reference(x)
    for tile in every_tile(300, 700)[::order]:
        whole.assert_holds(found.tile(tile), tile)


def test_a_row_that_may_look_at_nothing_is_masked_and_spoils_no_other() -> None:
    mask = torch.ones(1, 1, 300, 300, dtype=torch.bool)
    mask[:, :, 7] = False
    x = random_inputs(300, 300, mask=mask)
    values = HeadTiles(x, HEAD).tile(Tile(0, 0, 0))
    assert np.isnan(values[7]).all()
    assert not np.isnan(np.delete(values, 7, axis=0)).any()


def computed(x: AttentionInputs, tile: Tile, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many scores a tile took once its rows' sums are known."""
    head = HeadTiles(x, HEAD)
    head.tile(tile)
    taken, real = [], attention.scores

    def counted(*args: Any, **named: Any) -> torch.Tensor:
        found = real(*args, **named)
        taken.append(found.numel())
        return found

    monkeypatch.setattr(attention, "scores", counted)
    head.tile(tile)
    return sum(taken)


def test_the_future_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x = random_inputs(1024, 1024, causal=True)
    assert computed(x, Tile(0, 0, 2), monkeypatch) == 0
    assert computed(x, Tile(0, 2, 1), monkeypatch) == TILE * TILE
    monkeypatch.setattr(tiles, "_BLOCK", BlockSize(16 * 1024))
    assert computed(x, Tile(2, 0, 0), monkeypatch) < 0.6 * 1024**2


def test_what_lies_outside_of_a_window_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x = random_inputs(1024, 1024, mask=window(1024, 64))
    monkeypatch.setattr(tiles, "_BLOCK", BlockSize(32 * 1024))
    assert computed(x, Tile(0, 3, 0), monkeypatch) == 0
    assert computed(x, Tile(2, 0, 0), monkeypatch) <= 1024 * (64 + 32 + 8)
    Reference(x).assert_holds(HeadTiles(x, HEAD).tile(Tile(2, 0, 0)), Tile(2, 0, 0))


def test_half_precision_is_read_as_it_was_given() -> None:
    x = random_inputs(300, 300, causal=True)
    half = replace(x, query=x.query.bfloat16(), key=x.key.bfloat16(), value=x.value.bfloat16())
    same = replace(x, query=half.query.float(), key=half.key.float())
    np.testing.assert_allclose(
        HeadTiles(half, HEAD).tile(Tile(0, 0, 0)), HeadTiles(same, HEAD).tile(Tile(0, 0, 0)), atol=1e-7
    )


def test_large_scores_do_not_overflow() -> None:
    x = random_inputs(300, 300)
    x = replace(x, query=100 * x.query)
    values = HeadTiles(x, HEAD).tile(Tile(1, 0, 0))
    np.testing.assert_allclose(values, HeadTiles(x, HEAD).tile(Tile(1, 0, 0)))
    # float32 rounds scores near 1,000, the same for both
    whole = attention.weights(x, Part([HEAD]))[0].numpy()
    np.testing.assert_allclose(values, whole.reshape(1, 150, 2, 150, 2).max(axis=(0, 2, 4)), atol=1e-6)


def test_can_be_called_off() -> None:
    with pytest.raises(Cancelled):
        HeadTiles(random_inputs(300, 300), HEAD).tile(Tile(0, 0, 0), should_stop=lambda: True)


@pytest.mark.parametrize("tile", [Tile(0, 2, 0), Tile(0, 0, 2), Tile(1, 1, 0), Tile(0, -1, 0), Tile(-1, 0, 0)])
def test_a_tile_that_is_not_there(tile: Tile) -> None:
    with pytest.raises(IndexError, match="no Tile"):
        HeadTiles(random_inputs(300, 300), HEAD).tile(tile)


@pytest.mark.parametrize(("tokens", "level"), [(1, 0), (256, 0), (257, 1), (512, 1), (4096, 4), (4097, 5)])
def test_the_top_level_is_one_tile(tokens: int, level: int) -> None:
    assert top_level(tokens, 1) == top_level(1, tokens) == level


def test_a_tile_names_its_part() -> None:
    assert Tile(2, 1, 0).rows(1500) == slice(1024, 1500)
    assert Tile(2, 1, 0).columns(1500) == slice(0, 1024)


@pytest.mark.parametrize("scale_rows", [False, True])
@pytest.mark.parametrize("case", ["causal", "sinks", "bool mask"])
def test_rows_by_their_largest_and_weights_that_are_given(case: str, scale_rows: bool) -> None:
    x = make(case, 301, 301)
    x = replace(x, query=x.query / 2)  # scores of 20 are rounded by more than is tested here
    weights, masked = softmax(x)
    given = replace(x, precomputed=attention.weights(x), causal=False, mask=None)
    expected = weights / weights.max(axis=1, keepdims=True) if scale_rows else weights
    for source in (x, given):
        head = HeadTiles(source, HEAD)
        for level in (1, 0):
            values = head.tile(Tile(level, 0, 0), "max", scale_rows=scale_rows)
            shown = np.where(masked, -1, expected)[: 256 << level, : 256 << level]
            pad = tuple((0, -size % (1 << level)) for size in shown.shape)
            shown = np.pad(shown, pad, constant_values=-1)
            shown = shown.reshape(shown.shape[0] >> level, 1 << level, -1, 1 << level).max(axis=(1, 3))
            np.testing.assert_array_equal(np.isnan(values), shown < 0)
            np.testing.assert_allclose(values[shown >= 0], shown[shown >= 0], atol=2e-6)
