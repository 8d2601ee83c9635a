"""A slider for the temperature of a softmax, from hard (0) to soft (infinity)."""

from __future__ import annotations

import math

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSlider, QVBoxLayout, QWidget

_STEPS = 200
_RANGE = 20.0  # from 1/20 to 20 between the two ends


class TemperatureSlider(QWidget):
    """The ends are the limits themselves; between them the temperature grows by a factor a step, 1 in the middle."""

    changed = Signal(float)

    def __init__(self, temperature: float = 1.0, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, _STEPS)
        self.slider.setPageStep(_STEPS // 10)
        self.slider.setAccessibleName("Temperature")
        self.slider.setToolTip("Scores are divided by the temperature before the softmax")
        self.readout = QLabel()
        self.readout.setAlignment(Qt.AlignmentFlag.AlignCenter)
        ends = QHBoxLayout()
        ends.setContentsMargins(0, 0, 0, 0)
        ends.addWidget(_dim("hard"))
        ends.addWidget(self.readout, 1)
        ends.addWidget(_dim("soft"))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addLayout(ends)
        column.addWidget(self.slider)
        self.set_temperature(temperature)
        self._show()
        self.slider.valueChanged.connect(self._on_moved)

    @property
    def temperature(self) -> float:
        """0, infinity, or between 1/20 and 20."""
        place = self.slider.value()
        if place in (0, _STEPS):
            return math.inf if place else 0.0
        return float(f"{_RANGE ** (2 * place / _STEPS - 1):.2g}")  # as it is written

    def set_temperature(self, temperature: float) -> None:
        """Go to the nearest place there is. Raises ValueError below 0."""
        if not temperature >= 0:
            raise ValueError(f"The temperature is {temperature}; it must be 0 or more.")
        if temperature == 0 or math.isinf(temperature):
            self.slider.setValue(_STEPS if temperature else 0)
            return
        place = round((math.log(temperature, _RANGE) + 1) * _STEPS / 2)
        self.slider.setValue(min(max(place, 1), _STEPS - 1))

    def _on_moved(self) -> None:
        self._show()
        self.changed.emit(self.temperature)

    def _show(self) -> None:
        temperature = self.temperature
        if temperature == 0:
            text = "temperature 0: the best key takes all"
        elif math.isinf(temperature):
            text = "temperature ∞: all keys count alike"
        else:
            text = f"temperature {temperature:.2g}"
        self.readout.setText(text)


def _dim(text: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("role", "dim")
    return label
