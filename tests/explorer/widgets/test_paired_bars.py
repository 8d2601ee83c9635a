"""Bars before and after."""

from __future__ import annotations

import pytest

from attention_explorer.widgets.paired_bars import PairedBars, PairedRow

ROWS = (PairedRow("␣Tom", 0.68, 0.34, "68.0 %", "34.0 %"), PairedRow("␣Ben", 0.0, 1.0, "0.0 %", "100.0 %"))


@pytest.fixture
def bars(qtbot) -> PairedBars:
    widget = PairedBars("Next token")
    qtbot.addWidget(widget)
    widget.resize(360, 120)
    widget.set_rows(ROWS)
    return widget


def test_bars_are_as_long_as_their_values(bars):
    before, after = bars.bar_rects(0)
    assert before.width() == pytest.approx(2 * after.width())
    nothing, all_of_it = bars.bar_rects(1)
    assert nothing.width() == 2  # a value of 0 still shows where its bar is
    assert all_of_it.width() == pytest.approx(after.width() / 0.34)
    assert before.bottom() <= after.top()
    assert after.right() < bars.width()


def test_without_a_comparison_there_is_one_bar(bars):
    both = bars.bar_rects(0)[1].width()
    bars.set_rows(ROWS, compares=False)
    before, after = bars.bar_rects(0)
    assert before.isEmpty()
    assert after.width() > both  # the room of the column before
    assert bars.accessibleDescription() == "␣Tom 34.0 %, ␣Ben 100.0 %"


def test_a_screen_reader_hears_both_values(bars):
    assert bars.accessibleDescription() == "␣Tom 68.0 % to 34.0 %, ␣Ben 0.0 % to 100.0 %"


def test_its_height_follows_its_rows(bars):
    two = bars.sizeHint().height()
    bars.set_rows(ROWS * 2)
    assert bars.sizeHint().height() > 1.5 * two
