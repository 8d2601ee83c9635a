"""A grid of maps of patches, by mouse and keys."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt

from attention_explorer.look.colour_maps import sequential
from attention_explorer.look.theme import DARK
from attention_explorer.panels.positions.patch_similarity import PatchSimilarity
from tests.explorer.widgets.pictures import rendered, rgb
from tests.explorer.widgets.pointer import move_pointer

ROWS, COLUMNS = 3, 4
ALIKE = np.linspace(-0.5, 1, (ROWS * COLUMNS) ** 2, dtype=np.float32).reshape(ROWS, COLUMNS, ROWS, COLUMNS)


@pytest.fixture
def grid(qtbot) -> PatchSimilarity:
    widget = PatchSimilarity()
    qtbot.addWidget(widget)
    widget.resize(420, widget.heightForWidth(420))
    widget.set_values(ALIKE, -0.5, 1.0, sequential())
    widget.resize(420, widget.heightForWidth(420))
    widget.show()
    return widget


def test_each_map_has_its_patch_s_place_and_its_own_values(grid):
    image = rendered(grid)
    places = [grid.map_rect(patch) for patch in range(ROWS * COLUMNS)]
    assert places[1].left() > places[0].right()
    assert places[COLUMNS].top() > places[0].bottom()
    assert all(grid.rect().contains(place.toAlignedRect()) for place in places)
    table = sequential()
    for patch, other in ((0, 0), (5, 7), (11, 11)):
        row, column = divmod(other, COLUMNS)
        place = places[patch]
        x = place.left() + (column + 0.5) * place.width() / COLUMNS
        y = place.top() + (row + 0.5) * place.height() / ROWS
        value = ALIKE[divmod(patch, COLUMNS)][row, column]
        expected = table[round((float(value) + 0.5) / 1.5 * 255)].astype(int)
        np.testing.assert_allclose(rgb(image.pixelColor(QPoint(round(x), round(y)))), expected, atol=6)


def test_a_click_and_arrow_keys_select_patches(qtbot, grid):
    chosen: list[int] = []
    grid.patch_selected.connect(chosen.append)
    grid.patch_selected.connect(lambda patch: grid.set_selection(patch, 0))
    qtbot.mouseClick(grid, Qt.MouseButton.LeftButton, pos=grid.map_rect(6).center().toPoint())
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Up):
        qtbot.keyClick(grid, key)
    assert chosen == [6, 7, 11, 10, 6]
    value = f"{ALIKE[1, 2, 0, 0]:.3f}"
    assert grid.readout() == f"r2 c3 and r1 c1: {value}"
    assert grid.accessibleDescription() == grid.readout()
    grid.set_selection(-1, -1)  # CLS
    assert grid.readout() == "Choose a patch."
    qtbot.keyClick(grid, Qt.Key.Key_Down)
    assert chosen[-1] == 0


def test_what_is_under_the_pointer_is_said(qtbot, grid):
    pointed: list[tuple[int, int]] = []
    grid.hovered.connect(lambda patch, other: pointed.append((patch, other)))
    corner = grid.map_rect(6).topLeft().toPoint() + QPoint(3, 3)
    move_pointer(grid, corner)
    assert pointed == [(6, 0)]
    assert grid.readout().startswith("r2 c3 and r1 c1: ")
    move_pointer(grid, QPoint(2, 2))
    assert pointed[-1] == (-1, -1)
    assert grid.readout() == "Choose a patch."


def test_nothing_to_show_is_no_picture(qtbot, grid):
    grid.set_values(None, -1.0, 1.0, sequential())
    grid.set_empty_text("No table.")
    grid.set_theme(DARK)
    assert not rendered(grid).isNull()
    assert grid.readout() == ""
    qtbot.keyClick(grid, Qt.Key.Key_Down)
    assert grid.map_rect(0).isEmpty()
