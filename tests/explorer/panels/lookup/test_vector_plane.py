"""Arrows that are dragged. The lookup panel's tests drag them too."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt

from attention_explorer.look.theme import DARK, LIGHT
from attention_explorer.panels.lookup.vector_plane import Arrow, VectorPlane
from tests.explorer.widgets.pictures import rendered
from tests.explorer.widgets.pointer import move_pointer

ARROWS = (Arrow("east", 1.0, 0.0, colour="#00ff00", weight=1.0), Arrow("query", 0.0, 2.0, is_query=True))


@pytest.fixture
def plane(qtbot) -> VectorPlane:
    plane = VectorPlane()
    qtbot.addWidget(plane)
    plane.resize(400, 300)
    plane.set_arrows(ARROWS)
    plane.show()
    return plane


def moves(plane: VectorPlane) -> list[tuple[int, float, float]]:
    seen: list[tuple[int, float, float]] = []
    plane.moved.connect(lambda index, x, y: seen.append((index, x, y)))
    return seen


def test_units_are_square_and_up_is_up(plane):
    centre = QPointF(200, 150)
    east, north = plane.tip(0) - centre, plane.tip(1) - centre
    assert east.y() == 0
    assert north.y() == pytest.approx(-2 * east.x())


def test_a_tip_has_its_values_colour(plane):
    assert rendered(plane).pixelColor(plane.tip(0).toPoint()).name() == "#00ff00"


def test_a_heavier_key_is_thicker(plane):
    def thickness() -> int:
        image = rendered(plane)
        x = round((plane.tip(0).x() + 200) / 2)
        return sum(image.pixelColor(x, y).name() == LIGHT.key for y in range(100, 200))

    thick = thickness()
    plane.set_arrows((Arrow("east", 1.0, 0.0, weight=0.0), ARROWS[1]))
    assert thick > thickness() + 3


def test_a_drag_follows_the_pointer_to_the_hundredth(qtbot, plane):
    seen = moves(plane)
    qtbot.mousePress(plane, Qt.MouseButton.LeftButton, pos=plane.tip(1).toPoint())
    move_pointer(plane, QPoint(200, 150), Qt.MouseButton.LeftButton)
    move_pointer(plane, QPoint(9999, 150), Qt.MouseButton.LeftButton)
    qtbot.mouseRelease(plane, Qt.MouseButton.LeftButton, pos=QPoint(300, 150))
    move_pointer(plane, QPoint(250, 100))
    assert seen == [(1, 0.0, 0.0), (1, 2.0, 0.0)]
    assert plane.chosen == 1


def test_a_press_beside_every_tip_does_nothing(qtbot, plane):
    seen = moves(plane)
    qtbot.mousePress(plane, Qt.MouseButton.LeftButton, pos=QPoint(120, 250))
    move_pointer(plane, QPoint(150, 150), Qt.MouseButton.LeftButton)
    assert seen == []


def test_keys_move_and_choose(qtbot, plane):
    seen = moves(plane)
    qtbot.keyClick(plane, Qt.Key.Key_Up)
    qtbot.keyClick(plane, Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier)
    with qtbot.waitSignal(plane.selected) as chosen:
        qtbot.keyClick(plane, Qt.Key.Key_Space)
    qtbot.keyClick(plane, Qt.Key.Key_Up)  # at the edge already
    assert seen == [(0, 1.0, 0.1), (0, 0.5, 0.0)]
    assert chosen.args == [1]


def test_an_arrow_without_length_is_drawn(plane):
    before = rendered(plane)
    plane.set_arrows((Arrow("east", 0.0, 0.0), Arrow("query", 0.0, 0.0, is_query=True)))
    assert rendered(plane) != before


def test_theme_and_screen_reader(plane):
    light = rendered(plane)
    plane.set_theme(DARK)
    assert rendered(plane) != light
    assert plane.accessibleDescription() == "east (1.00, 0.00), query (0.00, 2.00)"
