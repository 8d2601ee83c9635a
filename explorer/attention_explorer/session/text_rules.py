"""What is read, and by which checkpoint: how an intent changes it. Pure."""

from __future__ import annotations

from dataclasses import replace

from attention_explorer.session.defaults import END, last_token, within_run
from attention_explorer.session.example_rules import with_its_place
from attention_explorer.session.intents import (
    OpenCheckpoint,
    OpenDocument,
    Place,
    RestoreDocument,
    SayInTurn,
    SetChat,
    SetPair,
    SetPicture,
    SetSecond,
    SetTarget,
    SetText,
    SetTurns,
    UseWritten,
)
from attention_explorer.session.prompt_modes import as_chat, as_text, with_prompt
from attention_explorer.session.rules import (
    TEXT_LANES,
    another_text,
    broken_off,
    chooses,
    rule,
    with_prompt_of,
    without_notice,
)
from attention_explorer.session.state import Notice, State
from attention_explorer.session.texts import with_first_of_choices
from attention_models.protocol.chat import MOST_TURNS, Chat
from attention_models.protocol.export import ExportRequest
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.prompt import plain_text


@rule.register
def _(intent: OpenCheckpoint, state: State) -> State:
    opened = _choose(state, intent.reference)
    return opened if opened is state else replace(opened, restored=False)


@rule.register
def _(intent: Place, state: State) -> State:
    reference = state.document.checkpoint if intent.reference is None else intent.reference
    if (intent.placement, reference) == (state.placement, state.document.checkpoint):
        return state
    # of the same checkpoint the text, the selection and what was changed mean the same there
    same = reference == state.document.checkpoint
    selection, ran = state.document.selection, state.ran
    if same and ran is not None and ran.inputs.prompt != state.document.prompt and selection.query == last_token(ran):
        state = state.with_document(selection=replace(selection, query=END))  # what has not run yet has an end too
    state = broken_off(state)  # a load calls off what was asked for
    state = without_notice(state.with_document(checkpoint=reference), {LoadRequest.lane, *TEXT_LANES})
    state = _with_loading(state, reference)
    return replace(state, placement=intent.placement, restored=same, refused=None)


@rule.register
def _(intent: SetText, state: State) -> State:
    change = with_first_of_choices if chooses(state) else with_prompt
    return with_prompt_of(state, change(state.document, intent.text))


@rule.register
def _(intent: SetSecond, state: State) -> State:
    document = replace(state.document, second=intent.second)
    if document.prompt == state.document.prompt:  # its field is opened or closed, and nothing was said in it
        return state.with_document(second=intent.second)
    return with_prompt_of(state, document)


@rule.register
def _(intent: SetPair, state: State) -> State:
    return with_prompt_of(state, with_prompt(state.document, intent.pair))


@rule.register
def _(intent: SetChat, state: State) -> State:
    return with_prompt_of(state, as_chat(state.document) if intent.on else as_text(state.document))


@rule.register
def _(intent: SetTurns, state: State) -> State:
    if not 1 <= len(intent.turns) <= MOST_TURNS:
        raise ValueError(f"A conversation of {len(intent.turns)} turns is not offered: 1 to {MOST_TURNS}.")
    return with_prompt_of(state, with_prompt(state.document, Chat(intent.turns)))


@rule.register
def _(intent: SayInTurn, state: State) -> State:
    turns, place = state.document.turns, intent.place
    if not 0 <= place < len(turns):
        raise ValueError(f"There is no turn {place}: the conversation has {len(turns)}.")
    said = replace(turns[place], text=intent.text)
    return with_prompt_of(state, with_prompt(state.document, Chat((*turns[:place], said, *turns[place + 1 :]))))


@rule.register
def _(intent: SetTarget, state: State) -> State:
    if intent.target == state.document.target:
        return state
    return replace(another_text(state.with_document(target=intent.target)), restored=False)


@rule.register
def _(intent: UseWritten, state: State) -> State:
    loaded = state.results.loaded
    if loaded is not None and loaded.info.family == "seq2seq":
        document = replace(state.document, target=plain_text(intent.whole))
    else:
        document = with_prompt(state.document, intent.whole)
    used = with_prompt_of(state, document)
    return used if used is state else replace(used, expected=intent.ids, written_on=True)


@rule.register
def _(intent: SetPicture, state: State) -> State:
    if intent.picture == state.document.picture:
        return state
    return replace(another_text(state.with_document(picture=intent.picture)), restored=False)


@rule.register
def _(intent: RestoreDocument, state: State) -> State:
    if intent.document == state.document:
        return state
    state = broken_off(state)
    chosen = _choose(state, intent.document.checkpoint)
    if intent.document.inputs != state.document.inputs:
        chosen = another_text(chosen)
    elif state.refused != state.inputs:
        chosen = without_notice(chosen, TEXT_LANES)  # it speaks of what is no longer in the input
    shown = (intent.document.selection, state.of_the_run)
    restored = replace(chosen, document=intent.document, restored=True, opening=None, shown=shown)
    if chosen.loading is None and restored.caught_up and restored.ran is not None:
        # nothing runs that could settle it: the selection is for the run on screen
        selection = within_run(restored.document.selection, restored.ran, restored.document.checkpoint)
        return replace(restored.with_document(selection=selection), restored=False, shown=None)
    # Not clamped: the restored selection belongs to the restored text, which has yet to run.
    return restored


@rule.register
def _(intent: OpenDocument, state: State) -> State:
    document, loaded = intent.document, state.results.loaded
    is_open = loaded is not None and loaded.info.reference == document.checkpoint and state.loading is None
    if is_open and intent.placement == state.placement:
        return with_its_place(replace(rule(RestoreDocument(document), state), example=intent.place))
    state = broken_off(state)
    state = without_notice(state.with_document(checkpoint=document.checkpoint), {LoadRequest.lane})
    state = replace(_with_loading(state, document.checkpoint), placement=intent.placement, refused=None)
    return replace(state, opening=document, opening_place=intent.place)


def _choose(state: State, reference: str) -> State:
    """Ask for another checkpoint; what is open stays open until it arrives."""
    loaded = state.results.loaded
    stepping = None if state.stepping is None else state.stepping.reference
    underway = state.loading or stepping or (loaded.info.reference if loaded else None)
    if reference == underway:
        return state
    return _with_loading(without_notice(state.with_document(checkpoint=reference), {LoadRequest.lane}), reference)


def _with_loading(state: State, reference: str) -> State:
    """A load calls off what was asked of the open model. Nobody would hear of a file that is not written."""
    state = replace(state, loading=reference, opening=None, stepping=None)
    if ExportRequest.lane not in state.live.busy:
        return state
    sentence = "Saving the weights was broken off: another model is opened. No file is left behind."
    return replace(state, notice=Notice("info", sentence, lane=ExportRequest.lane))
