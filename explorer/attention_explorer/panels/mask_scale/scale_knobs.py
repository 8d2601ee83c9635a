"""How much the scores count: a slider, the exact factor, and both ways out."""

from __future__ import annotations

import math

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import (
    QPushButton,
    QWidget,
)

from attention_explorer.panels.mask_scale.labels import column, flow, heading, plain
from attention_explorer.panels.mask_scale.log_slider import LogSlider, SliderMark
from attention_explorer.widgets.number_field import RealBox
from attention_explorer.widgets.number_text import value_text

_DEEPEST = 2.0  # the axis ends at this total scale, or at this many times the trained one


class ScaleKnobs(QWidget):
    """The factor on the scores: slider, exact number, and both ways out."""

    chosen = Signal(float)

    def __init__(self) -> None:
        super().__init__()
        self.slider = LogSlider("Scale of the scores")
        self.slider.setToolTip("How much a score counts. Double click the handle, or press 0, for the trained scale.")
        self.slider.value_changed.connect(self._on_slider)
        self.factor = RealBox()
        self.factor.setAccessibleName("Factor on the scores")
        self.factor.setToolTip("What the trained scale is multiplied by")
        self.factor.setPrefix("× ")
        self.factor.setDecimals(3)
        self.factor.setRange(0.0, 1000.0)
        self.factor.setSingleStep(0.1)
        self.factor.setKeyboardTracking(False)
        self.factor.valueChanged.connect(self.chosen)
        self.even = QPushButton("Even (0)")
        self.even.setToolTip("Factor 0: all scores alike, so every key gets the same weight")
        self.even.clicked.connect(lambda: self._turn_to(0.0))
        self.home = QPushButton("As trained")
        self.home.setToolTip("Factor 1, the trained scale (key 0 on the slider)")
        self.home.clicked.connect(lambda: self._turn_to(1.0))
        self.scale_text, self.temperature_text = plain(""), plain()
        lines = column(self)
        lines.addLayout(flow(heading("Scale"), self.factor, self.even, self.home))
        lines.addWidget(self.slider)
        lines.addWidget(self.scale_text)
        lines.addWidget(self.temperature_text)
        self._trained, self._others = 1 / math.sqrt(32), 1.0
        self.show_trained(self._trained, 32)
        self.show_factor(1.0)

    @property
    def is_dragging(self) -> bool:
        return self.slider.is_dragging

    def show_trained(self, scale: float, head_dim: int) -> None:
        """The axis: from 1/d through the trained scale to 1 and beyond, as factors on the trained scale."""
        self._trained = scale
        root = 1 / math.sqrt(head_dim)
        marks = {1 / head_dim: "1/d", root: "1/√d", 1.0: "1"}
        trained = next((total for total in marks if math.isclose(total, scale, rel_tol=1e-4)), scale)
        marks[trained] = f"{marks.get(trained, value_text(scale))} (trained)"
        low, high = min(1 / head_dim, scale / 4) / scale, max(_DEEPEST, _DEEPEST * scale) / scale
        listed = [
            SliderMark(1.0 if total == trained else total / scale, text, total == trained)
            for total, text in sorted(marks.items())
        ]
        self.slider.set_scale(low, high, listed)

    def show_factor(self, factor: float, others: float = 1.0) -> None:
        """The factor of this scope, and what the selected head gets from `others`."""
        self._others = others
        self.slider.set_value(factor)
        with QSignalBlocker(self.factor):
            self.factor.setValue(factor)
        whole = factor * others
        how = "as trained" if whole == 1 else "sharper than trained" if whole > 1 else "softer than trained"
        how = how if whole else "every key alike"
        elsewhere = f" × {others:.3g} (other scopes)" if others != 1 else ""
        total = f"{value_text(whole * self._trained)} = {factor:.3g}{elsewhere} × {value_text(self._trained)}"
        self.scale_text.setText(f"Scale {total}: {how}")
        temperature = f"{1 / whole:.3g}" if whole else "∞"
        self.temperature_text.setText(f"Temperature {temperature} = 1 / factor: the same knob")

    def _on_slider(self, factor: float) -> None:
        self.show_factor(factor, self._others)  # at once, also where the model answers later
        self.chosen.emit(factor)

    def _turn_to(self, factor: float) -> None:
        self.show_factor(factor, self._others)
        self.chosen.emit(factor)
