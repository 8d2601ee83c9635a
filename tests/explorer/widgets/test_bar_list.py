"""Bars."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from attention_explorer.look.theme import DARK, LIGHT
from attention_explorer.widgets.bar_list import BarGroup, BarList, BarRow
from tests.explorer.widgets.pictures import rendered
from tests.explorer.widgets.pointer import move_pointer

ROWS = (
    BarRow("␣Tom", 0.68, "68 %", detail="logit 9.1", tooltip="token 4186"),
    BarRow("␣Ben", 0.34, "34 %"),
    BarRow("␣the", 0.0, "0 %"),
)


@pytest.fixture
def bars(qtbot) -> BarList:
    widget = BarList()
    qtbot.addWidget(widget)
    widget.resize(500, 200)
    widget.set_rows(ROWS)
    widget.show()
    return widget


def bar_length(image: QImage, bars: BarList, row: int, colour: str = LIGHT.bar) -> int:
    y = round(bars.row_rect(row).center().y())
    return sum(image.pixelColor(x, y).name() == colour for x in range(image.width()))


def middle(bars: BarList, row: int) -> QPoint:
    return bars.row_rect(row).center().toPoint()


def test_lengths_are_in_proportion(bars):
    image = rendered(bars)
    assert bar_length(image, bars, 0) == pytest.approx(2 * bar_length(image, bars, 1), abs=4)


def test_values_out_of_bounds_stay_inside(bars):
    bars.set_rows([BarRow("a", 1.0, "100 %"), BarRow("b", 7.0, "700 %"), BarRow("c", -1.0, "-100 %")])
    image = rendered(bars)
    assert bar_length(image, bars, 1) == pytest.approx(bar_length(image, bars, 0), abs=4)
    assert bar_length(image, bars, 2) <= 2


def test_emphasis_takes_the_accent(bars):
    bars.set_rows([BarRow("a", 0.5, "50 %", emphasis=True)])
    image = rendered(bars)
    assert bar_length(image, bars, 0, LIGHT.query) > 50
    assert bar_length(image, bars, 0, LIGHT.bar) == 0


def test_a_click_activates_a_row(bars, qtbot):
    with qtbot.waitSignal(bars.row_activated) as caught:
        qtbot.mouseClick(bars, Qt.MouseButton.LeftButton, pos=middle(bars, 1))
    assert caught.args == [1]
    with qtbot.assertNotEmitted(bars.row_activated):
        qtbot.mouseClick(bars, Qt.MouseButton.LeftButton, pos=QPoint(10, 190))


def test_the_keyboard_reaches_every_row(bars, qtbot):
    seen: list[int] = []
    bars.row_activated.connect(seen.append)
    qtbot.keyClick(bars, Qt.Key.Key_Return)
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Down):
        qtbot.keyClick(bars, key)
    qtbot.keyClick(bars, Qt.Key.Key_Enter)
    assert seen == [0, 2]


def test_hover_lights_a_row_and_shows_its_tooltip(bars, qtbot):
    plain = rendered(bars)
    move_pointer(bars, middle(bars, 0))
    assert bars.toolTip() == "token 4186"
    assert rendered(bars) != plain
    QApplication.sendEvent(bars, QEvent(QEvent.Type.Leave))
    assert rendered(bars) == plain


def test_groups_stand_beside_each_other_where_there_is_room(bars, qtbot):
    bars.set_groups([BarGroup("[MASK] 1", ROWS[:2]), BarGroup("[MASK] 2", ROWS[1:])])
    assert bars.row_rect(2).top() > bars.row_rect(1).bottom()
    bars.resize(900, 200)
    assert bars.row_rect(2).top() == bars.row_rect(0).top()
    assert bars.row_rect(2).left() > bars.row_rect(0).right()
    assert bars.heightForWidth(900) < bars.heightForWidth(400)
    with qtbot.waitSignal(bars.row_activated) as caught:
        qtbot.mouseClick(bars, Qt.MouseButton.LeftButton, pos=middle(bars, 3))
    assert caught.args == [3]


def test_a_title_takes_a_line_of_its_own(bars):
    without = bars.row_rect(0).top()
    bars.set_rows(ROWS, "after “␣to”")
    assert bars.row_rect(0).top() > without


def test_a_row_that_does_not_fit_is_not_cut_in_half(bars):
    bars.resize(500, round(bars.row_rect(1).bottom()) - 3)
    image = rendered(bars)
    assert bar_length(image, bars, 0) > 0
    assert bar_length(image, bars, 1) == 0


def test_no_rows_are_a_sentence(bars):
    bars.set_rows([])
    blank = rendered(bars)
    bars.set_empty_text("Run the model to see what comes next.")
    assert rendered(bars) != blank
    assert bars.row_rect(0).isEmpty()


def test_theme_changes_the_picture(bars):
    light = rendered(bars)
    bars.set_theme(DARK)
    assert rendered(bars) != light


def test_a_screen_reader_hears_the_rows(bars):
    assert bars.accessibleDescription().startswith("␣Tom 68 %, ␣Ben 34 %")


@pytest.mark.parametrize("points", range(8, 24))
def test_the_height_that_it_asks_for_holds_its_last_row(qtbot, points):
    """Rows are a fraction of a pixel high at most sizes, and one that does not fit wholly is not drawn."""
    bars = BarList()
    qtbot.addWidget(bars)
    font = bars.font()
    font.setPointSize(points)
    bars.setFont(font)
    bars.set_groups([BarGroup("Before", tuple(BarRow(str(i), 0.5, "") for i in range(3)))])
    for width in (300, 700):
        bars.resize(width, bars.heightForWidth(width))
        assert bars.row_rect(2).bottom() <= bars.height()
