"""Vectors as stripes."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor

from attention_explorer.panels.flow.ground import number_at, shown_numbers, stripes_image


def test_a_stripe_that_several_numbers_share_shows_the_one_furthest_from_0():
    vector = np.zeros(100)
    vector[[3, 42, 99]] = 1, -5, 2
    shown = shown_numbers(vector, 60)  # 20 stripes of 5 numbers
    assert len(shown) == 20
    assert [shown[0], shown[8], shown[19]] == [3, 42, 99]
    assert list(shown_numbers(np.ones(7), 60)) == list(range(7))
    assert len(shown_numbers(np.ones(101), 60)) == 17  # 16 of 6 numbers, and one of 5


def test_blue_is_below_0_red_above_and_nothing_at_0():
    image = stripes_image(np.array([-1.0, 0.0, 1.0, 0.5]), 100)
    below, zero, above, half = (QColor.fromRgba(image.pixel(x, 0)) for x in range(4))
    assert below.blue() > below.red()
    assert above.red() > above.blue()
    assert (zero.alpha(), below.alpha(), above.alpha()) == (0, 255, 255)
    assert 60 < half.alpha() < 200


@pytest.mark.parametrize(("x", "number"), [(10.0, 0), (21.0, 1), (49.9, 3), (50.1, -1), (9.0, -1)])
def test_the_number_under_the_pointer(x, number):
    assert number_at(np.ones(4), QRectF(10, 0, 40, 5), x) == number
