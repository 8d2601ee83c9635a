"""State B of a comparison: how an intent sets it, swaps it with what is open, and chooses its head. Pure."""

from __future__ import annotations

from dataclasses import replace

from attention_explorer.session.comparing import loses_its_continuation, opened_from
from attention_explorer.session.intents import CompareWith, OpenDocument, SelectHeadOfB, SwapStates
from attention_explorer.session.rules import rule
from attention_explorer.session.state import Compared, Notice, State
from attention_explorer.session.text_limits import check_document

_IN_NO_TREE = (
    "What was written after B's text stands in no tree of branches: A is its text alone. In Decode it can be written "
    "again."
)
_NO_B = "There is no B yet. Make one of what is open with Ctrl+B, or type a text for it in Compare."


@rule.register
def _(intent: CompareWith, state: State) -> State:
    b = intent.compared
    if b is not None and b.document.compared is not None:
        raise ValueError("B is compared with nothing in turn.")
    if b is not None:
        check_document(b.document)
    return state.with_document(compared=b)


@rule.register
def _(_intent: SwapStates, state: State) -> State:
    b = _b_of(state)
    opened = rule(OpenDocument(opened_from(b, state), state.placement), state)
    return replace(opened, notice=Notice("info", _IN_NO_TREE)) if loses_its_continuation(b) else opened


@rule.register
def _(intent: SelectHeadOfB, state: State) -> State:
    b = _b_of(state)
    if intent.site is None:
        return state.with_document(compared=replace(b, own_head=False))
    selection = replace(b.document.selection, site=intent.site, head=max(0, intent.head))
    return state.with_document(compared=replace(b, document=replace(b.document, selection=selection), own_head=True))


def _b_of(state: State) -> Compared:
    if state.document.compared is None:
        raise ValueError(_NO_B)
    return state.document.compared
