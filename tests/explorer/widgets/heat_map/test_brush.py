"""Painting upon a heat map, by pointer and keyboard."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, Qt

from attention_explorer.widgets.heat_map.gestures import cells_between
from attention_explorer.widgets.heat_map.heat_map import HeatMap
from tests.explorer.widgets.pictures import rendered
from tests.explorer.widgets.pointer import move_pointer

LEFT = Qt.MouseButton.LeftButton
TOKENS = ["⟨start⟩", "Tom", "and", "Anna", "went", "to"]


@pytest.fixture
def heat_map(qtbot) -> HeatMap:
    widget = HeatMap()
    qtbot.addWidget(widget)
    widget.resize(500, 440)
    widget.set_values(np.full((6, 6), 0.5, np.float32), None, TOKENS, TOKENS, 0.0, 1.0)
    widget.show()
    return widget


@pytest.fixture
def strokes(heat_map) -> list[tuple[tuple[int, int], ...]]:
    collected: list[tuple[tuple[int, int], ...]] = []
    heat_map.stroke_painted.connect(collected.append)
    return collected


def centre(heat_map: HeatMap, query: int, key: int) -> QPoint:
    return heat_map.cell_rect(query, key).center().toPoint()


def test_without_the_brush_a_click_selects(heat_map, strokes, qtbot):
    qtbot.mouseClick(heat_map, LEFT, pos=centre(heat_map, 3, 2))
    assert heat_map.selection == (3, 2)
    assert strokes == []


def test_a_drag_is_one_stroke_over_all_cells_on_the_way(heat_map, strokes, qtbot):
    heat_map.set_brush("block")
    qtbot.mousePress(heat_map, LEFT, pos=centre(heat_map, 2, 0))
    move_pointer(heat_map, centre(heat_map, 2, 3), LEFT)
    assert heat_map.stroke == ((2, 0), (2, 1), (2, 2), (2, 3))
    move_pointer(heat_map, centre(heat_map, 4, 3), LEFT)
    move_pointer(heat_map, QPoint(2, 2), LEFT)  # off the map: nothing is added
    qtbot.mouseRelease(heat_map, LEFT, pos=QPoint(2, 2))
    assert strokes == [((2, 0), (2, 1), (2, 2), (2, 3), (3, 3), (4, 3))]
    assert heat_map.stroke == ()
    assert heat_map.selection == (-1, -1)


def test_a_stroke_begins_on_the_map(heat_map, strokes, qtbot):
    heat_map.set_brush("block")
    qtbot.mouseClick(heat_map, LEFT, pos=QPoint(2, 2))
    assert strokes == []


def test_two_quick_dabs_are_two_strokes(heat_map, strokes, qtbot):
    heat_map.set_brush("allow")
    where = centre(heat_map, 1, 1)
    qtbot.mouseClick(heat_map, LEFT, pos=where)
    qtbot.mouseDClick(heat_map, LEFT, pos=where)
    qtbot.mouseRelease(heat_map, LEFT, pos=where)
    assert strokes[0] == ((1, 1),)
    assert set(strokes) == {((1, 1),)}
    assert len(strokes) >= 2


def test_the_middle_button_still_pans(heat_map, strokes, qtbot):
    heat_map.set_brush("block")
    heat_map.zoom_by(2)
    before = heat_map.view
    qtbot.mousePress(heat_map, Qt.MouseButton.MiddleButton, pos=centre(heat_map, 3, 3))
    move_pointer(heat_map, centre(heat_map, 3, 3) + QPoint(40, 30), Qt.MouseButton.MiddleButton)
    qtbot.mouseRelease(heat_map, Qt.MouseButton.MiddleButton, pos=centre(heat_map, 3, 3))
    assert heat_map.view != before
    assert strokes == []


def test_keys_paint_the_selected_cell_and_lay_the_brush_down(heat_map, strokes, qtbot):
    heat_map.set_selection(3, 1)
    qtbot.keyClick(heat_map, Qt.Key.Key_Space)
    assert strokes == []
    heat_map.set_brush("block")
    qtbot.keyClick(heat_map, Qt.Key.Key_Space)
    qtbot.keyClick(heat_map, Qt.Key.Key_Right)
    qtbot.keyClick(heat_map, Qt.Key.Key_Return)
    assert strokes == [((3, 1),), ((3, 2),)]
    with qtbot.waitSignal(heat_map.brush_dropped):
        qtbot.keyClick(heat_map, Qt.Key.Key_Escape)


def test_escape_drops_a_stroke_that_is_not_finished(heat_map, strokes, qtbot):
    heat_map.set_brush("block")
    qtbot.mousePress(heat_map, LEFT, pos=centre(heat_map, 2, 0))
    with qtbot.assertNotEmitted(heat_map.brush_dropped):
        qtbot.keyClick(heat_map, Qt.Key.Key_Escape)
    qtbot.mouseRelease(heat_map, LEFT, pos=centre(heat_map, 2, 0))
    assert strokes == []


def test_painted_cells_show_at_once(heat_map, qtbot):
    plain = rendered(heat_map)
    block, allow, other = (centre(heat_map, *cell) for cell in ((4, 1), (1, 4), (5, 5)))
    beside = QPoint(18, 0)
    heat_map.set_painted(((4, 1, False), (1, 4, True)))
    painted = rendered(heat_map)
    assert painted.pixelColor(block) != plain.pixelColor(block)
    assert painted.pixelColor(block + beside) != plain.pixelColor(block + beside)  # it loses its colour
    assert painted.pixelColor(allow) != plain.pixelColor(allow)
    assert painted.pixelColor(allow + beside) == plain.pixelColor(allow + beside)
    assert painted.pixelColor(other) == plain.pixelColor(other)
    heat_map.set_painted(())
    heat_map.set_brush("block")
    qtbot.mousePress(heat_map, LEFT, pos=block)
    assert rendered(heat_map).pixelColor(block) == painted.pixelColor(block)  # also before the stroke ends


@given(*(st.tuples(st.integers(0, 30), st.integers(0, 30)) for _ in range(2)))
def test_no_cell_on_the_way_is_skipped(start, end):
    cells = cells_between(start, end)
    assert (cells[0], cells[-1]) == (start, end)
    for one, next_ in pairwise(cells):
        assert max(abs(one[0] - next_[0]), abs(one[1] - next_[1])) == 1
