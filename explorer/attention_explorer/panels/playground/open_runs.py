"""Buttons that open the models of an experiment's runs, once these are over."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from attention_explorer.widgets.rows import clear, flowing
from attention_models.protocol.experiment_messages import RunModel


class OpenRuns(QWidget):
    chosen = Signal(object)
    """The `RunModel` whose button was pressed."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._models: tuple[RunModel | None, ...] = ()
        self.buttons: list[QPushButton] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self.hide()

    def show_models(self, names: Sequence[str], models: tuple[RunModel | None, ...]) -> None:
        """Of the runs of those names; hidden where there are none."""
        self.setVisible(any(models))
        if models == self._models:
            return
        self._models = models
        clear(self._column)
        self.buttons = []
        for name, model in zip(names, models, strict=False):
            if model is not None:
                button = QPushButton(name)
                button.setToolTip("Open the model of this run: every panel shows it")
                button.clicked.connect(partial(self.chosen.emit, model))
                self.buttons.append(button)
        if self.buttons:
            self._column.addWidget(flowing(QLabel("Open the model of"), *self.buttons))
