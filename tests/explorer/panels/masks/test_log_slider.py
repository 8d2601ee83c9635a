"""The logarithmic slider as a person uses it."""

from __future__ import annotations

import math

import pytest
from PySide6.QtCore import QPoint, Qt

from attention_explorer.panels.masks.log_slider import LogSlider, SliderMark
from tests.explorer.widgets.pictures import rendered
from tests.explorer.widgets.pointer import move_pointer

LEFT = Qt.MouseButton.LeftButton
LOW, HIGH = 0.1, 10.0
MARKS = (SliderMark(0.1, "least"), SliderMark(1.0, "home", is_home=True), SliderMark(5.0, "five"))


@pytest.fixture
def slider(qtbot) -> LogSlider:
    widget = LogSlider("Scale")
    qtbot.addWidget(widget)
    widget.resize(400, widget.sizeHint().height())
    widget.set_scale(LOW, HIGH, MARKS)
    widget.show()
    return widget


def at(slider: LogSlider, value: float) -> QPoint:
    return QPoint(round(slider.x_of(value)), slider.handle_rect().center().toPoint().y())


def test_equal_ratios_are_equal_distances(slider):
    assert slider.x_of(1) - slider.x_of(0.1) == pytest.approx(slider.x_of(10) - slider.x_of(1))
    assert slider.value_at(slider.x_of(0.3)) == pytest.approx(0.3)
    assert slider.value_at(-50) == LOW
    assert slider.value_at(4000) == pytest.approx(HIGH)


def test_a_drag_says_each_value_and_ends_on_release(slider, qtbot):
    said: list[float] = []
    slider.value_changed.connect(said.append)
    qtbot.mousePress(slider, LEFT, pos=at(slider, 1))
    assert slider.is_dragging
    move_pointer(slider, at(slider, 2), LEFT)
    move_pointer(slider, at(slider, 3), LEFT)
    qtbot.mouseRelease(slider, LEFT, pos=at(slider, 3))
    assert said == pytest.approx([2, 3], rel=0.01)
    assert slider.value == said[-1]
    assert not slider.is_dragging
    move_pointer(slider, at(slider, 8))
    assert len(said) == 2


def test_a_click_on_the_line_goes_there_and_falls_into_a_mark(slider, qtbot):
    qtbot.mouseClick(slider, LEFT, pos=at(slider, 5) + QPoint(4, 0))
    assert slider.value == 5
    qtbot.mouseClick(slider, LEFT, pos=at(slider, 5) - QPoint(20, 0))
    assert slider.value == pytest.approx(5 / math.exp(20 / (slider.x_of(math.e) - slider.x_of(1))), rel=0.02)


def test_a_double_click_on_the_handle_and_0_go_home(slider, qtbot):
    slider.set_value(3)
    with qtbot.waitSignal(slider.value_changed) as caught:
        qtbot.mouseDClick(slider, LEFT, pos=at(slider, 3))
    assert caught.args == [1.0]
    slider.set_value(0.2)
    qtbot.keyClick(slider, Qt.Key.Key_0)
    assert slider.value == 1.0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (Qt.Key.Key_Right, 2 * 2 ** (1 / 8)),
        (Qt.Key.Key_Left, 2 / 2 ** (1 / 8)),
        (Qt.Key.Key_PageUp, 4.0),
        (Qt.Key.Key_PageDown, 1.0),
        (Qt.Key.Key_Home, LOW),
        (Qt.Key.Key_End, HIGH),
    ],
)
def test_keys(slider, qtbot, key, value):
    slider.set_value(2)
    qtbot.keyClick(slider, key)
    assert slider.value == pytest.approx(value)


def test_a_key_does_not_step_over_a_mark(slider, qtbot):
    slider.set_value(0.95)
    qtbot.keyClick(slider, Qt.Key.Key_Right)
    assert slider.value == 1.0
    qtbot.keyClick(slider, Qt.Key.Key_Right)
    assert slider.value == pytest.approx(2 ** (1 / 8))
    qtbot.keyClick(slider, Qt.Key.Key_Left)
    assert slider.value == 1.0


def test_setting_a_value_emits_nothing_and_keeps_it_beyond_the_ends(slider, qtbot):
    with qtbot.assertNotEmitted(slider.value_changed):
        slider.set_value(0)
        slider.set_value(99)
    assert slider.value == 99
    assert slider.handle_rect().center().x() == pytest.approx(slider.x_of(HIGH))


def test_from_0_a_key_leads_back_onto_the_axis(slider, qtbot):
    slider.set_value(0)
    qtbot.keyClick(slider, Qt.Key.Key_Right)
    assert LOW < slider.value < 1


def test_the_handle_is_hollow_at_0(slider):
    slider.set_value(LOW)
    filled = rendered(slider).pixelColor(at(slider, LOW))
    slider.set_value(0)
    assert rendered(slider).pixelColor(at(slider, LOW)) != filled


def test_an_axis_that_no_logarithm_has_is_refused(slider):
    with pytest.raises(ValueError, match=r"cannot run from 0 to 1: it needs 0 < low < high"):
        slider.set_scale(0, 1)
