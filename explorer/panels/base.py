"""What every panel does: it renders while it can be seen, and asks the engine for what it shows, once."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from explorer.session.hover import Hover, Pointed
from explorer.session.intents import Intent
from explorer.session.session import Session
from explorer.session.state import State, site_tokens
from explorer.theme import LIGHT, Theme
from explorer.widgets.card import Card
from models.protocol.requests import CompareRequest, HeadRequest, Request, RowRequest
from models.protocol.results import HeadView, Ran, RowView
from models.protocol.values import CheckpointInfo, Site, Token

_LONGEST = 40  # characters of one token in a sentence
_BYTES = re.compile("‹([0-9A-F]{2}(?:·[0-9A-F]{2})*)›")


NO_HEADS = "This model has no attention: there are no heads to look at."
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


def wanted_head(state: State) -> HeadRequest | RowRequest | None:
    """The weights of the selected head, unless they are here; of a long text those of the selected query alone."""
    ran, site, head = state.ran, state.site, state.selection.head
    if ran is None or site is None:
        return None
    if site.is_long:
        query, row = state.selection.query, state.results.row
        if row is not None and (row.run, row.site, row.head, row.query) == (ran.run, site.ref, head, query):
            return None
        return RowRequest(run=ran.run, site=site.ref, head=head, query=query)
    view = state.results.head
    if view is not None and (view.run, view.site, view.head) == (ran.run, site.ref, head):
        return None
    return HeadRequest(run=ran.run, site=site.ref, head=head)


def head_shown(state: State) -> HeadView | RowView | None:
    """The newest weights of the run on screen that are here: of a whole head, or of a long text one of its rows."""
    site, ran = state.site, state.ran
    view = state.results.row if site is not None and site.is_long else state.results.head
    return view if view is not None and ran is not None and view.run == ran.run else None


def row_of(view: HeadView | RowView, query: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Weights and mask of one query, (keys,) each; of a view that holds one row, that one."""
    if isinstance(view, RowView):
        return view.weights, view.masked
    return view.weights[query], None if view.masked is None else view.masked[query]


def wanted_comparison(state: State) -> CompareRequest | None:
    """The selected head and the next token, beside the model as it is; None where that is here.

    Of a long text it comes in parts: this asks for what is missing.
    """
    ran, site, selection = state.ran, state.site, state.selection
    if ran is None or site is None:
        return None
    position = ran.masks[0] if ran.masks and selection.query not in ran.masks else predicting_position(state, ran)
    request = CompareRequest(run=ran.run, site=site.ref, head=selection.head, position=position)
    view = state.results.comparison
    if view is None or not isinstance(view.request, CompareRequest):
        return request
    if replace(view.request, ticket=0, have=0.0) != request:
        return request
    return None if view.done == 1 else replace(request, have=view.done)


def head_name(state: State) -> str:
    """ "Layer 5, head 5", with the stack where a model has several."""
    site, ran = state.site, state.ran
    if site is None or ran is None:
        return "No head"
    several = len({s.stack for s in ran.sites}) > 1
    prefix = {"encoder": "Encoder layer", "decoder": "Decoder layer", "cross": "Cross-attention layer"}[site.stack]
    return f"{prefix if several else 'Layer'} {site.layer}, head {state.selection.head}"


def token_word(state: State, position: int) -> str:
    """The token at `position` of those that look at the selected site, as it is called in a sentence: "to"."""
    ran, site = state.ran, state.site
    if ran is None:
        return ""
    tokens = ran.tokens if site is None else site_tokens(ran, site)[0]
    return shortened(tokens[position].word) if 0 <= position < len(tokens) else ""


def site_words(ran: Ran, site: Site) -> tuple[list[str], list[str]]:
    """What to call each query and each key of `site`; numbers where they are no tokens of the run's texts."""
    queries, keys = _site_words(ran, site)
    return list(queries), list(keys)


@lru_cache(maxsize=8)  # panels ask at every change of state
def _site_words(ran: Ran, site: Site) -> tuple[tuple[str, ...], tuple[str, ...]]:
    sides = zip(site_tokens(ran, site), (site.queries, site.keys), strict=True)
    queries, keys = (
        tuple(shortened(token.word) for token in tokens) if len(tokens) == count else tuple(map(str, range(count)))
        for tokens, count in sides
    )
    return queries, keys


def site_texts(ran: Ran, site: Site) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What each query and each key of `site` adds to the run's texts, with the white space before it."""
    queries, keys = (_texts(tokens) for tokens in site_tokens(ran, site))
    return queries, keys


def _texts(tokens: tuple[Token, ...]) -> tuple[str, ...]:
    texts, end = [], 0
    for token in tokens:
        gap = " " if token.start > end else ""  # what no token covers, between two of them, is white space
        texts.append(gap + token.text if token.start >= end else "")  # bytes of one character all cover it
        end = max(end, token.end)
    return tuple(texts)


def predicting_position(state: State, ran: Ran) -> int:
    """Where the next token is read: at the selected query, at the end while that is one of the encoder's tokens."""
    site, last = state.site, len(ran.tokens) - 1
    if site is not None and site_tokens(ran, site)[0] is not ran.tokens:
        return last
    return min(state.selection.query, last)


def byte_note(label: str) -> str:
    """A line for a tooltip on what the marks in a token's label mean, with its line break; "" where there are none."""
    found = _BYTES.search(label)
    if found is None:
        return ""
    which = f"byte{'s' if '·' in found[1] else ''} {found[1].replace('·', ' ')}"
    return f"\n{found[0]}: {which} of a character that several tokens share"


def shortened(text: str) -> str:
    """`text` with its end left out where it is long: a token may be a word of thousands of letters."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
