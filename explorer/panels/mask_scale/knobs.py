"""The knobs of the Mask and scale panel: where they apply, which mask, how sharp."""

from __future__ import annotations

import math

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QComboBox,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from explorer.panels.mask_scale.log_slider import LogSlider, SliderMark
from explorer.widgets.flow_layout import FlowLayout
from explorer.widgets.number_field import RealBox, WholeBox
from explorer.widgets.number_text import value_text
from models.protocol.interventions import MOST, Mask
from models.protocol.mask_kinds import MASK_KINDS

_SCOPES = {"head": "This head", "layer": "This layer", "everywhere": "Everywhere"}

_FIRST_WINDOW = 4

_DEEPEST = 2.0  # the axis ends at this total scale, or at this many times the trained one


def heading(text: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("role", "title")
    return label


def said(role: str = "dim", wraps: bool = True) -> QLabel:
    """A label for a sentence or a number."""
    label = QLabel()
    label.setProperty("role", role)
    label.setTextFormat(Qt.TextFormat.PlainText)  # a token may look like mark-up
    label.setWordWrap(wraps)
    return label


def _flow(*widgets: QWidget) -> FlowLayout:
    line = FlowLayout()
    for widget in widgets:
        line.addWidget(widget)
    return line


def _column(parent: QWidget) -> QVBoxLayout:
    column = QVBoxLayout(parent)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(6)
    return column


class ScopeChooser(QWidget):
    """This head, this layer or everywhere: what all knobs below are for."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        label = heading("Apply to")
        row = FlowLayout(self)
        row.addWidget(label)
        group = QButtonGroup(self)
        self.buttons: dict[str, QPushButton] = {}
        for scope, text in _SCOPES.items():
            button = QPushButton(text)
            button.setCheckable(True)
            button.setToolTip(f"What you change below changes {text.lower()}")
            button.clicked.connect(lambda _on=False, scope=scope: self.chosen.emit(scope))
            group.addButton(button)
            row.addWidget(button)
            self.buttons[scope] = button
        label.setBuddy(self.buttons["head"])

    def show_scope(self, scope: str) -> None:
        self.buttons[scope].setChecked(True)


class MaskKnobs(QWidget):
    """Which mask, its number where it needs one, and the brush."""

    chosen = Signal(str, object)  # kind, window or None
    brush_chosen = Signal(str)  # "off", "block", "allow"

    def __init__(self) -> None:
        super().__init__()
        self.kind = QComboBox()
        self.kind.setAccessibleName("Mask")
        self.kind.setToolTip("Which tokens may be looked at")
        for kind in MASK_KINDS.values():
            if not kind.takes_cells:  # those are what the brush is for
                self.kind.addItem(kind.title, kind.name)
                self.kind.setItemData(self.kind.count() - 1, kind.sentence, Qt.ItemDataRole.ToolTipRole)
        self.kind.activated.connect(self._on_kind)
        self.number = WholeBox()
        self.number.setAccessibleName("n, the mask's number")
        self.number.setRange(0, MOST)
        self.number.setPrefix("n = ")
        self.number.setValue(_FIRST_WINDOW)
        self.number.setKeyboardTracking(False)  # 12 is not 1 on the way
        self.number.valueChanged.connect(self._on_number)
        self.explanation = said()
        self.brushes: dict[str, QPushButton] = {}
        for brush, text in (("block", "Block cells"), ("allow", "Allow cells")):
            button = QPushButton(text)
            button.setCheckable(True)
            button.setToolTip(f"{text} by dragging over the head map; Esc or a second press ends it")
            button.clicked.connect(lambda on, brush=brush: self.brush_chosen.emit(brush if on else "off"))
            self.brushes[brush] = button
        self.brush_hint = said(wraps=False)
        column = _column(self)
        column.addLayout(_flow(heading("Mask"), self.kind, self.number))
        column.addWidget(self.explanation)
        column.addLayout(_flow(heading("Paint"), *self.brushes.values(), self.brush_hint))

    def show_mask(self, mask: Mask | None, painting: str, elsewhere: tuple[str, ...]) -> None:
        """The mask of this scope, the brush, and what other scopes' masks do here."""
        kind = MASK_KINDS["trained" if mask is None else mask.kind]
        self.kind.setCurrentIndex(self.kind.findData(kind.name))
        if mask is not None and mask.window is not None:
            with QSignalBlocker(self.number):
                self.number.setValue(mask.window)
        self.number.setVisible(bool(kind.counts))
        self.number.setToolTip(kind.counts)
        text = kind.sentence
        if elsewhere:
            text += f" Also in force here: {'; '.join(elsewhere)}."
        self.explanation.setText(text)
        for brush, button in self.brushes.items():
            button.setChecked(brush == painting)
        self.brush_hint.setText("then drag over the head map" if painting == "off" else "now drag over the head map")

    def _on_kind(self, index: int) -> None:
        kind = MASK_KINDS[self.kind.itemData(index)]
        self.chosen.emit(kind.name, self.number.value() if kind.counts else None)

    def _on_number(self, number: int) -> None:
        self.chosen.emit(self.kind.currentData(), number)


class ScaleKnobs(QWidget):
    """The factor on the scores: slider, exact number, and both ways out."""

    chosen = Signal(float)
    released = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.slider = LogSlider("Scale of the scores")
        self.slider.setToolTip("How much a score counts. Double click the handle, or press 0, for the trained scale.")
        self.slider.value_changed.connect(self._on_slider)
        self.slider.released.connect(self.released)
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
        self.scale_text, self.temperature_text = said(""), said()
        column = _column(self)
        column.addLayout(_flow(heading("Scale"), self.factor, self.even, self.home))
        column.addWidget(self.slider)
        column.addWidget(self.scale_text)
        column.addWidget(self.temperature_text)
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
