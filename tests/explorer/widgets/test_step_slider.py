"""The slider through a training: what it says, and what it emits when a person moves it."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from attention_explorer.widgets.step_slider import StepSlider

STEPS = (20, 40, 1200)


@pytest.fixture
def slider(qtbot):
    widget = StepSlider()
    qtbot.addWidget(widget)
    widget.resize(600, 40)
    widget.show()
    return widget


def test_keys_go_from_snapshot_to_snapshot_and_to_the_end(slider):
    moved: list[object] = []
    slider.moved.connect(moved.append)
    slider.show_steps(STEPS, 40, False)
    assert (slider.label.text(), moved) == ("step 40 of 1,200", [])
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Left, Qt.Key.Key_Home):
        QTest.keyClick(slider.slider, key)
    assert moved == [1200, None, 1200, 20]
    slider.walk(-1)
    assert moved[4:] == []


def test_it_shows_the_end_and_a_step_that_has_gone(slider):
    slider.show_steps(STEPS, None, True)
    assert (slider.label.text(), slider.slider.value(), slider.follow.isChecked()) == ("the end", 3, True)
    slider.show_steps((20, 1200), 40, False)
    assert (slider.label.text(), slider.slider.value(), slider.follow.isChecked()) == ("step 40 of 1,200", 1, False)


def test_follow_is_told_by_a_person_alone(slider):
    told: list[bool] = []
    slider.followed.connect(told.append)
    slider.show_steps(STEPS, 40, True)
    assert told == []
    QTest.mouseClick(slider.follow, Qt.MouseButton.LeftButton)
    assert told == [False]


def test_a_training_that_may_go_on_ends_at_its_newest_snapshot(slider):
    moved: list[object] = []
    slider.moved.connect(moved.append)
    slider.show_steps(STEPS, 40, False, has_end=False)
    for key in (Qt.Key.Key_End, Qt.Key.Key_Right):
        QTest.keyClick(slider.slider, key)
    assert moved == [1200]
