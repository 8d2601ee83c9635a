"""What the window does about state B: made of what is open or of a state that was kept, swapped, let go."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtWidgets import QMenu

from attention_explorer.panels.base import COMPARE
from attention_explorer.session.comparing import as_b, kept_as_b
from attention_explorer.session.intents import CompareWith, SelectHeadOfB, Show, SwapStates
from attention_explorer.session.session import Session
from attention_explorer.session.state import Compared, Notice
from attention_explorer.widgets.token_text import apart, shortened
from attention_explorer.window.docks import DockHost
from attention_explorer.window.sessions import Sessions
from attention_models.protocol.two_runs import TwoRunsRequest, TwoRunsView
from attention_models.protocol.values import Site, SiteRef


def neighbour(sites: Sequence[Site], ref: SiteRef, head: int, layers: int, heads: int) -> tuple[SiteRef, int] | None:
    """The head that is so many layers and heads further than one of `ref`; None past the edge.

    In a layer of fewer heads its last one stands for those that it has not.
    """
    place = [site.ref for site in sites].index(ref) + layers
    if not 0 <= place < len(sites):
        return None
    site = sites[place]
    wanted = min(head, site.heads - 1) + heads
    return (site.ref, wanted) if 0 <= wanted < site.heads else None


_NOTHING_RAN = "Nothing has run yet that could be B."


class Comparing:
    """Behind the actions of the menu; the panel Compare has its own buttons for most of them."""

    def __init__(self, session: Session, sessions: Sessions, docks: DockHost) -> None:
        self._session, self._sessions, self._docks = session, sessions, docks

    def keep(self) -> None:
        """What is open becomes B."""
        if self._session.state.results.loaded is None:
            self._say(_NOTHING_RAN)
        else:
            self._compare_with(as_b(self._session.state))

    def swap(self) -> None:
        self._session.dispatch(SwapStates())

    def let_go(self) -> None:
        self._session.call_off(TwoRunsRequest.lane)
        self._session.dispatch(CompareWith(None))

    def walk(self, layers: int, heads: int) -> None:
        """Show a neighbour of the head of B that is shown; at the edge nothing happens."""
        view = self._session.state.results.of(TwoRunsView)
        side = None if view is None else view.b
        if side is None or side.site is None or side.head is None:
            return
        there = neighbour(side.sites, side.site, side.head, layers, heads)
        if there is not None:
            self._session.dispatch(SelectHeadOfB(*there))

    def keep_state(self, index: int) -> None:
        """A state that was kept becomes B."""
        self._compare_with(kept_as_b(self._sessions.states.kept.states[index]))

    def fill(self, menu: QMenu) -> None:
        """List the states that are kept, and keep the list."""
        menu.setToolTipsVisible(True)
        self._sessions.states.changed.connect(partial(self._list, menu))
        self._list(menu)

    def _list(self, menu: QMenu) -> None:
        menu.clear()
        states = self._sessions.states.kept.states
        for index, state in enumerate(states):
            action = menu.addAction(shortened(state.name).replace("&", "&&"), partial(self.keep_state, index))
            action.setToolTip(f"{apart(state.name)}: {apart(state.document.checkpoint)}")
        menu.setEnabled(bool(states))

    def _compare_with(self, b: Compared) -> None:
        try:
            self._session.dispatch(CompareWith(b))
        except ValueError as error:
            self._say(str(error))
            return
        if COMPARE in self._docks.docks:
            self._docks.raise_panel(COMPARE)  # the keyboard stays where one types

    def _say(self, sentence: str) -> None:
        self._session.dispatch(Show(Notice("warning", sentence)))
