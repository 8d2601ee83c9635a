"""Items along one axis: hovering, clicks and keys, whatever they look like."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPoint, QRectF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from attention_explorer.widgets.items_widget import ItemsWidget
from tests.explorer.widgets.pointer import move_pointer

Key = Qt.Key


class Boxes(ItemsWidget):
    """Five boxes of 20 pixels in a row, along which the keys choose."""

    axis = Qt.Orientation.Horizontal

    def __init__(self) -> None:
        super().__init__("Boxes")
        self.resize(100, 20)
        self.count = 5
        self.chosen: list[int] = []

    def item_count(self) -> int:
        return self.count

    def item_rect(self, item: int) -> QRectF:
        return QRectF(20 * item, 0, 20, 20)

    def tooltip_of(self, item: int) -> str:
        return f"box {item}"

    def _choose(self, item: int) -> None:
        self.chosen.append(item)
        self._move(item)


class Menu(Boxes):
    """The same, where keys only move and Enter chooses."""

    keys_choose = False


@pytest.fixture
def boxes(qtbot) -> Boxes:
    widget = Boxes()
    qtbot.addWidget(widget)
    widget.show()
    return widget


@pytest.fixture
def menu(qtbot) -> Menu:
    widget = Menu()
    qtbot.addWidget(widget)
    widget.show()
    return widget


def test_the_item_under_the_pointer_is_told_once_and_has_its_tooltip(boxes):
    told: list[int] = []
    boxes.hovered.connect(told.append)
    for x in (5, 15, 25, 95):
        move_pointer(boxes, QPoint(x, 10))
    assert boxes.toolTip() == "box 4"
    QApplication.sendEvent(boxes, QEvent(QEvent.Type.Leave))
    assert told == [0, 1, 4, -1]
    assert boxes.toolTip() == ""


def test_hovering_elsewhere_emits_nothing(boxes, qtbot):
    with qtbot.assertNotEmitted(boxes.hovered):
        boxes.set_hover(3)
        boxes.set_hover(99)


def test_a_click_chooses_the_item_under_it(boxes):
    QTest.mouseClick(boxes, Qt.MouseButton.LeftButton, pos=QPoint(45, 10))
    QTest.mouseClick(boxes, Qt.MouseButton.RightButton, pos=QPoint(65, 10))
    assert boxes.chosen == [2]


def test_keys_along_the_axis_choose_and_stop_at_the_ends(boxes):
    for key in (Key.Key_Left, Key.Key_Right, Key.Key_End, Key.Key_Right, Key.Key_Left, Key.Key_Up, Key.Key_Home):
        QTest.keyClick(boxes, key)
    assert boxes.chosen == [0, 1, 4, 3, 0]


def test_without_items_no_key_does_anything(boxes):
    boxes.count = 0
    QTest.keyClick(boxes, Key.Key_Right)
    QTest.keyClick(boxes, Key.Key_Home)
    assert boxes.chosen == []


def test_where_keys_only_move_enter_and_space_choose(menu):
    QTest.keyClick(menu, Key.Key_Return)
    for key in (Key.Key_Right, Key.Key_Right, Key.Key_Return, Key.Key_End, Key.Key_Space):
        QTest.keyClick(menu, key)
    assert menu.chosen == [1, 4]
    QTest.mouseClick(menu, Qt.MouseButton.LeftButton, pos=QPoint(5, 5))
    QTest.keyClick(menu, Key.Key_Right)
    QTest.keyClick(menu, Key.Key_Enter)
    assert menu.chosen == [1, 4, 0, 1]
