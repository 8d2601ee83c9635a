"""A session that nobody answers, for panels and windows whose answers a test makes up."""

from __future__ import annotations

from typing import TypeVar

from attention_explorer.panels.base import Panel
from attention_explorer.session.hover import Hover
from attention_explorer.session.intents import Arrived
from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_models.protocol.request import Request, Result

PanelT = TypeVar("PanelT", bound=Panel)


class SilentSession(Session):
    """Keeps what is asked for instead of answering it."""

    def __init__(self, state: State | None = None) -> None:
        super().__init__(state)
        self.asked: list[Request] = []
        self.requested.connect(self.asked.append)

    def arrive(self, *results: Result) -> None:
        """Answers of the engine, made up."""
        for result in results:
            self.dispatch(Arrived(result))


def shown(qtbot, kind: type[PanelT], session: SilentSession) -> PanelT:
    """A visible panel of some size; the test's end closes it."""
    panel = kind(session, Hover())
    # until then Python must hold both: it would delete what only Qt holds, in the middle of being painted
    qtbot.addWidget(panel, before_close_func=lambda _panel: (panel, session))
    panel.resize(600, 500)
    panel.show()
    return panel
