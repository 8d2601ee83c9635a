"""Where the rules meet: one for each kind of intent, and what several of them do to a state. Pure."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch

from attention_explorer.session.state import Document, State
from attention_models.protocol.decoding import DecodeStepRequest
from attention_models.protocol.request import Lane
from attention_models.protocol.running import ForwardRequest

TEXT_LANES = frozenset({ForwardRequest.lane, DecodeStepRequest.lane})
"""Lanes whose notices speak of the text: changing it answers them."""


@singledispatch
def rule(intent: object, state: State) -> State:
    """The state after an intent, by the rule that is registered for its kind."""
    raise TypeError(f"No rule says what {type(intent).__name__} does to the state.")


def chooses(state: State) -> bool:
    """Whether the open model chooses between the texts that run together, and reads two of them as one choice."""
    loaded = state.results.loaded
    head = None if loaded is None else loaded.info.class_head
    return loaded is not None and head is not None and head.of == "choice" and loaded.info.pairs


def another_text(state: State) -> State:
    """What was said about the last text no longer matters."""
    return replace(without_notice(state, TEXT_LANES), refused=None, expected=(), written_on=False)


def with_prompt_of(state: State, document: Document) -> State:
    """The state with a document that has something else for the model to read."""
    if document == state.document:
        return state
    return replace(another_text(state), document=document, restored=False)


def without_notice(state: State, lanes: frozenset[Lane] | set[Lane]) -> State:
    """Without the sentence before the person, where it was said of one of `lanes`."""
    return replace(state, notice=None) if state.notice is not None and state.notice.lane in lanes else state


def without_sentence(state: State, sentence: str) -> State:
    """Without that sentence before the person, where it is the one that is there."""
    return replace(state, notice=None) if state.notice is not None and state.notice.text == sentence else state


def broken_off(state: State) -> State:
    """Nobody waits for the step of writing that is under way, nor for what would follow it."""
    return replace(state, pending_step=None, passage=0) if state.pending_step is not None or state.passage else state
