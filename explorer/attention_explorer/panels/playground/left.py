"""Trainings that were not saved, of ended windows and of this one: each can be gone on with, or discarded."""

from __future__ import annotations

import time
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QMessageBox, QPushButton, QVBoxLayout, QWidget

from attention_explorer.panels.playground.training_sentences import left_title
from attention_explorer.session.training import LeftTraining
from attention_explorer.widgets.in_front import answer_of
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.rows import clear, flowing

MOST_SHOWN = 3
"""At once: the panel has to show more than these."""


class LeftTrainings(QWidget):
    """Hidden while there are none."""

    chosen = Signal(object)
    """Go on with this `LeftTraining`."""
    discarded = Signal(object)
    """Delete this one: the person was asked, and does not want it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.buttons: list[QPushButton] = []
        self.discards: list[QPushButton] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)
        self.hide()

    def show_trainings(self, found: tuple[LeftTraining, ...]) -> None:
        """Show the newest of these and no others."""
        clear(self._column)
        self.buttons, self.discards = [], []
        now = time.time()
        for left in found[:MOST_SHOWN]:
            title = left_title(left, now)
            button, discard = QPushButton("Go on with it"), QPushButton("Discard…")
            button.setAccessibleName(f"Go on with {title}")
            button.setToolTip("It waits at its last step")
            button.clicked.connect(partial(self.chosen.emit, left))
            discard.setAccessibleName(f"Discard {title}")
            discard.setToolTip("Delete this training from the disk")
            discard.clicked.connect(partial(self._ask, left, title))
            self.buttons.append(button)
            self.discards.append(discard)
            self._column.addWidget(flowing(button, discard, wrapped(f"Not saved: {title}", role="dim")))
        more = len(found) - MOST_SHOWN
        if more > 0:
            what = "1 older training isn't saved" if more == 1 else f"{more} older trainings aren't saved"
            self._column.addWidget(wrapped(f"{what} either. Discard or save one of these to see more.", role="dim"))
        self.setVisible(bool(found))

    def _ask(self, left: LeftTraining, title: str) -> None:
        box = QMessageBox(QMessageBox.Icon.Warning, "Discard a training", f"Discard {title}?", parent=self)
        box.setInformativeText("The model and its snapshots are deleted. This can't be undone.")
        discard = box.addButton("Discard", QMessageBox.ButtonRole.DestructiveRole)
        keep = box.addButton("Keep it", QMessageBox.ButtonRole.RejectRole)
        box.setDefaultButton(keep)
        box.setEscapeButton(keep)
        answer_of(box)
        if box.clickedButton() is discard:
            self.discarded.emit(left)
