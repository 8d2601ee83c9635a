"""A map that is presented: its values stand in its cells, its labels grow with them, and the cells keep the room."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from PySide6.QtGui import QFontInfo
from PySide6.QtWidgets import QApplication

from attention_explorer.look.text_size import set_least_points
from attention_explorer.widgets.heat_map.heat_map import HeatMap
from attention_explorer.widgets.heat_map.picture import number
from attention_models.protocol.values import Tile
from tests.explorer.drawn_text import text_of_ours

WORDS = ["Tom", "and", "Anna", "went", "to", "the", "park", "."]


@pytest.fixture
def presented(qapp: QApplication) -> Iterator[None]:
    set_least_points(18.0)
    yield
    set_least_points(0.0)


def weights(count: int) -> np.ndarray:
    """Rows that sum to 1. (count, count)"""
    drawn: np.ndarray = np.random.default_rng(0).exponential(size=(count, count)).astype(np.float32)
    drawn /= drawn.sum(1, keepdims=True)
    return drawn


def shown(qtbot, count: int, width: int = 900, height: int = 700, values: np.ndarray | None = None) -> HeatMap:
    widget = HeatMap()
    qtbot.addWidget(widget)
    font = widget.font()
    font.setPointSizeF(18.0)
    widget.setFont(font)
    widget.resize(width, height)
    mask = np.triu(np.ones((count, count), bool), 1)
    values = weights(count) if values is None else values
    widget.set_values(values, mask, WORDS[:count], WORDS[:count], 0.0, 1.0)
    widget.show()
    return widget


def in_cells(widget: HeatMap, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    with text_of_ours(monkeypatch) as ours:
        widget.grab()
    return [each.text for each in ours if re.fullmatch(r"−?[0-9]*\.?[0-9]+", each.text)]


@pytest.mark.usefixtures("presented")
def test_each_cell_that_is_not_masked_says_its_value(qtbot, monkeypatch):
    count, values = 5, weights(5)
    said = in_cells(shown(qtbot, count), monkeypatch)
    assert said == [f"{values[row, column]:.2f}" for row in range(count) for column in range(row + 1)]


@pytest.mark.usefixtures("presented")
def test_no_cell_says_its_value_where_one_has_no_room(qtbot, monkeypatch):
    assert in_cells(shown(qtbot, 8, width=300, height=460), monkeypatch) == []


def test_at_a_desk_values_are_pointed_at(qtbot, monkeypatch):
    assert in_cells(shown(qtbot, 5), monkeypatch) == []


@pytest.mark.usefixtures("presented")
def test_numbers_that_are_not_computed_or_infinite_are_left_out(qtbot, monkeypatch):
    values = np.array([[0.5, 0.0], [np.nan, -np.inf]], np.float32)
    assert in_cells(shown(qtbot, 2, values=values), monkeypatch) == ["0.50"]


@pytest.mark.usefixtures("presented")
def test_of_a_map_in_tiles_only_weights_are_said_and_no_squares(qtbot, monkeypatch):
    widget = shown(qtbot, 4)
    names = [f"t{i}" for i in range(4)]
    widget.set_map("map", names, names)
    values = weights(4)
    widget.add_tile("map", Tile(0, 0, 0), values)
    assert in_cells(widget, monkeypatch) == [f"{value:.2f}" for value in values.ravel()]


@pytest.mark.parametrize(
    ("value", "long", "short"),
    [
        (0.268, "0.27", ".27"),
        (0.999, "1.00", "1.00"),
        (0.001, "0.00", ".00"),
        (0.0, "0", "0"),
        (-3.456, "−3.46", "−3.46"),
        (-0.5, "−0.50", "−.50"),
        (27.66, "27.7", "27.7"),
        (123.4, "123", "123"),
    ],
)
def test_how_a_value_is_written(value, long, short):
    assert (number(value, False), number(value, True)) == (long, short)


def label_pixels(widget: HeatMap, monkeypatch: pytest.MonkeyPatch) -> float:
    """The height of the labels' capital letters."""
    widget.zoom_by(1.5)  # labels are drawn once and kept
    with text_of_ours(monkeypatch) as ours:
        widget.grab()
    return max(each.cap_height for each in ours if each.text in WORDS)


@pytest.mark.usefixtures("presented")
def test_labels_grow_with_their_cells_up_to_forty_pixels(qtbot, monkeypatch):
    few, many = shown(qtbot, 4, height=900), shown(qtbot, 8, height=420)
    pixels = QFontInfo(few.font()).pixelSize()
    few_high, many_high = label_pixels(few, monkeypatch), label_pixels(many, monkeypatch)
    assert few_high > 1.3 * many_high
    assert few_high / many_high * pixels <= 40.5


@pytest.mark.usefixtures("presented")
@pytest.mark.parametrize("count", [1, 3, 5, 8])
def test_growing_labels_leave_three_fifths_of_the_window_to_the_cells(qtbot, count):
    widget = shown(qtbot, count, width=1000, height=700)
    assert widget.view.rows.extent >= 0.6 * widget.window().height()


@pytest.mark.usefixtures("presented")
def test_long_names_are_whole_where_the_cells_keep_their_room(qtbot, monkeypatch):
    widget = shown(qtbot, 4)
    names = ["the", "homework", "was", "unbelievable"]
    with text_of_ours(monkeypatch) as ours:
        widget.set_values(weights(4), None, names, names, 0.0, 1.0)
        widget.grab()
    assert set(names) <= {each.text for each in ours}
    assert widget.view.rows.extent >= 0.6 * widget.window().height()


@pytest.mark.usefixtures("presented")
@pytest.mark.parametrize("rows", [["⟨start⟩ → El", "El → gato", "gato → duerme"], ["El", "gato", "."]], ids=str)
def test_labels_that_are_whole_are_not_cut_because_they_grow(qtbot, monkeypatch, rows):
    for width in (800, 840, 920, 1000):
        widget = shown(qtbot, 3, width=width)
        widget.set_values(weights(3), None, rows, ["The", "cat", "⟨end⟩"], 0.0, 1.0)
        with text_of_ours(monkeypatch) as ours:
            widget.grab()
        assert len(ours) > 9
        assert not [each.text for each in ours if "..." in each.text or "…" in each.text], width
