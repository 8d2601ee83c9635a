"""The waves of a position go through the sines and cosines of every position, however few points they are drawn by."""

from __future__ import annotations

import math

import pytest
from PySide6.QtGui import QColor

from attention_explorer.look.theme import LIGHT
from attention_explorer.panels.positions.waveforms import Wave, Waveforms
from tests.explorer.widgets.pictures import rendered


@pytest.mark.parametrize("wavelength", [2 * math.pi, 9.0, 62.8, 1000.0])
def test_a_curve_goes_through_the_value_of_every_position(qtbot, wavelength: float) -> None:
    widget = Waveforms()
    qtbot.addWidget(widget)
    widget.resize(900, 120)
    widget.set_waves([Wave(0, wavelength, 0.0, 1.0)], 40, 0, 1)
    ratio = 3.0  # lines are several pixels wide
    image, row = rendered(widget, ratio), widget.row_rect(0)
    half = row.height() / 2 - 9
    for position in range(2, 38):  # the cursor is at 0
        for value, role in (
            (math.sin(2 * math.pi * position / wavelength), "bar"),
            (math.cos(2 * math.pi * position / wavelength), "text_dim"),
        ):
            x = round(widget.x_of(position) * ratio)
            y = round((row.center().y() - value * half) * ratio)
            crossed = abs(math.tan(2 * math.pi * position / wavelength) - 1) < 0.5 and role == "text_dim"
            assert image.pixelColor(x, y) == QColor(getattr(LIGHT, role)) or crossed, (position, role)
