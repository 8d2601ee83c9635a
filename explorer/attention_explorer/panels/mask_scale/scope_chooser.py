"""Where the knobs apply: this head, this layer or everywhere."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QPushButton,
    QWidget,
)

from attention_explorer.panels.mask_scale.labels import heading
from attention_explorer.widgets.flow_layout import FlowLayout

_SCOPES = {"head": "This head", "layer": "This layer", "everywhere": "Everywhere"}


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
