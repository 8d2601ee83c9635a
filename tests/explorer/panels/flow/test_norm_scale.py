"""How long norms are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from attention_explorer.panels.flow.model_scene import NormScale, norm_scale


def test_lengths_are_in_proportion():
    scale = norm_scale([np.array([1.0, 2.0]), np.array([4.0])])
    assert [scale.share(x) for x in (0, 1, 2, 4)] == [0, 0.25, 0.5, 1]
    assert not scale.cuts


def test_one_that_is_far_longer_is_cut_and_says_so():
    """The first token of many models: the others would be invisible beside it."""
    scale = norm_scale([np.array([1.0, 2.0, 3.0, 4.0, 500.0])])
    assert scale == NormScale(4.0, cuts=True)
    assert scale.share(500) == 1
    assert scale.is_beyond(500)
    assert not scale.is_beyond(4)


def test_nothing_and_what_is_no_number():
    assert norm_scale([]).share(3) == 1
    assert norm_scale([np.array([np.nan, np.inf, 2.0, 1.0])]).share(1) == pytest.approx(0.5)
