"""Which mask, its number, and the brush."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QPushButton,
    QWidget,
)

from attention_explorer.panels.mask_scale.labels import column, flow, heading, plain
from attention_explorer.widgets.number_field import WholeBox
from attention_models.protocol.interventions import Mask
from attention_models.protocol.mask_kinds import MASK_KINDS
from attention_models.protocol.values import MOST

_FIRST_WINDOW = 4


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
        self.explanation = plain()
        self.brushes: dict[str, QPushButton] = {}
        for brush, text in (("block", "Block cells"), ("allow", "Allow cells")):
            button = QPushButton(text)
            button.setCheckable(True)
            button.setToolTip(f"{text} by dragging over the head map; Esc or a second press ends it")
            button.clicked.connect(lambda on, brush=brush: self.brush_chosen.emit(brush if on else "off"))
            self.brushes[brush] = button
        self.brush_hint = plain(wraps=False)
        lines = column(self)
        lines.addLayout(flow(heading("Mask"), self.kind, self.number))
        lines.addWidget(self.explanation)
        lines.addLayout(flow(heading("Paint"), *self.brushes.values(), self.brush_hint))

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
            text += f" Also on here: {'; '.join(elsewhere)}."
        self.explanation.setText(text)
        for brush, button in self.brushes.items():
            button.setChecked(brush == painting)
        self.brush_hint.setText("then drag over the head map" if painting == "off" else "now drag over the head map")

    def _on_kind(self, index: int) -> None:
        kind = MASK_KINDS[self.kind.itemData(index)]
        self.chosen.emit(kind.name, self.number.value() if kind.counts else None)

    def _on_number(self, number: int) -> None:
        self.chosen.emit(self.kind.currentData(), number)
