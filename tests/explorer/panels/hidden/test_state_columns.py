"""Columns of colour with bars below."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtWidgets import QApplication

from attention_explorer.look.theme import DARK, LIGHT
from attention_explorer.panels.hidden.state_columns import Band, Lane, StateColumns
from tests.explorer.widgets.pictures import rendered
from tests.explorer.widgets.pointer import move_pointer

LABELS = ["M", "a", "r", "c"]
VALUES = np.array([[-1, -1], [0, 0], [1, 1], [0.5, -0.5]], np.float32)  # (columns, dims)
BARS = np.array([0.0, 0.5, 1.0, -1.0], np.float32)


@pytest.fixture
def columns(qtbot) -> StateColumns:
    widget = StateColumns("States", "key")
    qtbot.addWidget(widget)
    show(widget)
    widget.resize(500, widget.sizeHint().height())
    widget.show()
    return widget


def show(widget: StateColumns, masked: np.ndarray | None = None) -> None:
    lane = Lane("weight", BARS, masked)
    widget.set_columns(LABELS, [Band("state", VALUES)], [lane], 1.0, lambda column: f"column {column}")


def middle(widget: StateColumns, column: int) -> QPoint:
    return widget.column_rect(column).center().toPoint()


def test_colours_tell_sign_and_dimensions_run_down(columns):
    image, band = rendered(columns), columns._band_rect(0)
    up, down = round(band.top() + band.height() / 4), round(band.bottom() - band.height() / 4)

    def at(column: int, y: int):
        return image.pixelColor(round(columns.column_rect(column).center().x()), y)

    assert at(0, up).blue() > at(0, up).red() + 50
    assert at(2, up).red() > at(2, up).blue() + 50
    assert abs(at(1, up).red() - at(1, up).blue()) < 30
    assert at(3, up).red() > at(3, up).blue() + 20
    assert at(3, down).blue() > at(3, down).red() + 20


def test_bars_stand_on_zero_and_are_as_tall_as_their_numbers(columns):
    image, lane = rendered(columns), columns._lane_rect(0)

    def extent(column: int) -> list[int]:
        x = round(columns.column_rect(column).center().x())
        rows = range(round(lane.top()) - 1, round(lane.bottom()) + 2)
        return [y for y in rows if image.pixelColor(x, y).name() == LIGHT.key]

    assert extent(0) == []
    assert len(extent(2)) == pytest.approx(2 * len(extent(1)), abs=2)
    assert min(extent(3)) >= max(extent(2)) - 1  # below zero
    assert len(extent(3)) == pytest.approx(len(extent(2)), abs=2)


def test_what_is_shut_is_hatched_and_sets_no_scale(columns):
    show(columns, masked=np.array([False, False, True, True]))
    image, lane = rendered(columns), columns._lane_rect(0)
    x = round(columns.column_rect(1).center().x())
    assert image.pixelColor(x, round(lane.top()) + 2).name() == LIGHT.key  # 0.5 is the largest now
    names = {
        image.pixelColor(round(columns.column_rect(2).left()) + dx, round(lane.center().y())).name()
        for dx in range(2, 20)
    }
    assert LIGHT.key not in names
    assert LIGHT.hatch in names


def test_a_click_and_the_arrow_keys_choose_a_column(columns, qtbot):
    chosen: list[int] = []
    columns.column_selected.connect(chosen.append)
    qtbot.mouseClick(columns, Qt.MouseButton.LeftButton, pos=middle(columns, 2))
    qtbot.mouseClick(columns, Qt.MouseButton.LeftButton, pos=QPoint(5, middle(columns, 2).y()))  # a name
    qtbot.mouseClick(columns, Qt.MouseButton.RightButton, pos=middle(columns, 1))
    assert chosen == [2]
    columns.set_selected(2)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Left, Qt.Key.Key_Home, Qt.Key.Key_End):
        qtbot.keyClick(columns, key)
    assert chosen == [2, 3, 1, 0, 3]
    columns.set_selected(3)
    qtbot.keyClick(columns, Qt.Key.Key_Right)
    assert chosen[-1] == 3


def test_the_pointer_lights_a_column_and_the_line_below_says_it(columns):
    lit: list[int] = []
    columns.hovered.connect(lit.append)
    columns.set_selected(0)
    assert columns.readout == "column 0"
    move_pointer(columns, middle(columns, 1))
    assert columns.readout == "column 1"
    QApplication.sendEvent(columns, QEvent(QEvent.Type.Leave))
    assert columns.readout == "column 0"
    assert lit == [1, -1]
    columns.set_hover(3)
    assert columns.readout == "column 3"
    assert lit == [1, -1]  # pointed at elsewhere: nothing is emitted
    columns.set_hover(99)
    assert columns.readout == "column 0"


def test_the_chosen_column_is_framed_in_its_accent(columns):
    columns.set_selected(1)
    columns.set_theme(DARK)
    image, rect = rendered(columns), columns.column_rect(1)
    assert image.pixelColor(round(rect.left()), round(columns._band_rect(0).center().y())).name() == DARK.key


def test_columns_share_the_width_and_stay_inside(columns, qtbot):
    many = [str(i) for i in range(128)]
    columns.set_columns(many, [Band("s", np.zeros((128, 4), np.float32))], (), 1.0, str)
    columns.resize(420, columns.sizeHint().height())
    assert columns.column_rect(127).right() <= 420
    assert columns.minimumSizeHint().width() <= 200
    rendered(columns)


@pytest.mark.parametrize("selected", [0, 9, 19])
def test_no_label_overprints_the_chosen_ones(columns, selected):
    words = [f"a long word {i}" if i in (9, 11) else "word" for i in range(20)]
    columns.set_columns(words, [Band("s", np.zeros((20, 4), np.float32))], (), 1.0, str)
    columns.set_selected(selected)
    columns.set_hover(11)
    places = dict(columns.label_places())
    assert 11 in places
    assert selected in places or selected == 9  # the one pointed at covers it
    for chosen in places.keys() & {selected, 11}:
        others = [place for column, place in places.items() if column != chosen]
        assert not any(place.adjusted(1, 0, -1, 0).intersects(places[chosen]) for place in others)
