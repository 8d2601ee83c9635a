"""A table of numbers as cells: colours of the scale, clicks, keys, the menu, and numbers that are never cut."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRectF, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QScrollArea

from attention_explorer.look.colour_maps import diverging
from attention_explorer.panels.effects.value_grid import Grid, ValueGrid
from tests.explorer.widgets.pictures import rendered
from tests.explorer.widgets.pointer import move_pointer

VALUES = np.array([[-2.0, 0.0, 2.0], [1.0, np.nan, -1.0]])


@pytest.fixture
def grid(qtbot) -> ValueGrid:
    widget = ValueGrid("Numbers")
    qtbot.addWidget(widget)
    tips = (("a", "b", "c"), ("d", "e", "f"))
    widget.show_grid(Grid(VALUES, ("0", "1"), ("x", "y", "z"), -2.0, 2.0, "layer", "head", tips=tips))
    widget.resize(300, 160)
    widget.show()
    return widget


def test_a_cell_has_the_colour_of_its_number(grid):
    picture = rendered(grid)
    table = diverging()
    for (row, column), place in (((0, 0), 0), ((0, 2), 255)):
        colour = picture.pixelColor(grid.cell_rect(row, column).center().toPoint())
        assert (colour.red(), colour.green(), colour.blue()) == tuple(table[place].tolist())
    zero = picture.pixelColor(grid.cell_rect(0, 1).center().toPoint())
    middle = (table[127].astype(float) + table[128]) / 2
    assert np.abs(np.array([zero.red(), zero.green(), zero.blue()]) - middle).max() <= 1
    empty = picture.pixelColor(grid.cell_rect(1, 1).center().toPoint())
    assert empty.name() == grid.theme.surface_alt


def test_a_click_and_the_arrows_choose_and_an_empty_cell_is_none(grid, qtbot):
    chosen = []
    grid.cell_selected.connect(lambda row, column: chosen.append((row, column)))
    qtbot.mouseClick(grid, Qt.MouseButton.LeftButton, pos=grid.cell_rect(0, 1).center().toPoint())
    qtbot.mouseClick(grid, Qt.MouseButton.LeftButton, pos=grid.cell_rect(1, 1).center().toPoint())
    QTest.keyClick(grid, Qt.Key.Key_Down)  # nothing is there
    QTest.keyClick(grid, Qt.Key.Key_Right)
    QTest.keyClick(grid, Qt.Key.Key_Down)
    assert chosen == [(0, 1), (0, 2), (1, 2)]
    assert grid.selection == (1, 2)
    grid.set_selection(0, 0)
    assert len(chosen) == 3
    grid.set_selection(1, 1)
    assert grid.selection == (-1, -1)


def test_where_nothing_is_chosen_an_arrow_chooses_the_first_cell_that_there_is(grid):
    grid.show_grid(Grid(np.array([[np.nan, np.nan], [np.nan, 2.0]]), ("0", "1"), ("x", "y"), -2.0, 2.0))
    QTest.keyClick(grid, Qt.Key.Key_Left)
    assert grid.selection == (1, 1)


def test_a_cell_that_the_arrows_choose_is_not_left_below_the_labels(qtbot):
    widget, area = ValueGrid("Numbers"), QScrollArea()
    qtbot.addWidget(area)
    names = tuple(map(str, range(40)))
    widget.show_grid(Grid(np.ones((40, 40)), tuple(f"a long name {name}" for name in names), names, 0.0, 1.0))
    area.setWidget(widget)
    area.setWidgetResizable(True)
    area.resize(400, 200)
    area.show()
    widget.set_selection(30, 30)
    for key, turns in ((Qt.Key.Key_Right, 1), (Qt.Key.Key_Left, 20), (Qt.Key.Key_Up, 20)):
        for _ in range(turns):
            QTest.keyClick(widget, key)
            shown = widget.visibleRegion().boundingRect()
            corner, first = shown.topLeft(), widget.cell_rect(0, 0).topLeft()  # labels lie above and left of the first
            free = QRectF(shown).adjusted(first.x(), first.y(), 0, 0)
            assert free.contains(widget.cell_rect(*widget.selection)), (corner, widget.selection)


def test_the_pointer_is_told_and_the_menu_is_of_its_cell(grid):
    seen, asked = [], []
    grid.hovered.connect(lambda row, column: seen.append((row, column)))
    grid.menu_wanted.connect(lambda row, column, _where: asked.append((row, column)))
    where = grid.cell_rect(1, 0).center().toPoint()
    move_pointer(grid, where)
    assert seen[-1] == (1, 0)
    assert "d" in grid.toolTip()
    QApplication.sendEvent(grid, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, where, grid.mapToGlobal(where)))
    assert asked == [(1, 0)]
    grid.set_selection(0, 2)
    QApplication.sendEvent(grid, QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, QPoint(0, 0), QPoint(0, 0)))
    assert asked[-1] == (0, 2)


def test_part_of_a_number_is_not_written(grid):
    """A word may be cut, a number that does not fit is left out."""
    wide, narrow = (("123456789012345678901234", "1", "1"), ("1", "1", "1")), (("", "1", "1"), ("1", "1", "1"))
    pictures = []
    for words in (wide, narrow):
        grid.show_grid(
            Grid(VALUES, ("0", "1"), ("x", "y", "z"), -2.0, 2.0, words=words, least_width=30.0, has_numbers=True)
        )
        pictures.append(rendered(grid).copy(grid.cell_rect(0, 0).toRect()))
    assert pictures[0] == pictures[1]


def test_nothing_to_show_says_so(grid):
    grid.set_empty_text("Nothing has run.")
    grid.show_grid(None)
    assert grid.grid is None
    assert grid.selection == (-1, -1)
    rendered(grid)
