"""Numbers to codes, codes to pixels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_explorer.look.colour_maps import diverging, sequential
from attention_explorer.widgets.cell_image import colours, encode, stretch, to_image
from tests.explorer.widgets.pictures import rgb


def test_codes_rank_values_and_keep_zero_for_what_is_missing():
    values = np.array([[0.0, 0.5, 1.0], [np.nan, 2.0, -1.0]], dtype=np.float32)
    codes = encode(values, 0.0, 1.0)
    assert codes.tolist() == [[1, 128, 255], [0, 255, 1]]
    assert encode(values, 0.0, 1.0, masked=values == 0.5)[0].tolist() == [1, 0, 255]


def test_colours_of_the_ends_are_those_of_the_table():
    table = sequential()
    listed = colours(table, 0.0, 1.0)
    assert len(listed) == 256
    assert listed[0] == 0
    assert rgb(listed[1]) == tuple(table[0])
    assert rgb(listed[255]) == tuple(table[255])


def test_a_range_about_zero_ranks_by_distance_from_zero():
    values = np.array([[-3.0, -0.1, 0.0, 0.2, 2.0]], dtype=np.float32)
    codes = encode(values, -3.0, 3.0)[0].astype(int)
    assert codes[0] > codes[4] > codes[3] > codes[1] > codes[2]
    table, listed = diverging(), colours(diverging(), -3.0, 3.0)
    assert rgb(listed[codes[0]]) == tuple(table[0])
    zero = np.array(rgb(listed[codes[2]]))
    assert np.abs(zero - table[128].astype(int)).max() <= 4


@given(st.floats(0, 1, width=32), st.sampled_from([(0.0, 1.0), (-1.0, 1.0), (0.0, 0.25), (-0.3, 1.0)]))
def test_the_colour_is_that_of_the_value(value, limits):
    low, high = limits
    table = sequential()
    code = int(encode(np.full((1, 1), value, np.float32), low, high)[0, 0])
    expected = table[round(min(max((value - low) / (high - low), 0), 1) * 255)].astype(int)
    drawn = np.array(rgb(colours(table, low, high)[code]))
    assert np.abs(drawn - expected).max() <= 8  # a level or two of 255


def test_an_empty_range_and_infinite_values_are_drawn_without_a_warning():
    values = np.array([[1.0, -np.inf, np.inf, np.nan]], dtype=np.float32)
    assert encode(values, 0.0, 0.0)[0, 0] == 1
    assert encode(values, 0.0, 1.0).tolist() == [[255, 1, 255, 0]]


def test_large_cells_are_repeated():
    codes = np.array([[1, 2, 3]], dtype=np.uint8)
    assert stretch(codes, 1, 0.0, 2.0, 6).tolist() == [[1, 1, 2, 2, 3, 3]]
    assert stretch(codes, 1, 1.0, 3.0, 6).tolist() == [[2, 2, 2, 3, 3, 3]]


@given(st.integers(2, 300), st.integers(1, 60), st.data())
def test_no_cell_is_lost_where_cells_are_small(count, pixels, data):
    pixels = min(pixels, count)
    where = data.draw(st.integers(0, count - 1))
    codes = np.ones((1, count), dtype=np.uint8)
    codes[0, where] = 255
    drawn = stretch(codes, 1, 0.0, pixels / count, pixels)
    assert drawn.shape == (1, pixels)
    assert drawn.max() == 255


@pytest.mark.parametrize("width", [1, 3, 4, 17])
def test_the_image_holds_every_pixel(width):
    codes = np.arange(2 * width, dtype=np.uint8).reshape(2, width)
    listed = colours(sequential(), 0.0, 1.0)
    image = to_image(codes, listed)
    assert (image.width(), image.height()) == (width, 2)
    for y in range(2):
        for x in range(width):
            assert image.pixel(x, y) == listed[codes[y, x]]
