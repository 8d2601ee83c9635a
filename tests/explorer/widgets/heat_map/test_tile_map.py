"""A map in tiles: what it asks for, what it shows meanwhile, and what it says of a cell."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor

from attention_explorer.widgets import cell_image
from attention_explorer.widgets.heat_map.heat_map import HeatMap
from attention_explorer.widgets.heat_map.values import Sight, TileCache, ancestor, composed, level_for
from attention_explorer.widgets.number_text import value_text
from attention_models.protocol.values import TILE, Tile
from tests.explorer.widgets.pictures import rendered
from tests.explorer.widgets.pointer import move_pointer

COUNT = 2000
WORDS = [f"w{i}" for i in range(COUNT)]
TOP = Tile(3, 0, 0)
NAME = ("a head",)


def weight(query: int, key: int) -> float:
    """Of the made-up map: causal, with a band below the diagonal."""
    return 0.5 if query - key == 10 else 0.01


def cut(tile: Tile) -> np.ndarray:
    """The largest of each square of the made-up map, NaN where all of it is in the future."""
    queries = np.arange(COUNT)[:, None]
    whole = np.where(queries - np.arange(COUNT) == 10, 0.5, 0.01).astype(np.float32)
    whole[queries < np.arange(COUNT)] = -1
    part = whole[tile.rows(COUNT), tile.columns(COUNT)]
    pad = tuple((0, -size % tile.cell) for size in part.shape)
    part = np.pad(part, pad, constant_values=-1)
    image: np.ndarray = part.reshape(part.shape[0] // tile.cell, tile.cell, -1, tile.cell).max(axis=(1, 3))
    image[image < 0] = np.nan
    return image


@pytest.fixture
def tile_map(qtbot) -> HeatMap:
    widget = HeatMap()
    qtbot.addWidget(widget)
    widget.resize(500, 460)
    widget.set_map(NAME, WORDS, WORDS)
    widget.show()
    return widget


def fill(widget: HeatMap) -> int:
    """Bring every tile that is missing; how many those were."""
    brought = 0
    while missing := widget.missing():
        widget.add_tile(NAME, missing[0], cut(missing[0]))
        brought += 1
    return brought


def pixel(widget: HeatMap, query: int, key: int) -> QColor:
    return rendered(widget).pixelColor(widget.cell_rect(query, key).center().toPoint())


# --------------------------------------------------------------------------- what it asks for


def test_the_whole_map_comes_first(tile_map):
    assert tile_map.missing()[0] == TOP
    assert fill(tile_map) == 1 or tile_map.level < TOP.level


def test_zoomed_in_it_asks_for_what_shows_and_no_more(tile_map):
    fill(tile_map)
    tile_map.go_to_cell(1500, 1490)
    assert tile_map.level == 0
    wanted = tile_map.missing()
    assert wanted[0] == Tile(0, 1500 // TILE, 1490 // TILE)
    assert len(wanted) <= 4
    fill(tile_map)
    assert tile_map.missing() == []


def test_the_detail_follows_the_zoom(tile_map):
    levels = []
    for _ in range(30):
        levels.append(tile_map.level)
        tile_map.zoom_by(1.4)
    assert levels == sorted(levels, reverse=True)
    assert levels[0] > 0
    assert levels[-1] == 0
    for level in set(levels):  # a square takes a pixel or more
        assert level_for(1.0 / (1 << level), (COUNT, COUNT)) == level
    assert level_for(0.9, (COUNT, COUNT)) == 1
    assert level_for(1e-9, (COUNT, COUNT)) == TOP.level


def test_a_view_that_moves_says_so(tile_map, qtbot):
    tile_map.zoom_by(8)
    with qtbot.waitSignal(tile_map.view_changed):
        tile_map.centre_on(0.9, 0.1)
    assert tile_map.part().center().x() == pytest.approx(0.9, abs=0.01)
    assert tile_map.part().center().y() == pytest.approx(0.1, abs=0.01)
    tile_map.centre_on(5.0, -5.0)  # no farther than the ends
    assert tile_map.part().right() == pytest.approx(1.0, abs=1e-6)
    assert tile_map.part().top() == 0


# --------------------------------------------------------------------------- what it shows


def test_a_missing_tile_is_shown_coarsely_at_once(tile_map):
    tile_map.add_tile(NAME, TOP, cut(TOP))
    tile_map.go_to_cell(1000, 990)
    assert tile_map.missing()
    coarse = pixel(tile_map, 1000, 990)
    assert pixel(tile_map, 1003, 990) == coarse  # the square of 8 x 8 about the strong cell
    fill(tile_map)
    sharp = pixel(tile_map, 1000, 990)
    assert sharp == coarse != pixel(tile_map, 1003, 990)


def test_the_small_picture_is_shown_until_there_is_a_tile(tile_map):
    before = rendered(tile_map)
    tile_map.set_backdrop(np.full((40, 40), 0.3, np.float32))
    assert tile_map.overview() is not None
    assert pixel(tile_map, 1000, 500) != before.pixelColor(tile_map.cell_rect(1000, 500).center().toPoint())
    tile_map.add_tile(NAME, TOP, cut(TOP))
    np.testing.assert_array_equal(tile_map.overview(), cut(TOP))


def test_colours_reach_to_the_largest_weight_of_the_head(tile_map):
    fill(tile_map)
    assert tile_map.high == pytest.approx(0.5)
    tile_map.go_to_cell(1000, 500)  # nothing strong there
    fill(tile_map)
    assert tile_map.high == pytest.approx(0.5)


def test_colours_of_means_follow_what_shows(tile_map):
    tile_map.set_map(NAME, WORDS, WORDS, "mean")
    tile_map.add_tile(NAME, TOP, np.full((250, 250), 0.02, np.float32))
    tile_map.go_to_cell(1000, 500)
    for tile in tile_map.missing():
        tile_map.add_tile(NAME, tile, np.full((256, 256), 0.2, np.float32))
    assert tile_map.high == pytest.approx(0.2)
    tile_map.reset_view()
    while tile_map.missing():
        tile_map.add_tile(NAME, tile_map.missing()[0], np.full((256, 256), 0.02, np.float32))
    assert tile_map.high == pytest.approx(0.02)


def test_tiles_of_another_map_are_kept_but_not_shown(tile_map):
    tile_map.add_tile(("another",), TOP, np.ones((250, 250), np.float32))
    assert tile_map.overview() is None
    tile_map.set_map(("another",), WORDS, WORDS)
    assert tile_map.overview() is not None
    assert TOP not in tile_map.missing()


def test_a_whole_map_takes_the_place_of_tiles(tile_map):
    fill(tile_map)
    tile_map.set_values(np.eye(4, dtype=np.float32), None, WORDS[:4], WORDS[:4], 0.0, 1.0)
    assert not tile_map.is_tiled
    assert tile_map.missing() == []
    assert tile_map.cache.nbytes == 0
    assert tile_map.readout(1, 1) == "“w1” looks at “w1”: 1.000"
    tile_map.set_values(None, None, (), (), 0.0, 1.0)
    assert not tile_map.is_tiled
    assert tile_map.value_at(0, 0) is None


# --------------------------------------------------------------------------- what it says


def test_the_value_is_exact_where_cells_show_and_else_said_to_be_pooled(tile_map):
    assert tile_map.readout(1000, 990) == ""
    tile_map.add_tile(NAME, TOP, cut(TOP))
    assert tile_map.readout(1000, 991) == "largest of 8 × 8 around “w1000”, “w991”: 0.500"
    assert tile_map.readout(3, 1500) == "8 × 8 around “w3”, “w1500”: all masked"
    tile_map.go_to_cell(1000, 990)
    fill(tile_map)
    assert tile_map.readout(1000, 990) == "“w1000” looks at “w990”: 0.500"
    assert tile_map.readout(1000, 991) == "“w1000” looks at “w991”: 0.01000"
    assert tile_map.readout(1000, 1001) == "“w1000” cannot look at “w1001”: masked"
    assert tile_map.value_at(1000, 990) == (0.5, 1)
    assert tile_map.value_at(-1, 0) is None


def test_what_a_square_shows_is_called_what_it_is(tile_map):
    tile_map.value_name = "weight / max"
    tile_map.add_tile(NAME, TOP, cut(TOP))
    assert tile_map.readout(1000, 991) == "largest weight / max of 8 × 8 around “w1000”, “w991”: 0.500"


def test_pointer_and_keys_work_as_on_a_small_map(tile_map, qtbot):
    fill(tile_map)
    tile_map.go_to_cell(1000, 990)
    with qtbot.waitSignal(tile_map.cell_selected) as caught:
        qtbot.mouseClick(tile_map, Qt.MouseButton.LeftButton, pos=tile_map.cell_rect(1001, 991).center().toPoint())
    assert caught.args == [1001, 991]
    qtbot.keyClick(tile_map, Qt.Key.Key_Down)
    assert tile_map.selection == (1002, 991)
    with qtbot.waitSignal(tile_map.hovered) as pointed:
        move_pointer(tile_map, tile_map.cell_rect(1000, 990).center().toPoint())
    assert pointed.args == [1000, 990]
    before = tile_map.part()
    start = tile_map.cell_rect(1000, 990).center().toPoint()
    qtbot.mousePress(tile_map, Qt.MouseButton.LeftButton, pos=start)
    move_pointer(tile_map, start + QPoint(60, 40), Qt.MouseButton.LeftButton)
    qtbot.mouseRelease(tile_map, Qt.MouseButton.LeftButton, pos=start + QPoint(60, 40))
    assert tile_map.part().left() < before.left()
    assert tile_map.part().top() < before.top()


# --------------------------------------------------------------------------- what it remembers


def test_what_was_looked_at_longest_ago_goes_first():
    picture = np.zeros((TILE, TILE), np.float32)
    room = 5 * TILE * TILE
    cache = TileCache(3 * room)
    tiles = [Tile(0, 0, i) for i in range(4)]
    for tile in tiles[:3]:
        cache.put("a", tile, picture)
    assert cache.nbytes == 3 * room
    assert cache.values("a", tiles[0]) is picture  # looked at again
    cache.put("a", tiles[3], picture)
    assert [cache.has("a", tile) for tile in tiles] == [True, False, True, True]
    assert cache.nbytes == 3 * room
    cache.put("a", tiles[3], picture)  # a second time: counted once
    assert cache.nbytes == 3 * room
    assert cache.values("b", tiles[0]) is None


def test_maps_that_are_gone_are_forgotten():
    cache, picture = TileCache(), np.zeros((9, 9), np.float32)
    for name in ("a", "b"):
        cache.put(name, TOP, picture)
    cache.keep_only(lambda name: name == "b")
    assert not cache.has("a", TOP)
    assert cache.has("b", TOP)
    assert cache.nbytes == 5 * picture.size


def test_a_tile_larger_than_the_room_is_kept_alone():
    cache = TileCache(10)
    cache.put("a", Tile(0, 0, 0), np.zeros((9, 9), np.float32))
    cache.put("a", Tile(0, 0, 1), np.zeros((9, 9), np.float32))
    assert not cache.has("a", Tile(0, 0, 0))
    assert cache.has("a", Tile(0, 0, 1))


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_pixels_are_the_cells_they_fall_on(level):
    cache = TileCache()
    for row in range(-(-COUNT // (TILE << level))):
        for column in range(-(-COUNT // (TILE << level))):
            cache.put("a", Tile(level, row, column), cut(Tile(level, row, column)))
    rows, columns = np.arange(700, 1300, 3), np.arange(650, 1310, 2)
    pixels = composed(cache, "a", Sight((COUNT, COUNT), rows, columns, level), 0.0, 0.5)
    whole = np.concatenate(
        [
            np.concatenate([cut(Tile(level, row, column)) for column in range(-(-COUNT // (TILE << level)))], axis=1)
            for row in range(-(-COUNT // (TILE << level)))
        ]
    )
    expected = cell_image.encode(whole[np.ix_(rows >> level, columns >> level)], 0.0, 0.5)
    np.testing.assert_array_equal(pixels, expected)


def test_the_finest_that_is_there_stands_in():
    cache = TileCache()
    sight = Sight((COUNT, COUNT), np.arange(900, 1000), np.arange(780, 1000), 0)
    assert not composed(cache, "a", sight, 0.0, 0.5).any()
    cache.put("a", TOP, cut(TOP))
    cache.put("a", Tile(1, 1, 1), cut(Tile(1, 1, 1)))
    pixels = composed(cache, "a", sight, 0.0, 0.5)
    finer = cell_image.encode(cut(Tile(1, 1, 1)), 0.0, 0.5)
    rows, columns = (sight.rows - 512) >> 1, (sight.columns - 512) >> 1
    # tile (3, 3) begins at 768: all that shows lies within level 1's (1, 1)
    np.testing.assert_array_equal(pixels, finer[np.ix_(rows, columns)])
    assert ancestor(Tile(0, 5, 3), 1) == Tile(1, 2, 1)


def test_a_signed_map_is_coloured_as_far_below_as_above(qtbot):
    widget = HeatMap()
    qtbot.addWidget(widget)
    widget.resize(400, 400)
    words = [str(i) for i in range(COUNT)]
    change = np.zeros_like(cut(TOP))
    change[5, 3], change[9, 2] = -0.6, 0.25
    widget.set_map("change", words, words, signed=True)
    widget.add_tile("change", TOP, change)
    assert widget.high == pytest.approx(0.6)
    np.testing.assert_allclose(widget.colour_span, (-0.6, 0.6), atol=1e-6)
    np.testing.assert_allclose(widget.value_at(5 * TOP.cell, 3 * TOP.cell) or (), (-0.6, TOP.cell), atol=1e-6)
    readout = widget.readout(5 * TOP.cell, 3 * TOP.cell)
    assert readout.startswith(f"largest change of {TOP.cell} × {TOP.cell} around ")
    assert readout.endswith("−0.600")
    widget.is_brief = True  # as beside a note that says what a square is
    assert widget.readout(80, 30) == f"around “80”, “30”: {value_text(float(change[80 // TOP.cell, 30 // TOP.cell]))}"
    widget.set_map("before", words, words, high=0.75)
    widget.add_tile("before", TOP, np.abs(change))
    assert widget.colour_span == (0, 0.75)  # as it was told, so that two maps can be compared
