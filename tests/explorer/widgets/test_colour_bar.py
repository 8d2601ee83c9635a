"""The colour scale."""

from __future__ import annotations

import math

import numpy as np
import pytest
from PySide6.QtGui import QImage

from attention_explorer.look.colour_maps import diverging, sequential
from attention_explorer.look.theme import DARK, LIGHT
from attention_explorer.widgets.colour_bar import ColourBar
from tests.explorer.widgets.pictures import rendered, rgb


@pytest.fixture
def bar(qtbot) -> ColourBar:
    widget = ColourBar("weight")
    qtbot.addWidget(widget)
    widget.resize(widget.sizeHint().width(), 300)
    widget.set_span(60, 200)
    return widget


@pytest.mark.parametrize("table", [sequential(), diverging()], ids=["sequential", "diverging"])
def test_high_is_at_the_top_of_the_span(bar, table):
    bar.set_colour_map(table)
    image = rendered(bar)
    for y, row in ((61, 255), (160, 128), (258, 0)):
        drawn = np.array(rgb(image.pixelColor(15, y)))
        assert np.abs(drawn - table[row].astype(int)).max() <= 8
    assert image.pixelColor(15, 59).name() == LIGHT.surface


def test_the_marker_points_at_its_value(bar):
    plain = rendered(bar)
    bar.set_marker(0.5)
    marked = rendered(bar)
    changed = [y for y in range(300) if any(marked.pixel(x, y) != plain.pixel(x, y) for x in range(8))]
    assert (changed[0] + changed[-1]) / 2 == pytest.approx(160, abs=1.5)


@pytest.mark.parametrize("nothing", [None, math.nan])
def test_no_marker_for_no_value(bar, nothing):
    plain = rendered(bar)
    bar.set_marker(0.5)
    bar.set_marker(nothing)
    assert rendered(bar) == plain


def test_a_new_range_is_told_and_drawn(bar):
    before = rendered(bar)
    bar.set_range(-2.0, 2.0)
    bar.set_label("score")
    assert bar.toolTip() == "score from −2.000 to 2.000"
    assert rendered(bar) != before


def test_an_empty_range_is_drawn(bar):
    bar.set_range(0.5, 0.5)
    bar.set_marker(0.5)
    assert rendered(bar) != QImage()


def test_wider_numbers_ask_for_more_room(bar):
    narrow = bar.sizeHint().width()
    bar.set_range(0, 123456)
    assert bar.sizeHint().width() > narrow


def test_theme_changes_the_picture(bar):
    light = rendered(bar)
    bar.set_theme(DARK)
    assert rendered(bar) != light


@pytest.mark.parametrize(
    ("low", "high", "first", "last"),
    [(0.0, 1.0, "0.0", "1.0"), (0.0, 0.963, "0.0", "0.963"), (-0.27, 0.27, "−0.270", "0.270")],
)
def test_both_ends_are_labelled_and_no_labels_touch(bar, low, high, first, last):
    bar.set_range(low, high)
    ticks = bar.ticks()
    assert (ticks[0], ticks[-1]) == ((pytest.approx(low), first), (pytest.approx(high), last))
    apart = np.diff([value for value, _ in ticks]) / (high - low) * 200  # the bar is 200 pixels high
    assert apart.min() >= bar.fontMetrics().height()
