"""`reduce(state, intent)`: the only place where one state becomes the next. Pure: nothing is posted, drawn or changed.

Where an intent changes nothing, the very same state comes back.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Literal, get_args, get_origin, get_type_hints

from explorer.session.arrivals import arrive
from explorer.session.branches import MOST_NODES, ROOT, Branches
from explorer.session.defaults import settled
from explorer.session.intents import (
    Arrived,
    AskSamples,
    AskStep,
    Busy,
    ClearInterventions,
    DeleteBranch,
    GoToNode,
    Intent,
    Measure,
    NameBranch,
    OpenCheckpoint,
    PaintCells,
    Place,
    PutIntervention,
    RemoveIntervention,
    RestoreDocument,
    SayInTurn,
    SelectCell,
    SelectHead,
    SelectKey,
    SelectQuery,
    SetChat,
    SetDecoding,
    SetPicture,
    SetStrategy,
    SetTarget,
    SetText,
    SetTurns,
    SetView,
    Show,
    SwitchIntervention,
)
from explorer.session.state import Document, Listed, State, ViewOptions, clamped, site_of
from explorer.session.talking import as_chat, as_text, with_prompt
from explorer.session.writing import Asked
from models.chat import MOST_TURNS, Chat
from models.interventions import Intervention, Mask, is_neutral, same_slot
from models.quality_requests import QualityRequest
from models.values import SiteRef

_LASTING_LANES = frozenset({"load", "forward"})
"""Lanes whose notices stay until the checkpoint or the text is another one, whatever else is done."""

TEXT_LANES = frozenset({"forward", "decode", "decode:play"})
"""Lanes whose notices speak of the text: changing it answers them."""


MOST_NAME = 80
"""Characters of the name of a branch."""

_OF_THE_PROGRAM = (Arrived, Busy, Show)


def reduce(state: State, intent: Intent) -> State:
    """The state after `intent`.

    Raises:
        TypeError: no rule for this kind of intent.
        ValueError: the intent names a head, a view option or a value that does not exist; the sentence says which.
    """
    new = _reduce(intent, state)
    if new.document.origin != state.document.origin:
        new = _broken_off(new)  # what is being written is of another text
    went_on = not isinstance(intent, _OF_THE_PROGRAM) and new.document != state.document
    if went_on and new.notice is not None and new.notice is state.notice and new.notice.lane not in _LASTING_LANES:
        return replace(new, notice=None)  # it was said of something that the person has left behind
    return new


@singledispatch
def _reduce(intent: object, state: State) -> State:
    raise TypeError(f"No rule says what {type(intent).__name__} does to the state.")


# --------------------------------------------------------------------------- checkpoint and text


@_reduce.register
def _(intent: OpenCheckpoint, state: State) -> State:
    opened = _choose(state, intent.reference)
    return opened if opened is state else replace(opened, restored=False)


@_reduce.register
def _(intent: Place, state: State) -> State:
    reference = state.document.checkpoint if intent.reference is None else intent.reference
    if (intent.placement, reference) == (state.placement, state.document.checkpoint):
        return state
    # of the same checkpoint the text, the selection and what was changed mean the same there
    same = reference == state.document.checkpoint
    state = _broken_off(state)  # a load calls off what was asked for
    state = _without_notice(state.with_document(checkpoint=reference), {"load", *TEXT_LANES})
    return replace(state, placement=intent.placement, loading=reference, restored=same, refused=None)


@_reduce.register
def _(intent: SetText, state: State) -> State:
    return _with_prompt(state, with_prompt(state.document, intent.text))


@_reduce.register
def _(intent: SetChat, state: State) -> State:
    return _with_prompt(state, as_chat(state.document) if intent.on else as_text(state.document))


@_reduce.register
def _(intent: SetTurns, state: State) -> State:
    if not 1 <= len(intent.turns) <= MOST_TURNS:
        raise ValueError(f"A conversation of {len(intent.turns)} turns is not offered: 1 to {MOST_TURNS}.")
    return _with_prompt(state, with_prompt(state.document, Chat(intent.turns)))


@_reduce.register
def _(intent: SayInTurn, state: State) -> State:
    turns, place = state.document.turns, intent.place
    if not 0 <= place < len(turns):
        raise ValueError(f"There is no turn {place}: the conversation has {len(turns)}.")
    said = replace(turns[place], text=intent.text)
    return _with_prompt(state, with_prompt(state.document, Chat((*turns[:place], said, *turns[place + 1 :]))))


def _with_prompt(state: State, document: Document) -> State:
    if document == state.document:
        return state
    return replace(_another_text(state), document=document, restored=False)


@_reduce.register
def _(intent: SetTarget, state: State) -> State:
    if intent.target == state.document.target:
        return state
    return replace(_another_text(state.with_document(target=intent.target)), restored=False)


@_reduce.register
def _(intent: SetPicture, state: State) -> State:
    if intent.picture == state.document.picture:
        return state
    return replace(_another_text(state.with_document(picture=intent.picture)), restored=False)


@_reduce.register
def _(intent: RestoreDocument, state: State) -> State:
    if intent.document == state.document:
        return state
    state = _broken_off(state)
    chosen = _choose(state, intent.document.checkpoint)
    if intent.document.question != state.document.question:
        chosen = _another_text(chosen)
    restored = replace(chosen, document=intent.document, restored=True)
    if chosen.loading is None and restored.up_to_date and restored.ran is not None:
        # nothing runs that could settle it: the selection is for the run on screen
        selection = settled(restored.document.selection, restored.ran, restored.document.checkpoint)
        return replace(restored.with_document(selection=selection), restored=False)
    # Not clamped: the restored selection belongs to the restored text, which has yet to run.
    return restored


def _choose(state: State, reference: str) -> State:
    """Ask for another checkpoint; what is open stays open until it arrives."""
    loaded = state.results.loaded
    underway = state.loading or (loaded.info.reference if loaded else None)
    if reference == underway:
        return state
    return replace(_without_notice(state.with_document(checkpoint=reference), {"load"}), loading=reference)


def _another_text(state: State) -> State:
    """What was said about the last text no longer matters."""
    return replace(_without_notice(state, TEXT_LANES), refused=None)


def _without_notice(state: State, lanes: frozenset[str] | set[str]) -> State:
    return replace(state, notice=None) if state.notice is not None and state.notice.lane in lanes else state


# --------------------------------------------------------------------------- interventions


@_reduce.register
def _(intent: PutIntervention, state: State) -> State:
    return _put(state, intent.value)


@_reduce.register
def _(intent: PaintCells, state: State) -> State:
    if not intent.cells:
        return state
    site, head = state.edit_scope
    stroke = Mask("painted", cells=tuple((q, k, intent.allow) for q, k in intent.cells), site=site, head=head)
    before = [listed.value for listed in state.document.interventions if same_slot(listed.value, stroke)]
    cells = {(q, k): allow for mask in (*before, stroke) if isinstance(mask, Mask) for q, k, allow in mask.cells or ()}
    return _put(state, replace(stroke, cells=tuple((q, k, allow) for (q, k), allow in sorted(cells.items()))))


def _put(state: State, value: Intervention) -> State:
    """`value` in the place of the first intervention with its slot, and of any others with it; else at the end."""
    listed = state.document.interventions
    place = next((i for i, other in enumerate(listed) if same_slot(other.value, value)), len(listed))
    others = tuple(other for other in listed[place:] if not same_slot(other.value, value))
    new = () if is_neutral(value) else (Listed(value),)
    return _with_interventions(state, (*listed[:place], *new, *others))


@_reduce.register
def _(intent: SwitchIntervention, state: State) -> State:
    listed = _checked(state, intent.index)
    changed = replace(listed[intent.index], on=intent.on)
    return _with_interventions(state, (*listed[: intent.index], changed, *listed[intent.index + 1 :]))


@_reduce.register
def _(intent: RemoveIntervention, state: State) -> State:
    listed = _checked(state, intent.index)
    return _with_interventions(state, (*listed[: intent.index], *listed[intent.index + 1 :]))


@_reduce.register
def _(intent: ClearInterventions, state: State) -> State:
    return _with_interventions(state, ())


def _with_interventions(state: State, listed: tuple[Listed, ...]) -> State:
    if listed == state.document.interventions:
        return state
    return replace(_another_text(state.with_document(interventions=listed)), restored=False)


def _checked(state: State, index: int) -> tuple[Listed, ...]:
    listed = state.document.interventions
    if not 0 <= index < len(listed):
        raise ValueError(f"There is no intervention {index}: the list has {len(listed)}.")
    return listed


# --------------------------------------------------------------------------- writing


@_reduce.register
def _(intent: SetDecoding, state: State) -> State:
    return state.with_document(decoding=intent.decoding)


@_reduce.register
def _(intent: SetStrategy, state: State) -> State:
    decoding = state.document.decoding
    settings = replace(decoding.settings, strategy=intent.strategy)
    return state.with_document(decoding=replace(decoding, settings=settings, chosen=True))


@_reduce.register
def _(intent: AskStep, state: State) -> State:
    asked = Asked(replace(intent.request, ticket=0), (intent.parent,), state.document.branches.current)
    if asked.grows:
        _check_paths(state.document.branches, asked.parents, (intent.request.ids,))
    return _asked(state, asked, intent.goes_on)


@_reduce.register
def _(intent: AskSamples, state: State) -> State:
    request, branches = replace(intent.request, ticket=0), state.document.branches
    if len(intent.parents) != len(request.samples):
        raise ValueError(f"{len(request.samples)} samples can not go on from {len(intent.parents)} nodes.")
    _check_paths(branches, intent.parents, request.ids)
    return _asked(state, Asked(request, intent.parents, branches.current, intent.shown), intent.goes_on)


def _asked(state: State, asked: Asked, goes_on: bool) -> State:
    request, question = asked.request, state.document.question
    if (request.text, request.target) != (question.text, question.target):
        raise ValueError("The step is of another text than the one in the input.")
    if request.interventions != question.interventions:
        raise ValueError("The step is of a model that is changed otherwise than the interventions say.")
    if goes_on and state.passage:
        return replace(state, asked=asked)
    number = state.passages + 1
    return replace(state, asked=asked, passage=number, passages=number)


def _check_paths(branches: Branches, parents: tuple[int, ...], paths: tuple[tuple[int, ...], ...]) -> None:
    for parent, ids in zip(parents, paths, strict=True):
        if branches.ids(_known(branches, parent)) != ids:
            raise ValueError(f"The step is not one after node {parent}: other tokens lead there.")
    if not branches.has_room(len(parents)):
        raise ValueError(f"The branches of this text hold {MOST_NODES:,} tokens, the most that are kept.")


@_reduce.register
def _(intent: GoToNode, state: State) -> State:
    branches = state.document.branches
    return _with_branches(state, branches.go(_known(branches, intent.node)))


@_reduce.register
def _(intent: NameBranch, state: State) -> State:
    branches = state.document.branches
    if intent.node == ROOT:
        raise ValueError("The prompt is no branch: it has no name.")
    return _with_branches(state, branches.named(_known(branches, intent.node), intent.name[:MOST_NAME]))


@_reduce.register
def _(intent: DeleteBranch, state: State) -> State:
    branches = state.document.branches
    if intent.node == ROOT:
        raise ValueError("The prompt is no branch: it can not be deleted.")
    fewer = branches.without(branches.branch_start(_known(branches, intent.node)))
    if state.asked is not None and state.asked.grows and not all(parent in fewer for parent in state.asked.parents):
        state = _broken_off(state)
    return _with_branches(state, fewer)


def _with_branches(state: State, branches: Branches) -> State:
    document = state.document.with_branches(branches)
    return state if document is state.document else replace(state, document=document)


def _known(branches: Branches, node: int) -> int:
    if node not in branches:
        raise ValueError(f"There is no node {node} in this tree.")
    return node


def _broken_off(state: State) -> State:
    """Nobody waits for the step that is under way, nor for what would follow it."""
    return replace(state, asked=None, passage=0) if state.asked is not None or state.passage else state


# --------------------------------------------------------------------------- selection


@_reduce.register
def _(intent: SelectHead, state: State) -> State:
    site = site_of(state.ran, intent.site)
    if site is None:
        raise ValueError(_no_such_site(state, intent.site))
    if not 0 <= intent.head < site.heads:
        raise ValueError(
            f"There is no head {intent.head} in {site.stack} layer {site.layer}: its heads are 0 to {site.heads - 1}."
        )
    return _select(state, site=intent.site, head=intent.head)


@_reduce.register
def _(intent: SelectQuery, state: State) -> State:
    return _select(state, query=intent.query)


@_reduce.register
def _(intent: SelectKey, state: State) -> State:
    return _select(state, key=intent.key)


@_reduce.register
def _(intent: SelectCell, state: State) -> State:
    return _select(state, query=intent.query, key=intent.key)


def _select(state: State, **changes: object) -> State:
    selection = replace(state.document.selection, **changes)  # type: ignore[arg-type]
    return state.with_document(selection=clamped(selection, state.ran))


def _no_such_site(state: State, ref: SiteRef) -> str:
    if state.ran is None:
        return f"There is no {ref.stack} layer {ref.layer} to select: no text has run yet."
    layers = [site.layer for site in state.ran.sites if site.stack == ref.stack]
    if not layers:
        return f"There is no {ref.stack} layer {ref.layer}: this model has no {ref.stack} attention to look at."
    return f"There is no {ref.stack} layer {ref.layer}: the {ref.stack} layers are {min(layers)} to {max(layers)}."


# --------------------------------------------------------------------------- view

_VIEW_TYPES = get_type_hints(ViewOptions)


@_reduce.register
def _(intent: SetView, state: State) -> State:
    if intent.option not in _VIEW_TYPES:
        raise ValueError(f"There is no view option {intent.option!r}: there are {', '.join(_VIEW_TYPES)}.")
    _check_view_value(intent.option, intent.value)
    return state.with_document(view=replace(state.document.view, **{intent.option: intent.value}))  # type: ignore[arg-type]


def _check_view_value(option: str, value: object) -> None:
    kind = _VIEW_TYPES[option]
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            choices = ", ".join(map(repr, get_args(kind)))
            raise ValueError(f"The view option {option} cannot be {value!r}: it is one of {choices}.")
    elif type(value) is not kind:  # not isinstance: True is an int
        raise ValueError(f"The view option {option} cannot be {value!r}: it is a {kind.__name__}.")
    elif option == "top" and value < 1:  # type: ignore[operator]
        raise ValueError(f"The view option top cannot be {value!r}: at least one candidate is listed.")


# --------------------------------------------------------------------------- the engine and the window


@_reduce.register
def _(intent: Arrived, state: State) -> State:
    return arrive(state, intent.result)


@_reduce.register
def _(intent: Measure, state: State) -> State:
    if intent.request == state.measuring:
        return state
    results = state.results if intent.request is None else replace(state.results, quality=None)
    return replace(_without_notice(state, {QualityRequest.lane}), measuring=intent.request, results=results)


@_reduce.register
def _(intent: Busy, state: State) -> State:
    if intent.lanes == state.busy:
        return state
    # A request that was called off is never answered, so its progress ends here.
    progress = tuple(p for p in state.progress if p.request.lane in intent.lanes)
    return replace(state, busy=intent.lanes, progress=progress)


@_reduce.register
def _(intent: Show, state: State) -> State:
    return state if intent.notice == state.notice else replace(state, notice=intent.notice)
