"""What is to be on screen, as a tour or a lesson asks for it: whether it is, and intents that bring it about. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Annotated, Literal

import msgspec

from attention_explorer.session.intents import (
    BlockCell,
    ClearInterventions,
    Intent,
    OpenCheckpoint,
    RestoreDocument,
    SelectCell,
    SelectHead,
    SelectQuery,
)
from attention_explorer.session.named_tokens import Count, Place, Word
from attention_explorer.session.state import Document, Selection, State, site_of
from attention_explorer.session.texts import alone
from attention_models.protocol.named_tokens import Named, named, position_of
from attention_models.protocol.values import SiteRef, Token, site_tokens


class Goal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A condition on what is on screen. What is not named may be as it is; tokens are named by their words."""

    checkpoint: Word | None = None
    text: Annotated[str, msgspec.Meta(max_length=1000)] | None = None
    plain: bool = False  # nothing is changed in the model
    panel: Word | None = None  # can be seen
    stack: Literal["decoder", "encoder", "cross"] = "decoder"
    layer: Place | None = None
    head: Place = 0
    query: Word | None = None  # and which of those alike
    query_place: Count = 1
    key: Word | None = None
    key_place: Count = 1
    blocked: bool = False  # the selected cell is masked at the selected head

    @property
    def site(self) -> SiteRef | None:
        return None if self.layer is None else SiteRef(self.stack, self.layer)

    def holds(self, state: State, front: Collection[str]) -> bool:
        """Whether it is so, with the panels `front` in sight, and the numbers on screen are of it."""
        document, ran, selection = state.document, state.ran, state.selection
        if ran is None or not state.up_to_date or state.loading is not None:
            return False
        is_open = self.checkpoint in (None, document.checkpoint) and self.text in (None, document.text)
        if not is_open or (self.plain and document.interventions):
            return False
        if self.panel is not None and self.panel not in front:
            return False
        if self.site is not None and (selection.site, selection.head) != (self.site, self.head):
            return False
        query, key = self.cell(state)
        if (query is not None and query != selection.query) or (key is not None and key != selection.key):
            return False
        return not self.blocked or (selection.query, selection.key, False) in state.painted_cells

    def intents(self, state: State) -> tuple[Intent, ...]:
        """What to do from here; a panel is for the window to bring out. Empty while its tokens are not known."""
        document, ran = state.document, state.ran
        checkpoint = document.checkpoint if self.checkpoint is None else self.checkpoint
        if self.text is not None and (checkpoint, self.text) != (document.checkpoint, document.text):
            fresh = replace(
                alone(document), text=self.text, second=None, target=None, chat=False, selection=Selection()
            )
            changes = () if self.plain else document.interventions
            return (RestoreDocument(replace(fresh, checkpoint=checkpoint, interventions=changes)),)  # one step to undo
        if checkpoint != document.checkpoint:
            return (OpenCheckpoint(checkpoint),)
        if self.plain and document.interventions:
            return (ClearInterventions(),)
        if ran is None or not state.up_to_date:
            return ()
        found: list[Intent] = []
        if self.site is not None and site_of(ran, self.site) is not None:
            found.append(SelectHead(self.site, self.head))
        query, key = self.cell(state)
        if key is not None:
            found.append(SelectCell(state.selection.query if query is None else query, key))
        elif query is not None:
            found.append(SelectQuery(query))
        if self.blocked:
            found.append(BlockCell(True))
        return tuple(found)

    def cell(self, state: State) -> tuple[int | None, int | None]:
        """Where its query and its key stand at the site that it names, or the selected one; None for none."""
        ran = state.ran
        if ran is None:
            return None, None
        site = site_of(ran, self.site or state.selection.site)
        queries, keys = (ran.tokens, ran.tokens) if site is None else site_tokens(ran, site)
        return _place(self.query, self.query_place, queries), _place(self.key, self.key_place, keys)


def goal_at(document: Document, state: State) -> Goal:
    """The place that is selected in a document, its tokens called as those of the run on screen."""
    selection, ran = document.selection, state.ran
    site, query, key = selection.site, Named("", 0), Named("", 0)
    found = None if ran is None else site_of(ran, site)
    if ran is not None:
        queries, keys = (ran.tokens, ran.tokens) if found is None else site_tokens(ran, found)
        query = named(selection.query, queries) if 0 <= selection.query < len(queries) else query
        key = named(selection.key, keys) if 0 <= selection.key < len(keys) else key
    return Goal(
        checkpoint=document.checkpoint,
        stack="decoder" if site is None else site.stack,  # type: ignore[arg-type]
        layer=None if site is None else site.layer,
        head=selection.head,
        query=query.word or None,
        query_place=query.place,
        key=key.word or None,
        key_place=key.place,
    )


def _place(word: str | None, place: int, tokens: Sequence[Token]) -> int | None:
    """None for no word; -1, which no token has, where no token is called by it."""
    if word is None:
        return None
    position = position_of(word, place, tokens)
    return -1 if position is None else position
