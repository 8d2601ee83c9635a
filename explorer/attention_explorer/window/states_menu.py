"""The states kept by name, as a menu: keeping one, going to one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from attention_explorer.session.intents import Show
from attention_explorer.session.state import Notice
from attention_explorer.widgets import asking
from attention_explorer.widgets.token_text import apart, shortened
from attention_explorer.window.sessions import Sessions

WITH_KEYS = 9
"""States that have a key of their own."""


class StatesMenu:
    """Fills a menu with the states that there are, and keeps it filled."""

    def __init__(self, window: QWidget, sessions: Sessions) -> None:
        self._window, self._sessions = window, sessions
        self._menu: QMenu | None = None
        self._walked: Sequence[QAction] = ()
        self._renew: QAction | None = None
        self._listed: list[QAction] = []
        self._group: QActionGroup | None = None

    def fill(self, menu: QMenu, walked: Sequence[QAction], renew: QAction) -> None:
        """List the states at the end of `menu`. `walked` lead from one to another, `renew` keeps one anew."""
        self._menu, self._walked, self._renew = menu, walked, renew
        self._sessions.states.changed.connect(self._list)
        self._list()

    def keep(self) -> None:
        """Ask for a name, and keep what is on screen under it."""
        suggested = f"State {len(self._sessions.states.kept.states) + 1}"
        told = "Keep all that is on screen, to go back to it from the States menu.\nIts name:"
        name = asking.line(self._window, "Keep this state", told, suggested)
        if name is not None:
            self._say_refusal(partial(self._sessions.keep, name))

    def renew(self) -> None:
        """Keep what is on screen in the place of the state that was gone to."""
        if self._sessions.states.current >= 0:
            self._sessions.renew(self._sessions.states.current)

    def _say_refusal(self, keep: partial[None]) -> None:
        try:
            keep()
        except ValueError as error:
            self._sessions.session.dispatch(Show(Notice("warning", str(error))))

    def _list(self) -> None:
        if self._menu is None or self._renew is None:
            return
        for action in self._listed:
            self._menu.removeAction(action)
            action.deleteLater()
        if self._group is not None:
            self._group.deleteLater()
        self._group = QActionGroup(self._menu)
        states, current = self._sessions.states.kept.states, self._sessions.states.current
        self._listed = []
        for index, state in enumerate(states):
            action = self._menu.addAction(shortened(state.name).replace("&", "&&"))
            action.setCheckable(True)
            action.setChecked(index == current)
            self._group.addAction(action)
            if index < WITH_KEYS:
                action.setShortcut(QKeySequence(f"Ctrl+Alt+{index + 1}"))
            action.setToolTip(f"{apart(state.name)}: {apart(state.document.checkpoint)}")
            action.triggered.connect(partial(self._sessions.go_to, index))
            self._listed.append(action)
        if not states:
            none = self._menu.addAction("No state is kept yet")
            none.setEnabled(False)
            self._listed = [none]
        for action in self._walked:
            action.setEnabled(bool(states))
        self._renew.setEnabled(current >= 0)
