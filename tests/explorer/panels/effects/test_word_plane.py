"""Tokens in a plane: both axes in one scale, and what a point says."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from attention_explorer.panels.effects.words_page import Points, WordPlane

POINTS = Points(
    places=np.array([[-4.0, 0.0], [4.0, 0.0], [0.0, 1.0], [0.0, -1.0]]),
    labels=("they", "bank", "she", "bank"),
    text=(0, 0, 1, 1),
    is_word=(False, True, False, True),
    explained=(0.5, 0.25),
)


@pytest.fixture
def plane(qtbot) -> WordPlane:
    plane = WordPlane()
    qtbot.addWidget(plane)
    plane.resize(500, 300)
    plane.show_points(POINTS)
    plane.show()
    return plane


def test_a_unit_is_as_long_upwards_as_across(plane):
    across = plane.point(1).x() - plane.point(0).x()
    up = plane.point(3).y() - plane.point(2).y()
    assert across / 8 == pytest.approx(up / 2)
    assert up > 0  # what is larger lies higher
    assert all(plane.rect().contains(plane.point(i).toPoint()) for i in range(4))


def test_a_click_near_a_point_chooses_it_and_one_elsewhere_does_not(plane, qtbot):
    with qtbot.waitSignal(plane.chosen) as chosen:
        QTest.mouseClick(plane, Qt.MouseButton.LeftButton, pos=plane.point(2).toPoint() + QPoint(3, 3))
    assert chosen.args == [2]
    with qtbot.assertNotEmitted(plane.chosen):
        QTest.mouseClick(plane, Qt.MouseButton.LeftButton, pos=QPoint(5, 5))


def test_pointing_says_the_text_and_the_place(plane):
    QTest.mouseMove(plane, plane.point(3).toPoint())
    assert plane.toolTip() == "B, bank: 0, −1"
    assert plane.accessibleDescription().startswith("A, they: −4, 0; A, bank: 4, 0")


def test_all_in_one_place_is_drawn_too(plane):
    one = Points(np.zeros((2, 2)), ("a", "b"), (0, 1), (True, True), (0.0, 0.0))
    plane.show_points(one)
    assert not plane.grab().isNull()
    assert plane.rect().contains(plane.point(0).toPoint())
