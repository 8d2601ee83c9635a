"""A row of buttons of which one is down: chooses between views of one thing."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QLayout, QPushButton, QWidget

from attention_explorer.widgets.layouts import FlowLayout


class Segments(QWidget):
    """Tab reaches it, arrow keys move within it."""

    chosen = Signal(int)  # by a person

    def __init__(
        self, choices: Sequence[tuple[str, str]], name: str, parent: QWidget | None = None, *, wraps: bool = False
    ) -> None:
        """`choices` are (label, tooltip); `name` is what a screen reader says of the whole row.

        With `wraps`, buttons that do not fit go to the next line.
        """
        super().__init__(parent)
        self.setAccessibleName(name)
        row: QLayout
        if wraps:
            row = FlowLayout(self, gap=4, line_gap=4)
        else:
            row = QHBoxLayout(self)
            row.setContentsMargins(0, 0, 0, 0)
            row.setSpacing(4)
        self._group = QButtonGroup(self)
        for index, (label, tooltip) in enumerate(choices):
            button = QPushButton(label)
            button.setCheckable(True)
            button.setChecked(index == 0)
            button.setToolTip(tooltip)
            self._group.addButton(button, index)
            row.addWidget(button)
        if isinstance(row, QHBoxLayout):
            row.addStretch(1)
        self._group.idClicked.connect(self.chosen.emit)

    @property
    def current(self) -> int:
        return self._group.checkedId()

    def choose(self, index: int) -> None:
        """Press a button without emitting anything."""
        self._group.button(index).setChecked(True)

    def has(self, index: int) -> bool:
        """Whether there is such a button."""
        return self._group.button(index) is not None

    def button(self, index: int) -> QPushButton:
        button = self._group.button(index)
        assert isinstance(button, QPushButton)
        return button
