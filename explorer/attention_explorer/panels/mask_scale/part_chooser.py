"""One row that switches off any part of any layer: what, of which layer, which one, and what it gives instead."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from attention_explorer.panels.mask_scale.labels import column, flow, heading, plain
from attention_explorer.panels.mask_scale.offered_parts import CROSS_HEAD, Layer, Part
from attention_explorer.widgets.number_field import WholeBox
from attention_explorer.widgets.token_text import isolated
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_models.protocol.ablation import UNITS, Ablation, Fill
from attention_models.protocol.values import SiteRef

_FILLS: dict[Fill, tuple[str, str]] = {
    "zero": ("zero", "It gives 0"),
    "mean": ("its mean", "It gives what it gives on average over a few texts (or sample pictures) that come along"),
    "position": ("its value at position", "Everywhere it gives what it gives at this one position"),
}
_NORM_TIP = "Of a norm what it learned is left out: it multiplies by 1 and adds 0"


class PartChooser(QWidget):
    """Says which part is meant, and puts it off or back. Follows the selection: see `follow`."""

    chosen = Signal(object)  # Ablation

    def __init__(self) -> None:
        super().__init__()
        self._layers: tuple[Layer, ...] = ()
        self._on: frozenset[Ablation] = frozenset()
        self._followed: tuple[SiteRef | None, int] = (None, -1)
        self.what = WholeListBox()
        self.what.setAccessibleName("What to switch off")
        self.what.setToolTip("What to switch off")
        self.layer = WholeListBox()
        self.layer.setAccessibleName("Of which layer")
        self.layer.setToolTip("Of which layer")
        self.number = WholeBox()
        self.number.setGroupSeparatorShown(False)
        self.fill = WholeListBox()
        self.fill.setAccessibleName("What it gives instead")
        for fill, (label, tip) in _FILLS.items():
            self.fill.addItem(label, fill)
            self.fill.setItemData(self.fill.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)
        self.position = WholeBox()
        self.position.setAccessibleName("Position")
        self.position.setToolTip("Which position of this text, from 0")
        self.word = plain(wraps=False)
        self.button = QPushButton("Switch off")
        self.button.clicked.connect(self._press)
        self.why = plain()
        to = QLabel("→")
        to.setToolTip("What it gives instead")
        title = heading("Switch off")
        title.setBuddy(self.what)
        _fit(self.fill)
        # what belongs together stays in one line
        groups = (self.what, self.number), (QLabel("of"), self.layer), (to, self.fill, self.position, self.word)
        lines = column(self)
        lines.addLayout(flow(title, *(_together(group) for group in groups), self.button))
        lines.addWidget(self.why)
        self.what.activated.connect(lambda _: self._show())
        self.layer.activated.connect(lambda _: self._show_layer())
        self.fill.activated.connect(lambda _: self._show())
        for number in (self.number, self.position):
            number.setKeyboardTracking(False)  # 12 is not 1 on the way
            number.valueChanged.connect(lambda _: self._show())
        self.hide()

    # what there is

    def show_layers(self, layers: Sequence[Layer], on: Collection[Ablation]) -> None:
        """Offer the parts of `layers`; those in `on` are off now. Hidden where there is none."""
        self._on = frozenset(on)
        if tuple(layers) != self._layers:
            chosen = self._layer.ref if self._layers else None
            self._layers = tuple(layers)
            self.layer.clear()
            for layer in self._layers:
                self.layer.addItem(layer.label)
            _fit(self.layer)
            self._choose_layer(chosen)
            self._show_layer()
        self.setVisible(any(layer.parts for layer in self._layers))
        if self._layers:
            self._show()

    def follow(self, site: SiteRef | None, head: int) -> None:
        """Mean the selected head, or the same part of its layer, whenever another is selected."""
        if site is None or not self._layers or (site, head) == self._followed:
            return
        self._followed = site, head
        self._choose_layer(site.block)
        self._show_layer()
        part = self._part
        if part is not None and part.name in ("head", CROSS_HEAD):
            own = CROSS_HEAD if site.stack == "cross" else "head"
            self._choose_what(own)
            self._show()
            self.number.setValue(head)
        self._show()

    # what is chosen

    @property
    def _layer(self) -> Layer:
        return self._layers[max(0, self.layer.currentIndex())]

    @property
    def _part(self) -> Part | None:
        return next((part for part in self._layer.parts if part.name == self.what.currentData()), None)

    def skip(self) -> Ablation | None:
        """What is meant, switched off."""
        part = self._part if self._layers else None
        if part is None:
            return None
        name = "head" if part.name == CROSS_HEAD else part.name
        fill = self._fill(part)
        position = self.position.value() if fill == "position" else None
        return Ablation(name, part.ref, self.number.value() if name in UNITS else None, fill, position)

    def _fill(self, part: Part) -> Fill:
        return "zero" if part.name.startswith("norm") else self.fill.currentData()

    def _press(self) -> None:
        skip = self.skip()
        if skip is not None:
            self.chosen.emit(Ablation(skip.part, skip.site, skip.unit, skip.fill, skip.position, on=skip in self._on))

    # how it is shown

    def _choose_layer(self, ref: SiteRef | None) -> None:
        place = next((i for i, layer in enumerate(self._layers) if layer.ref == ref), max(0, self.layer.currentIndex()))
        self.layer.setCurrentIndex(min(place, len(self._layers) - 1))

    def _choose_what(self, name: str) -> None:
        place = self.what.findData(name)
        if place >= 0:
            self.what.setCurrentIndex(place)

    def _show_layer(self) -> None:
        """Offer what this layer has; what was chosen stays chosen where it has that too."""
        if not self._layers:
            return
        before = self.what.currentData()
        self.what.clear()
        for part in self._layer.parts:
            self.what.addItem(part.label, part.name)
        _fit(self.what)
        self.what.setCurrentIndex(max(0, self.what.findData(before)))
        self._show()

    def _show(self) -> None:
        part, layer = self._part, self._layer
        self.why.setText(layer.why)
        self.why.setVisible(bool(layer.why))
        counted = part is not None and part.count > 0
        self.number.setVisible(counted)
        if part is not None and counted:
            with QSignalBlocker(self.number):
                self.number.setRange(0, part.count - 1)
            self.number.setAccessibleName(f"Which {part.name}")
            self.number.setToolTip(f"Which {part.name}, 0 to {part.count - 1:,}")
        is_norm = part is not None and part.name.startswith("norm")
        self.fill.setEnabled(part is not None and not is_norm)
        if is_norm:
            self.fill.setCurrentIndex(0)
        self.fill.setToolTip(_NORM_TIP if is_norm else _FILLS[self.fill.currentData()][1])
        at = self.fill.currentData() == "position"
        self.position.setVisible(at)
        with QSignalBlocker(self.position):
            self.position.setRange(0, max(0, len(layer.words) - 1))
        word = layer.words[self.position.value()] if self.position.value() < len(layer.words) else ""
        self.word.setText(f"“{isolated(word)}”")
        self.word.setVisible(at and bool(word))
        skip = self.skip()
        is_on = skip is not None and skip in self._on
        self.button.setEnabled(skip is not None)
        self.button.setText("Put it back" if is_on else "Switch off")
        self.button.setToolTip(
            "It is off now: let it work again"
            if is_on
            else "Put this among the interventions below; Ctrl+Z takes it back"
        )


def _together(widgets: Sequence[QWidget]) -> QWidget:
    row = QWidget()
    layout = QHBoxLayout(row)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(6)
    for widget in widgets:
        layout.addWidget(widget)
    return row


def _fit(box: WholeListBox) -> None:
    """As wide as the longest entry."""
    metrics = box.fontMetrics()
    widest = max((metrics.horizontalAdvance(box.itemText(i)) for i in range(box.count())), default=0)
    box.setMinimumContentsLength(math.ceil(widest / metrics.horizontalAdvance("X")) + 1)  # Qt counts in this letter
