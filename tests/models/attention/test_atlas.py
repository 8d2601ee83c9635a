"""The atlas in parts: the same pictures, however they are cut up."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_models.attention import pooling
from attention_models.attention.atlas import IncrementalAtlas
from attention_models.attention.incremental import BlockSize
from attention_models.protocol.request import Cancelled
from attention_models.protocol.values import Pooling
from tests.models.inputs import HEADS, make, random_inputs


@pytest.mark.parametrize("block", [1, 300, 1 << 24])
@pytest.mark.parametrize("how", ["max", "mean"])
def test_parts_make_the_whole(how: Pooling, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = [make("causal", 100, 100), make("bool mask", 60, 90)]
    whole = IncrementalAtlas(inputs, 32, how)
    whole.advance()
    assert whole.is_whole
    assert whole.done == 1
    monkeypatch.setattr(pooling, "_BLOCK", BlockSize(block))
    parts = IncrementalAtlas(inputs, 32, how)
    steps = [0.0]
    while not parts.is_whole:
        parts.advance(1)
        picture = parts.picture()
        there = ~np.isnan(picture.images)
        np.testing.assert_allclose(picture.images[there], whole.picture().images[there], atol=1e-6)
        steps.append(picture.done)
    assert steps == sorted(steps)
    assert steps[-1] == 1
    np.testing.assert_allclose(parts.picture().images, whole.picture().images, atol=1e-6)
    np.testing.assert_array_equal(parts.picture().masked, whole.picture().masked)
    np.testing.assert_allclose(parts.picture().mean, whole.picture().mean, atol=1e-6)
    assert parts.picture().rows.error == pytest.approx(whole.picture().rows.error, abs=1e-6)


def test_what_is_not_there_yet_is_nan() -> None:
    parts = IncrementalAtlas([make("causal", 50, 50), make("causal", 50, 50)], 48)
    assert parts.done == 0
    assert np.isnan(parts.picture().images).all()
    parts.advance(1)
    picture = parts.picture()
    assert not np.isnan(picture.images[0]).any()
    assert np.isnan(picture.images[1]).all()
    assert 0.4 < picture.done < 0.6


def test_what_is_masked_is_told_from_what_is_not_there() -> None:
    mask = torch.ones(1, HEADS, 40, 40, dtype=torch.bool)
    mask[:, 1, :, 7] = False
    parts = IncrementalAtlas([make("causal", 50, 50), random_inputs(40, 40, mask=mask)], 50)
    parts.advance(1)
    assert not parts.picture().masked[1].any()
    parts.advance()
    masked = parts.picture().masked
    assert masked.shape == (2, HEADS, 50, 50)  # heads of the second site have masks of their own
    for head in range(HEADS):
        np.testing.assert_array_equal(masked[0, head], np.triu(np.ones((50, 50), bool), 1))
        expected = np.zeros((50, 50), bool)
        expected[:40, 7] = head == 1
        np.testing.assert_array_equal(masked[1, head], expected)


def test_masks_alike_are_kept_once_for_all_heads() -> None:
    parts = IncrementalAtlas([make("causal", 50, 50)], 48)
    parts.advance()
    assert parts.picture().masked.shape == (1, 1, 25, 25)


def test_called_off_it_keeps_what_it_has() -> None:
    parts = IncrementalAtlas([make("causal", 50, 50), make("causal", 50, 50)], 48)
    parts.advance(1)
    with pytest.raises(Cancelled):
        parts.advance(should_stop=lambda: True)
    parts.advance()
    assert not np.isnan(parts.picture().images).any()


def test_of_no_sites() -> None:
    parts = IncrementalAtlas([], 48)
    assert parts.is_whole
    parts.advance()
    assert parts.picture().images.shape == (0, 0, 0, 0)
    with pytest.raises(ValueError, match="no room"):
        IncrementalAtlas([], 0)
