"""A recurrent model unrolled in time."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor

from attention_explorer.look.theme import LIGHT
from attention_explorer.panels.flow.model_scene import RecurrentScene
from attention_explorer.panels.flow.recurrent_picture import RecurrentPicture
from attention_models.protocol.flow import RecurrentFlow
from tests.explorer.panels.flow.test_model_picture import heard
from tests.explorer.widgets.pictures import rendered


def scene(attends: bool = True) -> RecurrentScene:
    flow = RecurrentFlow(
        encoder=(np.array([1, 2, 4], np.float32), np.array([4, 2, 1], np.float32)),
        decoder=np.array([2, 4], np.float32),
        contexts=np.array([3, 3.5], np.float32) if attends else None,
        bottleneck=None if attends else np.linspace(-1, 1, 96, dtype=np.float32),
    )
    weights = np.array([0.1, 0.2, 0.7], np.float32) if attends else None
    return RecurrentScene(("M", "a", "r"), ("⟨start⟩", "0"), flow, weights)


@pytest.fixture
def picture(qtbot) -> RecurrentPicture:
    picture = RecurrentPicture()
    qtbot.addWidget(picture)
    picture.resize(640, 460)
    picture.set_scene(scene(), 1, 2)
    picture.show()
    return picture


def at(picture: RecurrentPicture, item: int) -> QPoint:
    return picture.state_rect(item).center().toPoint()


def test_the_source_is_read_from_left_to_right_below_the_target(picture):
    lefts = [picture.state_rect(item).left() for item in range(3)]
    assert lefts == sorted(lefts)
    assert picture.state_rect(3).bottom() < picture.state_rect(0).top()


def test_clicks_and_keys_choose_steps_and_tokens(picture, qtbot):
    steps, keys = heard(picture.step_chosen), heard(picture.key_chosen)
    qtbot.mouseClick(picture, Qt.MouseButton.LeftButton, pos=at(picture, 3))
    qtbot.mouseClick(picture, Qt.MouseButton.LeftButton, pos=at(picture, 0))
    qtbot.keyClick(picture, Qt.Key.Key_Left)
    qtbot.keyClick(picture, Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier)
    assert (steps, keys) == ([0, 0], [0, 1])


def test_columns_are_as_high_as_the_norms(picture):
    """The decoder's states of 2 and 4: the second fills its place."""
    image, colour = picture.grab().toImage(), QColor(LIGHT.query)
    first, second = picture.state_rect(3), picture.state_rect(4)

    def inked(rect) -> int:
        x = round(rect.center().x())
        pixels = [QColor(image.pixel(x, y)) for y in range(round(rect.top()) + 2, round(rect.bottom()))]
        return sum(abs(p.hue() - colour.hue()) < 12 and p.saturation() > 60 for p in pixels)

    assert inked(second) == pytest.approx(2 * inked(first), abs=6)


def test_pointing_says_the_numbers(picture, qtbot):
    qtbot.mouseMove(picture, at(picture, 2))
    assert picture.toolTip() == "“r” is read: the state's norm is 4.000 forward, 1.000 backward now\nweight 0.700"
    qtbot.mouseMove(picture, at(picture, 4))
    assert picture.toolTip() == "“0” goes in: the state's norm is 4.000 now"


def test_play_fills_it_from_the_left(picture):
    whole = rendered(picture)
    before = None
    for steps in range(6):
        picture.set_filled(steps)
        now = rendered(picture)
        assert now != before, steps  # each step draws more
        before = now
    assert before == whole


def test_the_bottleneck_is_one_vector(picture):
    with_attention = rendered(picture)
    picture.set_scene(scene(attends=False), 1, -1)
    assert rendered(picture) != with_attention
    between = picture.bottleneck_rect()
    assert picture.state_rect(3).bottom() < between.top() < between.bottom() < picture.state_rect(0).top()
