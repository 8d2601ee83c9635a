"""The line that says where one is."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from attention_explorer.look.theme import DARK
from attention_explorer.widgets.path_bar import PathBar
from tests.explorer.widgets.pictures import rendered

STEPS = [(label, f"tip of {label}") for label in ("story-gpt", "block 5", "attention", "head 5", "cell to, Tom")]


@pytest.fixture
def bar(qtbot) -> PathBar:
    bar = PathBar()
    qtbot.addWidget(bar)
    bar.resize(600, 22)
    bar.set_steps(STEPS, 1)
    bar.show()
    return bar


def test_a_click_goes_to_a_step(bar, qtbot):
    chosen: list[int] = []
    bar.chosen.connect(chosen.append)
    qtbot.mouseClick(bar, Qt.MouseButton.LeftButton, pos=bar.item_rect(3).center().toPoint())
    qtbot.keyClick(bar, Qt.Key.Key_Left)
    qtbot.keyClick(bar, Qt.Key.Key_Return)
    assert chosen == [3, 2]
    assert bar.tooltip_of(3) == "tip of head 5"


@pytest.mark.parametrize("here", range(5))
def test_where_one_is_always_shows(bar, here):
    bar.resize(170, 22)
    bar.set_steps(STEPS, here)
    shown = [step for step in range(5) if not bar.item_rect(step).isEmpty()]
    assert here in shown
    assert len(shown) < 5
    assert all(bar.item_rect(step).right() <= 171 for step in shown if len(shown) > 1)


def test_a_step_wider_than_the_line_is_cut_with_an_ellipsis(bar):
    bar.resize(60, 22)
    bar.set_steps(STEPS, 4)
    image, ground = rendered(bar), rendered(PathBar()).pixelColor(0, 0)
    edge = [image.pixelColor(59, y) for y in range(22)]
    assert all(colour == ground for colour in edge)


def test_it_is_drawn_in_both_themes(bar):
    light = rendered(bar)
    bar.set_theme(DARK)
    assert rendered(bar) != light
    bar.set_steps([], -1)
    assert bar.item_count() == 0
    rendered(bar)
