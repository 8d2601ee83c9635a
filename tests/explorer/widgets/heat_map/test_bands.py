"""Maps of two texts: the blocks are marked, and one of them is shown alone."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest

from attention_explorer.widgets.heat_map.bands import Band, Bands, caption
from attention_explorer.widgets.heat_map.heat_map import HeatMap
from tests.explorer.widgets.pictures import rendered

BANDS = (Band("A", range(3)), Band("B", range(3, 8)))
LABELS = list("abcdefgh")


@pytest.fixture
def heat_map(qtbot) -> HeatMap:
    widget = HeatMap()
    qtbot.addWidget(widget)
    widget.resize(500, 440)
    widget.set_values(np.full((8, 8), 0.125, np.float32), None, LABELS, LABELS, 0.0, 1.0)
    return widget


def changed_rows_and_columns(heat_map: HeatMap, bands: Bands) -> tuple[set[int], set[int]]:
    """Where dashed lines cross the middle of cells: the rows above and the columns left of which something changed."""
    before = rendered(heat_map)
    heat_map.set_bands(bands)
    after = rendered(heat_map)
    tops = {q: heat_map.cell_rect(q, 0).topLeft().toPoint() for q in range(1, 8)}
    lefts = {k: heat_map.cell_rect(0, k).bottomLeft().toPoint() for k in range(1, 8)}
    rows = {q for q, corner in tops.items() if _differs(before, after, corner, across=True)}
    columns = {k for k, corner in lefts.items() if _differs(before, after, corner, across=False)}
    return rows, columns


def _differs(before: QImage, after: QImage, corner: QPoint, across: bool) -> bool:
    steps = (QPoint(i, 0) if across else QPoint(0, -i) for i in range(4, 16))
    return all(before.pixel(corner + step) != after.pixel(corner + step) for step in steps)


def test_lines_stand_where_one_text_ends(heat_map) -> None:
    assert changed_rows_and_columns(heat_map, Bands(BANDS, BANDS)) == ({3}, {3})


def test_an_axis_of_one_text_has_no_line(heat_map) -> None:
    assert changed_rows_and_columns(heat_map, Bands((), BANDS)) == (set(), {3})


def test_a_text_that_ends_before_the_map_does_has_a_line_there_too(heat_map) -> None:
    bands = (Band("A", range(3)), Band("B", range(3, 7)))
    assert changed_rows_and_columns(heat_map, Bands(bands, bands)) == ({3, 7}, {3, 7})


@pytest.mark.parametrize(("row", "column", "said"), [("A", "B", "A → B"), ("", "B", "→ B"), ("A", "", "A →")])
def test_captions_say_which_text_attends_to_which(row: str, column: str, said: str) -> None:
    assert caption(row, column) == said


def test_a_block_is_shown_alone_and_keeps_its_cells_places(heat_map, qtbot) -> None:
    heat_map.set_bands(Bands(BANDS, BANDS))
    heat_map.show_block((range(3), range(3, 8)))
    rows, columns = heat_map.view.rows, heat_map.view.columns
    assert (rows.visible(), columns.visible()) == (range(3), range(3, 8))
    chosen = []
    heat_map.cell_selected.connect(lambda *cell: chosen.append(cell))
    QTest.mouseClick(heat_map, Qt.MouseButton.LeftButton, pos=heat_map.cell_rect(1, 5).center().toPoint())
    assert chosen == [(1, 5)]
    heat_map.show_block(None)
    assert (heat_map.view.rows.visible(), heat_map.view.columns.visible()) == (range(8), range(8))


def test_keys_stay_within_the_block_and_0_shows_all_of_it(heat_map) -> None:
    heat_map.show_block((range(3, 8), range(3)))
    heat_map.set_selection(3, 2)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Up):
        QTest.keyClick(heat_map, key)
        assert heat_map.selection == (3, 2)
    QTest.keyClick(heat_map, Qt.Key.Key_Down)
    assert heat_map.selection == (4, 2)
    for _ in range(6):
        QTest.keyClick(heat_map, Qt.Key.Key_Plus)
    for _ in range(9):
        QTest.keyClick(heat_map, Qt.Key.Key_Up)
        QTest.keyClick(heat_map, Qt.Key.Key_Left)
    assert heat_map.selection == (3, 0)
    assert set(heat_map.view.rows.visible()) <= set(range(3, 8))
    QTest.keyClick(heat_map, Qt.Key.Key_0)
    assert (heat_map.view.rows.visible(), heat_map.view.columns.visible()) == (range(3, 8), range(3))


def test_what_the_colours_show_is_that_of_the_block(heat_map) -> None:
    values = np.zeros((8, 8), np.float32)
    values[:3, 3:] = 1.0
    heat_map.set_values(values, None, LABELS, LABELS, 0.0, 1.0)
    colours = []
    for block in ((range(3), range(3)), (range(3), range(3, 8))):
        heat_map.show_block(block)
        image = rendered(heat_map)
        cells = [(q, k) for q in block[0] for k in block[1]]
        colours.append({image.pixelColor(heat_map.cell_rect(*cell).center().toPoint()).name() for cell in cells})
    assert [len(shown) for shown in colours] == [1, 1]
    assert colours[0] != colours[1]


def test_a_block_of_a_map_in_tiles_asks_for_its_own(heat_map) -> None:
    names = [str(i) for i in range(2000)]
    heat_map.set_map("map", names, names)
    heat_map.show_block((range(200), range(1500, 1800)))
    tiles = heat_map.missing()[1:]  # beside the overview
    assert tiles
    for tile in tiles:
        assert tile.rows(2000).start < 200
        assert tile.columns(2000).start < 1800
        assert tile.columns(2000).stop > 1500
