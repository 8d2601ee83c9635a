"""The strip of two texts: what is the same, replaced and alone, said and drawn."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot

from attention_explorer.look.theme import LIGHT
from attention_explorer.panels.compare.two_runs_page import AlignedTokens, AlignedWords
from tests.explorer.real_window import click, press
from tests.explorer.widgets.pictures import rendered, rgb

PLACES = (AlignedWords("Tom", "Tom", True), AlignedWords("Anna", "Ben", False), AlignedWords("", "big", False))


@pytest.fixture
def strip(qtbot: QtBot) -> AlignedTokens:
    strip = AlignedTokens()
    qtbot.addWidget(strip)
    strip.set_places(PLACES)
    strip.resize(strip.sizeHint())
    return strip


def test_a_screen_reader_hears_what_differs(strip: AlignedTokens) -> None:
    assert strip.accessibleDescription() == "“Anna” of A stands where B has “Ben”; “big”: only in B"
    assert strip.tooltip_of(0) == "“Tom”: in both"
    assert AlignedWords("so", "", False).tooltip == "“so”: only in A"


def test_what_differs_is_drawn_in_another_colour(strip: AlignedTokens) -> None:
    image, (red, _, blue) = rendered(strip), rgb(QColor(LIGHT.warning))
    assert red - blue > 100  # greys have no such hue

    def marked(place: int) -> bool:
        rect = strip.row_rect(place).toRect()
        points = [QPoint(x, y) for x in range(rect.left(), rect.right()) for y in range(rect.top(), rect.bottom())]
        hues = [pixel[0] - pixel[2] for pixel in (rgb(image.pixel(point)) for point in points)]
        return max(hues) > 50

    assert [marked(place) for place in range(3)] == [False, True, True]


def test_a_click_and_the_arrows_choose_a_place(strip: AlignedTokens) -> None:
    chosen: list[int] = []
    strip.place_selected.connect(chosen.append)
    click(strip, strip.row_rect(1).center().toPoint())
    press(strip, Qt.Key.Key_Right)
    press(strip, Qt.Key.Key_Right)
    press(strip, Qt.Key.Key_Home)
    assert chosen == [1, 2, 0]
