"""The geometry of a heat map."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_explorer.widgets.heat_map.view import (
    ASPECT,
    LARGEST_FITTED,
    SMALLEST_BAND,
    Axis,
    MapView,
    label_centre,
    labelled,
)

counts = st.integers(1, 3000)
factors = st.floats(0.05, 50)


def fitted(rows: int, columns: int) -> MapView:
    return MapView.fit(rows, columns, 40, 30, 500, 400)


@given(counts, counts)
def test_the_whole_map_fits_its_room(rows, columns):
    view = fitted(rows, columns)
    assert view.columns.origin >= 39.5
    assert view.columns.end <= 540.5
    assert view.rows.end <= 430.5
    assert list(view.rows.visible()) == list(range(rows))
    assert list(view.columns.visible()) == list(range(columns))


def test_cells_keep_near_the_square():
    view = fitted(14, 14)
    assert view.rows.size <= view.columns.size <= ASPECT * view.rows.size


def test_one_row_of_many_keys_is_still_a_band():
    assert fitted(1, 300).rows.size == SMALLEST_BAND


def test_a_single_cell_does_not_fill_a_wall():
    assert fitted(1, 1).columns.size == LARGEST_FITTED


@given(counts, counts, factors, st.floats(0, 1), st.floats(0, 1))
def test_every_visible_cell_is_found_at_its_centre(rows, columns, factor, across, down):
    view = fitted(rows, columns)
    view = view.zoomed(factor, 40 + across * 500, 30 + down * 400)
    for axis in (view.rows, view.columns):
        for cell in (axis.visible()[0], axis.visible()[-1]):
            centre = axis.centre(cell)
            if axis.origin <= centre < axis.end:
                assert axis.cell_at(centre) == cell


@given(st.integers(20, 2000), st.floats(1.1, 8), st.floats(0.1, 0.9))
def test_the_point_under_the_pointer_stays_there(count, factor, part):
    view = fitted(count, count)
    x = view.columns.origin + part * view.columns.extent
    before = view.columns.offset + (x - view.columns.origin) / view.columns.size
    after_view = view.zoomed(factor, x, 200)
    axis = after_view.columns
    after = axis.offset + (x - axis.origin) / axis.size
    at_an_end = axis.offset == 0 or axis.offset + axis.extent / axis.size == pytest.approx(count)
    assert at_an_end or after == pytest.approx(before, abs=1e-6 * count)


@given(counts, factors, st.floats(-1e5, 1e5), st.floats(-1e5, 1e5))
def test_panning_never_leaves_the_map(count, factor, right, down):
    view = fitted(count, count).zoomed(factor, 200, 200).panned(right, down)
    for axis in (view.rows, view.columns):
        assert axis.offset >= 0
        assert axis.offset + axis.extent / axis.size <= count + 1e-6


def test_zooming_out_ends_at_the_whole_map():
    view = fitted(300, 300)
    assert view.zoomed(5, 100, 100).zoomed(0.0, 0, 0) == view


def test_zooming_in_ends():
    view = fitted(300, 300).zoomed(1e9, 100, 100)
    assert view.zoom == view.largest_zoom
    assert view.zoomed(2, 100, 100) == view


@given(st.integers(50, 2000), st.floats(2, 20), st.data())
def test_showing_a_cell_brings_it_wholly_in(count, factor, data):
    view = fitted(count, count).zoomed(factor, 100, 100)
    row, column = data.draw(st.integers(0, count - 1)), data.draw(st.integers(0, count - 1))
    view = view.showing(row, column)
    for axis, cell in ((view.rows, row), (view.columns, column)):
        assert axis.edge(cell) >= axis.origin - 1e-3
        assert axis.edge(cell + 1) <= axis.end + 1e-3
    assert view.showing(row, column) == view


def test_a_new_room_keeps_zoom_and_first_cells():
    old = fitted(300, 300).zoomed(6, 300, 200)
    new = MapView.fit(300, 300, 40, 30, 700, 600).like(old)
    assert new.zoom == old.zoom
    assert new.columns.offset == pytest.approx(old.columns.offset, abs=0.01)


def test_origins_lie_on_device_pixels():
    view = MapView.fit(7, 7, 40.3, 30.2, 500, 400, pixel=1 / 1.5)
    for axis in (view.rows, view.columns):
        assert axis.origin * 1.5 == pytest.approx(round(axis.origin * 1.5))


@given(st.integers(1, 2000), st.floats(8, 40), st.lists(st.integers(0, 1999), max_size=2))
def test_labels_never_overlap(count, spacing, wanted):
    axis = Axis.fit(count, range(count), 0, 400, 400 / count)
    cells = labelled(axis, spacing, wanted)
    gaps = [(later - earlier) * axis.size for earlier, later in pairwise(cells)]
    assert all(gap >= spacing - 1e-6 for gap in gaps)


def test_the_first_emphasised_cell_is_always_labelled():
    axis = Axis.fit(1000, range(1000), 0, 400, 0.4)
    assert 503 in labelled(axis, 15, [503, 504])
    assert 504 not in labelled(axis, 15, [503, 504])


def test_steps_between_labels_are_round():
    axis = Axis.fit(300, range(300), 0, 400, 4 / 3)
    assert labelled(axis, 20)[:3] == [0, 20, 40]


@given(
    st.integers(2, 300), st.floats(8, 40), st.floats(1, 30), st.floats(0, 1), st.lists(st.integers(0, 299), max_size=2)
)
def test_labels_of_a_zoomed_map_neither_overlap_nor_leave_it(count, spacing, zoom, share, wanted):
    axis = Axis.fit(count, range(count), 50, 400, 400 / count).resized(max(400 / count * zoom, spacing), 250)
    axis = axis.panned(-share * count * axis.size)
    cells = labelled(axis, spacing, [cell for cell in wanted if cell < count])
    places = [label_centre(axis, cell, spacing) for cell in cells]
    assert all(later - earlier >= spacing - 1e-6 for earlier, later in pairwise(places))
    assert all(axis.origin - 1e-6 <= place - spacing / 2 for place in places)
    assert all(place + spacing / 2 <= axis.end + 1e-6 for place in places)
