"""What the model writes and how: how an intent asks for it, and changes the tree of it. Pure."""

from __future__ import annotations

from dataclasses import replace

from attention_explorer.session.branches import MOST_NODES, ROOT, Branches
from attention_explorer.session.intents import (
    AskSamples,
    AskStep,
    DeleteBranch,
    GoToNode,
    NameBranch,
    SetDecoding,
    SetStrategy,
    ShowBeam,
)
from attention_explorer.session.prompt_modes import with_prompt
from attention_explorer.session.rules import broken_off, rule
from attention_explorer.session.state import Document, State
from attention_explorer.session.writing import Into, PendingStep
from attention_models.protocol.decoding import DecodeSamplesView, DecodeStepRequest, DecodeStepView
from attention_models.protocol.prompt import plain_text

MOST_NAME = 80
"""Characters of the name of a branch."""


@rule.register
def _(intent: SetDecoding, state: State) -> State:
    return state.with_document(decoding=intent.decoding)


@rule.register
def _(intent: SetStrategy, state: State) -> State:
    decoding = state.document.decoding
    settings = replace(decoding.settings, strategy=intent.strategy)
    return state.with_document(decoding=replace(decoding, settings=settings, chosen=True))


@rule.register
def _(intent: AskStep, state: State) -> State:
    into = _into(intent.request, state)
    parents = (intent.parent,) if into == "branches" else ()
    pending = PendingStep(intent.request, parents, state.document.branches.current, into)
    if pending.grows:
        _check_paths(state.document.branches, pending.parents, (intent.request.ids,))
    return _pending(state, pending, intent.goes_on)


@rule.register
def _(intent: AskSamples, state: State) -> State:
    request, branches = intent.request, state.document.branches
    if len(intent.parents) != len(request.samples):
        raise ValueError(f"{len(request.samples)} samples cannot go on from {len(intent.parents)} nodes.")
    _check_paths(branches, intent.parents, request.ids)
    return _pending(state, PendingStep(request, intent.parents, branches.current, shown=intent.shown), intent.goes_on)


def _into(request: DecodeStepRequest, state: State) -> Into:
    if not request.into_input:
        return "branches"
    loaded = state.results.loaded
    return "target" if loaded is not None and loaded.info.family == "seq2seq" else "prompt"


def _pending(state: State, pending: PendingStep, goes_on: bool) -> State:
    asks, inputs = pending.request.inputs, state.document.inputs
    if (asks.prompt, asks.target) != (inputs.prompt, inputs.target):
        raise ValueError("The step is of another text than the one in the input.")
    if asks.interventions != inputs.interventions:
        raise ValueError("The step is of a model that is changed otherwise than the interventions say.")
    if goes_on and state.passage:
        return replace(state, pending_step=pending)
    number = state.passages + 1
    return replace(state, pending_step=pending, passage=number, passages=number)


def written(document: Document, pending: PendingStep, view: DecodeStepView | DecodeSamplesView) -> Document:
    """`document` with the answer to `pending` in it."""
    if isinstance(view, DecodeSamplesView) or pending.into == "branches":
        return document.with_branches(pending.grown(document.branches, view))
    if view.ending == "model":
        return document
    if pending.into == "target":
        return replace(document, target=plain_text(view.whole))
    return with_prompt(document, view.whole)


def _check_paths(branches: Branches, parents: tuple[int, ...], paths: tuple[tuple[int, ...], ...]) -> None:
    for parent, ids in zip(parents, paths, strict=True):
        if branches.ids(_known(branches, parent)) != ids:
            raise ValueError(f"The step is not one after node {parent}: other tokens lead there.")
    if not branches.has_room(len(parents)):
        raise ValueError(f"The branches of this text hold {MOST_NODES:,} tokens, the most that are kept.")


@rule.register
def _(intent: GoToNode, state: State) -> State:
    branches = state.document.branches
    return _with_branches(state, branches.go(_known(branches, intent.node)))


@rule.register
def _(intent: ShowBeam, state: State) -> State:
    return state if intent.ids == state.beam else replace(state, beam=intent.ids)


@rule.register
def _(intent: NameBranch, state: State) -> State:
    branches = state.document.branches
    if intent.node == ROOT:
        raise ValueError("The prompt is no branch: it has no name.")
    return _with_branches(state, branches.named(_known(branches, intent.node), intent.name[:MOST_NAME]))


@rule.register
def _(intent: DeleteBranch, state: State) -> State:
    branches = state.document.branches
    if intent.node == ROOT:
        raise ValueError("The prompt is no branch: it cannot be deleted.")
    fewer = branches.without(branches.branch_start(_known(branches, intent.node)))
    if (
        state.pending_step is not None
        and state.pending_step.grows
        and not all(parent in fewer for parent in state.pending_step.parents)
    ):
        state = broken_off(state)
    return _with_branches(state, fewer)


def _with_branches(state: State, branches: Branches) -> State:
    document = state.document.with_branches(branches)
    return state if document is state.document else replace(state, document=document)


def _known(branches: Branches, node: int) -> int:
    if node not in branches:
        raise ValueError(f"There is no node {node} in this tree.")
    return node
