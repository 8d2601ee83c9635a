"""How numbers are written."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_explorer.widgets.number_text import (
    MINUS,
    nice_ticks,
    percent_text,
    power_text,
    power_ticks,
    tick_texts,
    value_text,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1.000"),
        (0.268, "0.268"),
        (0.0312, "0.0312"),
        (0.00312, "0.00312"),
        (0.000504, "0.000504"),
        (4.1e-7, "4.10e-7"),
        (27.66, "27.66"),
        (123.456, "123.5"),
        (123456.0, "1.23e5"),
        (-0.5, f"{MINUS}0.500"),
        (math.nan, "not computed"),
        (-math.inf, f"{MINUS}∞"),
    ],
)
def test_value_text(value, text):
    assert value_text(value) == text


@given(st.floats(min_value=-1e30, max_value=1e30, allow_nan=False))
def test_value_text_keeps_three_digits(value):
    read = float(value_text(value).replace(MINUS, "-"))
    assert read == pytest.approx(value, rel=6e-3)


@given(
    st.floats(-1e6, 1e6),
    st.floats(1e-6, 1e6),
    st.integers(2, 9),
)
def test_ticks_are_few_even_and_within(low, span, most):
    high = low + span
    ticks = nice_ticks(low, high, most)
    slack = span * 1e-6 + abs(low) * 1e-9
    assert len(ticks) <= most
    assert all(low - slack <= tick <= high + slack for tick in ticks)
    steps = [later - earlier for earlier, later in pairwise(ticks)]
    assert all(step == pytest.approx(steps[0], rel=1e-3, abs=slack) for step in steps)


def test_ticks_of_weights():
    ticks = nice_ticks(0, 1, 6)
    assert tick_texts(ticks) == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]


def test_ticks_of_an_empty_range():
    assert nice_ticks(0.5, 0.5, 6) == [0.5]
    assert tick_texts([0.5]) == ["0.500"]


def test_zero_has_no_sign_and_negatives_have_a_minus():
    assert tick_texts(nice_ticks(-0.02, 0.02, 5)) == [f"{MINUS}0.02", f"{MINUS}0.01", "0.00", "0.01", "0.02"]


@pytest.mark.parametrize(
    ("probability", "text"),
    [
        (1.0, "100.0 %"),
        (0.684, "68.4 %"),
        (0.001, "0.1 %"),
        (0.00035, "0.035 %"),
        (0.000123, "0.012 %"),
        (0.0000123, "< 0.01 %"),
        (2e-7, "< 0.01 %"),
        (0.0, "0.0 %"),
    ],
)
def test_every_probability_is_a_percentage(probability, text):
    assert percent_text(probability) == text


def test_powers_of_ten_are_written_short():
    assert [power_text(p) for p in (-3, -2, 0, 3, 5, -12)] == ["10⁻³", "0.01", "1", "1,000", "10⁵", "10⁻¹²"]
    assert power_ticks(0.2, 2.9, 5) == [1, 2]
    assert power_ticks(-0.1, 3.0, 5) == [0, 1, 2, 3]
    assert power_ticks(0.2, 0.9, 5) == []
    wide = power_ticks(-9, 9, 5)
    assert len(wide) <= 5
    assert wide[0] == -9
