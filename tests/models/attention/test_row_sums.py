"""What rows sum to: with the sink's share 1, by a closed form in float64 and by transformers' own eager attention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from attention_models import open_checkpoint, run
from attention_models.attention import attention, pooling
from attention_models.attention.atlas import IncrementalAtlas
from attention_models.attention.incremental import BlockSize
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.attention.row_sums import Row
from tests.models import tiny
from tests.models.inputs import CASES, HEADS, Explicit, added, make, random_inputs

WITH_SINKS = [case for case in CASES if make(case).sinks is not None]


def closed_form(x: AttentionInputs) -> np.ndarray:
    """exp(sink) / (exp(sink) + sum_j exp(s_ij)) over the visible keys, in float64: (heads, queries)."""
    explicit = Explicit(x)
    assert x.sinks is not None
    sinks = np.exp(x.sinks.double().numpy())[:, None]
    powers = np.where(explicit.open, np.exp(explicit.scores), 0.0).sum(-1)
    share: np.ndarray = sinks / (sinks + powers)
    return share


@pytest.mark.parametrize("case", WITH_SINKS)
def test_the_share_of_a_sink(case: str) -> None:
    x = make(case)
    shares, expected = attention.sink_shares(x)[0].numpy(), closed_form(x)
    np.testing.assert_allclose(shares, expected, rtol=1e-5)
    found = pooling.pooled(x, 8).sums.report()
    assert found.error < 1e-6
    assert found.empty == 0
    assert found.sinks == pytest.approx((expected.min(), expected.max()), rel=1e-5)
    part = attention.sink_shares(x, Part([2], slice(3, 7)))[0].numpy()
    np.testing.assert_allclose(part[0], expected[2, 3:7], rtol=1e-5)
    with pytest.raises(ValueError, match="no sinks"):
        attention.sink_shares(replace(x, sinks=None))


def test_it_is_what_transformers_eager_attention_gives_its_sink(
    tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = open_checkpoint(tiny_folder("gpt_oss"))
    trace = run(model, tiny.SENTENCE)
    theirs: list[np.ndarray] = []
    softmax = functional.softmax

    def watched(scores: torch.Tensor, dim: int = -1, **named: Any) -> torch.Tensor:
        weights: torch.Tensor = softmax(scores, dim=dim, **named)
        if weights.dim() == 4:
            theirs.append(weights[0, ..., -1].double().numpy())  # its last column is the sink's
        return weights

    monkeypatch.setattr(functional, "softmax", watched)
    tiny.eager_run(model, tiny.SENTENCE)
    monkeypatch.undo()
    assert len(theirs) == len(trace.sites)
    for x, share in zip(trace.inputs, theirs, strict=True):
        np.testing.assert_allclose(attention.sink_shares(x)[0].numpy(), share, atol=1e-6, rtol=0)
    rows = trace.atlas_view(8).rows
    assert rows.error < 1e-6
    assert rows.sinks == pytest.approx((min(t.min() for t in theirs), max(t.max() for t in theirs)), abs=1e-6)


@pytest.mark.parametrize("planted", [-1e-3, 1e-3])
def test_a_row_that_misses_its_sum_by_less_than_its_sink_is_found(
    planted: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, real = make("sinks"), attention.weights
    monkeypatch.setattr(attention, "weights", lambda *args, **named: real(*args, **named) * (1 + planted))
    assert 2e-4 < pooling.pooled(x, 32).sums.report().error < 1.1e-3


@pytest.mark.parametrize("as_numbers", [False, True])
@pytest.mark.parametrize("heads", [None, [3, 1]])
def test_rows_to_which_nothing_is_visible_are_counted_and_named(
    as_numbers: bool, heads: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    mask = torch.ones(1, HEADS, 20, 20, dtype=torch.bool)
    mask[:, 1, 7], mask[:, 3, 12:14] = False, False
    x = random_inputs(20, 20, mask=added(mask) if as_numbers else mask)
    for block in (1 << 23, 100):
        monkeypatch.setattr(pooling, "_BLOCK", BlockSize(block))
        found = pooling.pooled(x, 4, heads).sums.report(site=5)
        assert found.empty == 3
        assert found.first_empty == (Row(5, 1, 7) if heads is None else Row(5, 3, 12))
        assert found.error < 1e-6


def test_rows_of_a_whole_block_to_which_nothing_is_visible() -> None:
    mask = torch.ones(1, 1, 20, 20, dtype=torch.bool)
    mask[:, :, :] = False
    found = pooling.pooled(random_inputs(20, 20, mask=mask), 4).sums.report()
    assert found.empty == HEADS * 20
    assert found.error == 0


def test_weights_of_zero_in_a_row_that_sees_keys_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    x, real = make("bool mask"), attention.weights

    def broken(*args: Any, **named: Any) -> torch.Tensor:
        w = real(*args, **named)
        w[:, :, 2] = 0
        return w

    monkeypatch.setattr(attention, "weights", broken)
    found = pooling.pooled(x, 32).sums.report()
    assert found.error == 1
    assert found.empty == 0


def test_an_atlas_says_it_of_all_its_sites() -> None:
    mask = torch.ones(1, 1, 13, 13, dtype=torch.bool)
    mask[:, :, 4] = False
    parts = IncrementalAtlas([make("sinks"), make("plain"), random_inputs(13, 13, mask=mask)], 8)
    parts.advance()
    rows = parts.picture().rows
    expected = closed_form(make("sinks"))
    assert rows.sinks == pytest.approx((expected.min(), expected.max()), rel=1e-5)
    assert (rows.empty, rows.first_empty) == (HEADS, Row(2, 0, 4))
