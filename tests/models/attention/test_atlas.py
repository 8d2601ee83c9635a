"""The atlas in parts: the same pictures, however they are cut up."""

from __future__ import annotations

import numpy as np
import pytest

from models.attention import pooling
from models.attention.atlas import IncrementalAtlas
from models.attention.blocks import BlockSize
from models.protocol.values import Pooling
from models.protocol.work import Cancelled
from tests.models.inputs import make


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
