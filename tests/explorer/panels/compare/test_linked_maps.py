"""Three maps over the same places: 0 is neutral, what is masked or not there is not 0, and they move together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint
from pytestqt.qtbot import QtBot

from attention_explorer.look.colour_maps import diverging, sequential
from attention_explorer.panels.compare.linked_maps import DIFFERENCE, A, B, LinkedMaps, MapWords
from attention_explorer.panels.compare.places import words_of
from attention_models.protocol.values import Tile
from tests.explorer.panels.compare.two_runs import maps, of_one_run, view
from tests.explorer.real_window import click
from tests.explorer.widgets.pictures import rendered, rgb


@pytest.fixture
def linked(qtbot: QtBot) -> LinkedMaps:
    rows, columns = words_of(view(), "queries"), words_of(view(), "keys")
    words = [MapWords(rows.a, columns.a), MapWords(rows.b, columns.b), MapWords(rows.both, columns.both)]
    linked = LinkedMaps()
    for widget in (*linked.maps, *linked.bars):
        qtbot.addWidget(widget)
    for one in linked.maps:
        one.resize(420, 380)
    linked.show_maps(maps(), words, "one", sequential())
    return linked


def colour(linked: LinkedMaps, which: int, query: int, key: int) -> tuple[int, int, int]:
    one = linked.maps[which]
    return rgb(rendered(one).pixel(one.cell_rect(query, key).center().toPoint() + QPoint(7, 7)))


def test_the_difference_is_symmetric_about_a_neutral_zero(linked: LinkedMaps) -> None:
    assert linked.maps[DIFFERENCE].colour_span == (-0.25, 0.25)
    assert linked.bars[1].toolTip() == "A − B from −0.250 to 0.250"
    table = diverging()
    assert colour(linked, DIFFERENCE, 2, 1) == tuple(table[255])
    assert colour(linked, DIFFERENCE, 2, 0) == tuple(table[0])
    middle = [tuple(table[i]) for i in (127, 128)]
    assert colour(linked, DIFFERENCE, 0, 0) in middle


def test_what_is_masked_or_only_in_one_is_no_zero(linked: LinkedMaps) -> None:
    zero = colour(linked, DIFFERENCE, 0, 0)
    for cell in ((0, 2), (3, 0), (2, 3)):
        one = linked.maps[DIFFERENCE]
        assert colour(linked, DIFFERENCE, *cell) != zero
        assert one.readout(*cell).rsplit(" ", 2)[-1] in ("masked", "both")
    assert linked.maps[A].readout(3, 0) == "“·” and “Tom”: not in A"
    assert linked.maps[DIFFERENCE].readout(3, 0) == "“away” and “Tom”: not in both"
    assert linked.maps[B].readout(3, 0).endswith("0.250")
    assert linked.maps[DIFFERENCE].readout(2, 1) == "“home | far” looks at “ran”: A − B 0.250"


def test_both_maps_of_weights_are_coloured_alike(linked: LinkedMaps) -> None:
    assert linked.maps[A].colour_span == linked.maps[B].colour_span == (0.0, 1.0)
    assert linked.bars[0].toolTip() == "weight from 0 to 1.000"


def test_equal_states_have_a_range_all_the_same(linked: LinkedMaps) -> None:
    same = of_one_run().maps
    assert same is not None
    words = [MapWords(one.labels[0], one.labels[1]) for one in linked.maps]
    linked.show_maps(same, words, "one", sequential())
    assert linked.maps[DIFFERENCE].colour_span == (-1.0, 1.0)
    assert colour(linked, DIFFERENCE, 2, 1) in [tuple(diverging()[i]) for i in (127, 128)]


def test_a_click_on_one_frames_the_place_on_all(linked: LinkedMaps) -> None:
    chosen: list[tuple[int, int]] = []
    linked.place_selected.connect(lambda *place: chosen.append(place))
    one = linked.maps[B]
    click(one, one.cell_rect(2, 1).center().toPoint())
    assert chosen == [(2, 1)]
    assert [each.selection for each in linked.maps] == [(2, 1)] * 3


def test_zooming_one_zooms_all_to_the_same_places(linked: LinkedMaps) -> None:
    words, picture = [str(i) for i in range(40)], np.eye(40, dtype=np.float32)
    nowhere = np.zeros((40, 40), bool)
    larger = replace(maps(), a=picture, b=picture, difference=0 * picture, masked_a=nowhere, masked_b=nowhere)
    linked.show_maps(larger, [MapWords(words, words)] * 3, "larger", sequential())
    linked.maps[DIFFERENCE].zoom_by(2.0)
    linked.maps[A].set_view(linked.maps[A].view.panned(-30, -20))
    for each in linked.maps:
        assert each.view.place == pytest.approx(linked.maps[A].view.place, abs=1e-6)
    assert linked.maps[B].view.zoom == pytest.approx(2.0)


def test_a_long_map_comes_in_tiles(linked: LinkedMaps) -> None:
    words = [str(i) for i in range(2048)]
    side = 256
    picture = np.linspace(0, 1, side * side, dtype=np.float32).reshape(side, side)
    nowhere = np.zeros((side, side), bool)
    nowhere[0, 0] = True
    long = replace(
        maps(),
        a=picture,
        b=picture,
        difference=-picture,
        masked_a=nowhere,
        masked_b=nowhere,
        tile=Tile(3, 0, 0),
        cell=8,
    )
    linked.show_maps(long, [MapWords(words, words)] * 3, "long", sequential())
    assert linked.is_tiled
    assert linked.missing() == []
    low, high = linked.maps[DIFFERENCE].colour_span
    assert (low, high) == (-1.0, 1.0)
    linked.maps[A].set_view(linked.maps[A].view.zoomed(8.0, 200, 200))
    assert linked.missing()[0].level < 3
