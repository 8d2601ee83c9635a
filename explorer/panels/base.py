"""What every panel does: it renders while it can be seen, and asks the engine for what it shows, once."""

from __future__ import annotations

from typing import ClassVar

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from explorer.session.hover import Hover, Pointed
from explorer.session.intents import Intent
from explorer.session.session import Session
from explorer.session.state import State
from explorer.theme import LIGHT, Theme
from explorer.widgets.card import Card
from models.protocol.request import Request
from models.protocol.values import CheckpointInfo

EDITED = "Interventions are on: this is not the model as it is."


class Panel(QWidget):
    """Subclasses set `name` and `title`, build their widgets in `__init__`, and say what they want and draw.

    A hidden panel only remembers that it is stale: it draws nothing and asks for nothing until it is shown.
    """

    name: ClassVar[str]  # in settings files
    title: ClassVar[str]
    hint: ClassVar[str] = ""  # what the panel is for, in a sentence
    needs_scores: ClassVar[bool] = False  # whether all of it is made of queries, keys and scores

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.session = session
        self.hover = hover
        self.theme: Theme = LIGHT
        self._rendered: State | None = None
        self._asked: Request | None = None
        session.changed.connect(self._on_changed)
        hover.changed.connect(self._on_hover)

    # for subclasses

    @classmethod
    def suits(cls, info: CheckpointInfo) -> bool:
        """Whether it has anything to show of this checkpoint. One that has not is put away, though it can be opened."""
        return True

    def wants(self, state: State) -> Request | None:
        """What this panel needs from the engine to show `state`; None where it has all it needs."""
        return None

    def render_state(self, state: State, old: State | None) -> None:
        """Show `state`. `old` is what was last shown, None at first."""
        raise NotImplementedError

    def render_hover(self, pointed: Pointed) -> None:
        """Show where the pointer is, in this panel or elsewhere. Must not compute, scroll or resize."""

    def set_theme(self, theme: Theme) -> None:
        """Hand the theme on to the widgets inside."""
        self.theme = theme
        for child in self.findChildren(QWidget):
            take = getattr(child, "set_theme", None)
            if callable(take) and not isinstance(child, Panel):
                take(theme)

    def is_waiting(self) -> bool:
        """Whether it can be seen and still lacks something."""
        return self.isVisible() and self._wanted() is not None

    # the life of a panel

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._refresh()

    def _on_changed(self, old: State, new: State) -> None:
        if old.loading is not None and new.loading is None:
            self._asked = None  # a load calls off what was asked for, also one that fails
        if self.isVisible():
            self._refresh()

    def _on_hover(self, pointed: Pointed) -> None:
        if self.isVisible():
            self.render_hover(pointed)

    def _refresh(self) -> None:
        state = self.session.state
        if state is not self._rendered:
            old, self._rendered = self._rendered, state
            self.render_state(state, old)
            self._mark_edited(state)
        for card in self.findChildren(Card):
            card.set_refusal(self._refusal(state))
        request = self._wanted()
        asked, self._asked = self._asked, request
        if request is not None and request != asked:
            self.session.request(request)

    def _wanted(self) -> Request | None:
        state = self.session.state
        return None if self._refusal(state) else self.wants(state)

    def _refusal(self, state: State) -> str:
        """Why nothing of the open model can be shown here; "" where something can."""
        loaded = state.results.loaded
        return loaded.info.weights_only if loaded is not None and self.needs_scores else ""

    def _mark_edited(self, state: State) -> None:
        """Say in the title that the run is an edited one, so that nobody takes it for the model's own."""
        count = len(state.ran.interventions) if state.ran is not None else 0
        for card in self.findChildren(Card):
            card.set_mark(f"edited × {count}" if count else "", EDITED)

    def dispatch(self, intent: Intent) -> None:
        self.session.dispatch(intent)
