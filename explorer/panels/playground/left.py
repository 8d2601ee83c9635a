"""Trainings that were not saved when their windows ended, each with a button to go on with it."""

from __future__ import annotations

import time
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from explorer.panels.playground.words import left_title
from explorer.session.training import LeftTraining
from explorer.widgets.beside import clear, flowing
from explorer.widgets.page import wrapped


class LeftTrainings(QWidget):
    """Hidden while there are none."""

    chosen = Signal(object)
    """Go on with this `LeftTraining`."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.buttons: list[QPushButton] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)
        self.hide()

    def show_trainings(self, found: tuple[LeftTraining, ...]) -> None:
        """Show these and no others."""
        clear(self._column)
        self.buttons = []
        now = time.time()
        for left in found:
            button = QPushButton("Go on with it")
            button.setAccessibleName(f"Go on with {left_title(left, now)}")
            button.setToolTip("It waits at its last step; a training of this window that is not saved goes")
            button.clicked.connect(partial(self.chosen.emit, left))
            self.buttons.append(button)
            self._column.addWidget(flowing(button, wrapped(f"Not saved: {left_title(left, now)}", role="dim")))
        self.setVisible(bool(found))
