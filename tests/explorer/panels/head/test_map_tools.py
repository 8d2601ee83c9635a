"""Overview and search of a large map, as a person uses them."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRectF, Qt

from attention_explorer.look.colour_maps import sequential
from attention_explorer.panels.head.find_bar import FindBar, TokenSearch
from attention_explorer.panels.head.map_tools import MapTools, MiniMap
from tests.explorer.widgets.pictures import rendered
from tests.explorer.widgets.pointer import move_pointer

QUERIES = ["Tom", "and", "Anna", "went", "to", "Tom's", "an", "atom"]
KEYS = ["one", "Tom", "two"]


@pytest.fixture
def find(qtbot) -> FindBar:
    bar = FindBar()
    qtbot.addWidget(bar)
    bar.set_tokens(TokenSearch(QUERIES), TokenSearch(KEYS))
    bar.set_place(3, 1)
    bar.show()
    return bar


@pytest.fixture
def chosen(find) -> list[tuple[str, int]]:
    places: list[tuple[str, int]] = []
    find.chosen.connect(lambda side, place: places.append((side, place)))
    return places


def test_it_finds_part_of_a_token_and_counts(find, qtbot):
    assert not find.on.isEnabled()
    assert find.count.text() == ""
    qtbot.keyClicks(find.field, "tom")
    assert find.matches == (0, 5, 7)
    assert find.count.text() == "3"
    assert find.on.isEnabled()
    qtbot.keyClicks(find.field, "x")
    assert find.matches == ()
    assert find.count.text() == "not there"
    assert not find.on.isEnabled()
    qtbot.keyClick(find.field, Qt.Key.Key_Escape)
    assert find.field.text() == ""
    assert find.count.text() == ""


def test_enter_goes_to_the_next_place_and_with_shift_to_the_one_before(find, chosen, qtbot):
    qtbot.keyClicks(find.field, "tom")
    assert chosen == []  # typing moves nothing
    for _ in range(3):
        qtbot.keyClick(find.field, Qt.Key.Key_Return)
    assert chosen == [("query", 5), ("query", 7), ("query", 0)]  # from the selection on, and round
    assert find.count.text() == "1 of 3"
    qtbot.keyClick(find.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert chosen[-1] == ("query", 7)
    qtbot.mouseClick(find.back, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(find.on, Qt.MouseButton.LeftButton)
    assert chosen[-2:] == [("query", 5), ("query", 7)]


def test_backwards_from_the_selection(find, chosen, qtbot):
    qtbot.keyClicks(find.field, "tom")
    find.step(-1)
    assert chosen == [("query", 0)]


def test_among_the_keys(find, chosen, qtbot):
    find.side.setCurrentIndex(1)
    qtbot.keyClicks(find.field, "tom")
    find.step(1)
    assert chosen == [("key", 1)]
    assert find.position.maximum() == 2
    assert find.position.value() == 1


def test_a_position_by_number(find, chosen, qtbot):
    assert find.position.maximum() == 7
    assert find.position.value() == 3
    find.position.selectAll()
    qtbot.keyClicks(find.position, "6")
    assert chosen == []  # while it is typed
    qtbot.keyClick(find.position, Qt.Key.Key_Return)
    assert chosen == [("query", 6)]
    find.set_place(2, 1)
    assert find.position.value() == 2
    assert len(chosen) == 1


def test_nothing_to_step_through(find, chosen):
    find.step(1)
    assert chosen == []


def test_other_words_are_searched_anew(find, qtbot):
    qtbot.keyClicks(find.field, "tom")
    find.set_tokens(TokenSearch(["Tom"] * 4), TokenSearch(KEYS))
    assert find.count.text() == "4"


@pytest.mark.parametrize(
    ("wanted", "places"),
    [
        ("software", (1, 7)),
        ("free soft", (0, 6)),
        ("ee  so", (0, 6)),
        ("ware is", (2,)),
        ("W", (2, 5, 8)),
        ("⏎", (5,)),
        ("freesoft", ()),
    ],
)
def test_words_of_several_tokens_are_found_where_they_begin(find, qtbot, wanted, places):
    labels = ["free", "So", "ftware", "is", "it", "⏎W", "Free", "soft", "ware"]
    texts = ["free", " So", "ftware", " is", " it", "\nW", " Free", " soft", "ware"]
    find.set_tokens(TokenSearch(labels, texts), TokenSearch(KEYS))
    find.field.setText(wanted)
    assert find.matches == places


# --------------------------------------------------------------------------- the overview


@pytest.fixture
def overview(qtbot) -> MiniMap:
    widget = MiniMap()
    qtbot.addWidget(widget)
    picture = np.tril(np.full((64, 64), 0.5, np.float32))
    picture[picture == 0] = np.nan
    widget.set_picture(picture, 0.5, sequential())
    widget.set_part(QRectF(0.5, 0.25, 0.2, 0.1))
    widget.resize(84, 84)
    widget.show()
    return widget


def test_the_frame_is_what_shows(overview):
    frame = overview.frame()
    assert frame.center().x() == pytest.approx(2 + 0.6 * 80, abs=0.5)
    assert frame.center().y() == pytest.approx(2 + 0.3 * 80, abs=0.5)
    assert frame.width() == pytest.approx(16, abs=0.5)
    before = rendered(overview)
    overview.set_part(QRectF(0, 0, 1, 1))
    assert rendered(overview) != before


def test_a_small_part_can_still_be_found(overview):
    overview.set_part(QRectF(0.5, 0.5, 0.001, 0.001))
    assert overview.frame().width() >= 5


def test_a_click_asks_for_that_place(overview, qtbot):
    with qtbot.waitSignal(overview.moved) as caught:
        qtbot.mouseClick(overview, Qt.MouseButton.LeftButton, pos=QPoint(12, 62))
    assert caught.args == pytest.approx([0.125, 0.75], abs=0.01)


def test_the_frame_is_dragged_by_where_it_was_taken(overview, qtbot):
    asked: list[tuple[float, float]] = []
    overview.moved.connect(lambda x, y: asked.append((x, y)))
    corner = overview.frame().topLeft().toPoint() + QPoint(2, 2)
    qtbot.mousePress(overview, Qt.MouseButton.LeftButton, pos=corner)
    assert asked[-1] == pytest.approx((0.6, 0.3), abs=0.01)  # taking hold moves nothing
    move_pointer(overview, corner + QPoint(8, 16), Qt.MouseButton.LeftButton)
    assert asked[-1] == pytest.approx((0.7, 0.5), abs=0.01)
    qtbot.mouseRelease(overview, Qt.MouseButton.LeftButton, pos=corner + QPoint(8, 16))
    move_pointer(overview, QPoint(3, 3))
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("key", "place"),
    [
        (Qt.Key.Key_Left, (0.5, 0.3)),
        (Qt.Key.Key_Right, (0.7, 0.3)),
        (Qt.Key.Key_Up, (0.6, 0.25)),
        (Qt.Key.Key_Down, (0.6, 0.35)),
    ],
)
def test_arrows_move_it_by_half_of_what_shows(overview, qtbot, key, place):
    with qtbot.waitSignal(overview.moved) as caught:
        qtbot.keyClick(overview, key)
    assert caught.args == pytest.approx(place)


def test_what_a_square_is_is_said(qtbot):
    tools = MapTools()
    qtbot.addWidget(tools)
    tools.show_detail("max", 16)
    assert (tools.pooling.currentText(), tools.detail.text()) == ("largest", "of 16 × 16 weights a square")
    tools.show_detail("mean", 1)
    assert tools.detail.text() == "each weight as it is"
    assert not tools.pooling.isEnabled()
