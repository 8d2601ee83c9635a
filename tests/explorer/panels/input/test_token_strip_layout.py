"""Chips on lines, arcs in gutters."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPointF, QRectF

from attention_explorer.panels.input.token_strip import Spacing, StripLayout, flow, flow_height, line_count

widths = st.lists(st.floats(10, 220), min_size=1, max_size=80)


def text_of(chip: QRectF) -> QRectF:
    """The part of a chip that an arc must keep clear of: all but its frame."""
    return chip.adjusted(1, 2, -1, -1)


def points_along(layout: StripLayout, source: int, target: int) -> list[QPointF]:
    path = layout.arc(source, target)
    return [path.pointAtPercent(step / 200) for step in range(201)]


@given(widths, st.floats(120, 1500))
def test_chips_keep_their_order_and_do_not_overlap(chip_widths, available):
    layout = flow(chip_widths, available, 30)
    assert len(layout.chips) == len(chip_widths)
    assert [chip for first, end in layout.lines for chip in range(first, end)] == list(range(len(chip_widths)))
    for before, after in pairwise(layout.chips):
        assert after.left() > before.right() or after.top() >= before.bottom()
    assert all(chip.right() <= available and chip.bottom() <= layout.height for chip in layout.chips)


@given(widths, st.floats(260, 1500), st.data())
def test_an_arc_joins_two_chips_and_crosses_no_text(chip_widths, available, data):
    layout = flow(chip_widths, available, 30)
    last = len(chip_widths) - 1
    source, target = data.draw(st.integers(0, last)), data.draw(st.integers(0, last))
    points = points_along(layout, source, target)
    for end, chip in ((points[0], layout.chips[source]), (points[-1], layout.chips[target])):
        assert end.y() == pytest.approx(chip.top(), abs=0.01)
        assert chip.left() - 0.01 <= end.x() <= chip.right() + 0.01
    assert not any(text_of(chip).contains(point) for chip in layout.chips for point in points)
    assert all(-0.01 <= point.x() <= available + 0.01 and point.y() >= -0.01 for point in points)


def test_one_line_has_the_tall_gutter():
    assert flow([50, 60], 400, 30).gutter > flow([300, 300], 400, 30).gutter


def test_farther_arcs_rise_higher_within_the_gutter():
    layout = flow([40] * 14, 1000, 30)
    near = layout.arc(13, 12).boundingRect().height()
    far = layout.arc(13, 0).boundingRect().height()
    assert near < far <= layout.gutter


def test_a_chip_is_found_under_a_point_and_gaps_are_not():
    layout = flow([50, 60, 70], 150, 30)
    for index, chip in enumerate(layout.chips):
        assert layout.chip_at(chip.center()) == index
    first = layout.chips[0]
    assert layout.chip_at(QPointF(first.right() + 3, first.center().y())) == -1
    assert layout.chip_at(QPointF(first.center().x(), first.top() - 5)) == -1


def test_the_neighbour_is_the_nearest_on_the_next_line():
    layout = flow([50] * 9, 32 + 3 * 50 + 2 * 6, 30)
    assert [layout.neighbour(4, step) for step in (-1, 1)] == [1, 7]
    assert layout.neighbour(1, -1) == 1
    assert layout.neighbour(8, 1) == 8


def test_no_tokens_take_one_empty_line():
    layout = flow([], 300, 30)
    assert len(layout.chips) == 0
    assert layout.height > 30


@given(widths, st.floats(120, 1500))
def test_lines_are_counted_as_they_are_made(chip_widths, available):
    layout = flow(chip_widths, available, 30)
    assert line_count(chip_widths, available, Spacing()) == len(layout.lines)
    assert flow_height(len(layout.lines), 30, Spacing()) == layout.height


@given(widths, st.floats(120, 1500))
def test_a_line_is_as_full_as_it_can_be(chip_widths, available):
    layout = flow(chip_widths, available, 30)
    limit, gap = available - 2 * Spacing().margin, Spacing().gap
    sizes = [min(width, limit) for width in chip_widths]
    for (first, end), (_, following) in pairwise([*layout.lines, (0, 0)]):
        used = sum(sizes[first:end]) + gap * (end - first - 1)
        assert used <= limit + 1e-6 or end == first + 1
        if following:
            assert used + gap + sizes[end] > limit - 1e-6


@given(widths, st.floats(120, 1500), st.floats(0, 3000), st.floats(0, 600))
def test_no_line_within_an_area_is_left_out(chip_widths, available, top, height):
    layout = flow(chip_widths, available, 30)
    area = QRectF(0, top, available, height)
    within = layout.lines_within(area)
    for line in range(len(layout.lines)):
        if layout.line_rect(line).intersects(area):
            assert line in within
