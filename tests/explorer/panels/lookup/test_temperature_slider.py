"""The temperature."""

from __future__ import annotations

import math

import pytest
from PySide6.QtCore import Qt

from attention_explorer.panels.lookup.temperature_slider import TemperatureSlider


@pytest.fixture
def slider(qtbot) -> TemperatureSlider:
    slider = TemperatureSlider()
    qtbot.addWidget(slider)
    slider.show()
    return slider


def test_the_ends_are_the_limits_and_the_middle_is_1(qtbot, slider):
    assert slider.temperature == 1
    seen: list[float] = []
    slider.changed.connect(seen.append)
    qtbot.keyClick(slider.slider, Qt.Key.Key_Home)
    qtbot.keyClick(slider.slider, Qt.Key.Key_End)
    assert seen == [0, math.inf]
    assert "∞" in slider.readout.text()


def test_it_grows_all_the_way(slider):
    places = []
    for place in range(slider.slider.maximum() + 1):
        slider.slider.setValue(place)
        places.append(slider.temperature)
    assert places == sorted(places)
    assert places[1] == pytest.approx(0.052)
    assert places[-2] == pytest.approx(19.0)


@pytest.mark.parametrize("temperature", [0.0, 0.1, 1.0, 7.0, math.inf])
def test_what_is_set_is_what_there_is(slider, temperature):
    slider.set_temperature(temperature)
    assert slider.temperature == pytest.approx(temperature, rel=0.04)


def test_what_is_written_is_what_is_used(slider):
    slider.set_temperature(0.3)
    assert slider.readout.text() == f"temperature {slider.temperature:g}"


def test_below_0_is_refused(slider):
    with pytest.raises(ValueError, match="0 or more"):
        slider.set_temperature(-1)
