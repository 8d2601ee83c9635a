"""The open checkpoint's examples as a menu, and the button that opens it."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from attention_explorer.session.examples import Example, examples_of
from attention_explorer.session.intents import ShowExample
from attention_explorer.session.session import Session
from attention_explorer.session.state import State


class ExamplesMenu(QMenu):
    front_wanted = Signal(str)
    """A panel's name: the chosen example is to be looked at there."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self.session = session
        self.setToolTipsVisible(True)
        self.button = QToolButton(parent)
        self.button.setText("Examples")
        self.button.setToolTip("Things to see in this model: each brings its text, a head and a cell")
        self.button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.button.setMenu(self)
        session.changed.connect(self._follow)
        self._fill(session.state)

    def _follow(self, old: State, new: State) -> None:
        if new.results.loaded is not old.results.loaded:
            self._fill(new)

    def _fill(self, state: State) -> None:
        self.clear()
        loaded = state.results.loaded
        examples = () if loaded is None else examples_of(loaded.info.reference)
        for example in examples:
            action = self.addAction(example.title.replace("&", "&&"))
            action.setToolTip(example.say)
            action.triggered.connect(partial(self._show, example))
        self.button.setVisible(bool(examples))
        self.menuAction().setVisible(bool(examples))

    def _show(self, example: Example, _checked: bool = False) -> None:
        self.session.dispatch(ShowExample(example))
        self.front_wanted.emit(example.panel)
