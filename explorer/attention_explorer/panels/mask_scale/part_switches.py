"""Which parts of the selected block are switched off."""

from __future__ import annotations

from collections.abc import Collection

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QWidget

from attention_explorer.panels.mask_scale.labels import column, flow, heading, plain
from attention_models.protocol.ablation import SUBLAYERS, part_name
from attention_models.protocol.parts import Block

_MEANINGS = {
    "attention": "All heads of this layer then write 0 into the residual stream",
    "cross": "This layer then looks at nothing of the source: its cross-attention writes 0 into the residual stream",
    "mlp": "Its feed-forward network then writes 0 into the residual stream",
}
_NORM = "What this normalisation learned is left out then: it multiplies by 1 and adds 0"


class PartSwitches(QWidget):
    """One button for each part of a block; pressed in, the part is off."""

    switched = Signal(str, bool)  # the part, and whether it is off

    def __init__(self) -> None:
        super().__init__()
        self.title = heading("Switch off")
        self.why = plain()
        self.buttons: dict[str, QPushButton] = {}
        self._row = flow(self.title)
        lines = column(self)
        lines.addLayout(self._row)
        lines.addWidget(self.why)
        self.hide()

    def show_block(self, block: Block | None, where: str, off: Collection[str]) -> None:
        """Offer the parts of `block`, called `where`; those in `off` are switched off."""
        self.setVisible(block is not None)
        if block is None:
            return
        self.title.setText(f"Switch off in {where}")
        self.why.setText(block.why)
        self.why.setVisible(bool(block.why))
        for part in block.parts:
            if part not in self.buttons:
                self._add(part)
        for part, button in self.buttons.items():
            button.setVisible(part in block.parts)
            button.setChecked(part in off)

    def _add(self, part: str) -> None:
        name = part_name(part)
        button = QPushButton(f"{name[0].upper()}{name[1:]}" if part in SUBLAYERS else f"Gain of {name}")
        button.setCheckable(True)
        button.setToolTip(f"{_MEANINGS.get(part, _NORM)}. A second press puts it back.")
        button.clicked.connect(lambda off: self.switched.emit(part, off))
        self.buttons[part] = button
        self._row.addWidget(button)
