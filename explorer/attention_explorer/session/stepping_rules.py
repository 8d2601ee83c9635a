"""Going through the training of the open checkpoint, by its snapshots. Pure.

Which step is shown is a matter of looking, as the place of a scroll bar is: undo leaves it alone, and what is read,
selected, changed and shown stays. A session file keeps it.
"""

from __future__ import annotations

from dataclasses import replace

from attention_explorer.session.defaults import END, last_token
from attention_explorer.session.intents import FollowTraining, GoToStep, SnapshotsFound
from attention_explorer.session.rules import broken_off, rule, without_notice
from attention_explorer.session.state import Document, State
from attention_models.protocol.loading import LoadRequest, StepRequest
from attention_models.protocol.values import TrainingSteps


@rule.register
def _(intent: GoToStep, state: State) -> State:
    return _at(replace(state, following=False) if state.following else state, intent.step)


@rule.register
def _(intent: FollowTraining, state: State) -> State:
    training = state.training
    if training is None or intent.on == state.following:
        return state
    state = replace(state, following=intent.on)
    return _at(state, training.steps[-1]) if intent.on else state


@rule.register
def _(intent: SnapshotsFound, state: State) -> State:
    training = state.training
    if training is None or training.reference != intent.reference or not intent.steps:
        return state
    if intent.steps != training.steps:
        state = replace(state, snapshots=intent.steps)
    return _at(state, intent.steps[-1]) if state.following else state


def _at(state: State, step: int | None) -> State:
    """Ask for the model as it was after `step`; None for the end of the training."""
    training, loaded = state.training, state.results.loaded
    if training is None or loaded is None or state.loading is not None:
        return state
    if step is None and state.is_own_training:
        step = training.steps[-1]  # the same weights, in a file that stays as it is
    if step is not None and step not in training.steps:
        raise ValueError(f"There is no snapshot of step {step:,}.")
    reference = training.at(step)
    if reference == (loaded.info.reference if state.stepping is None else state.stepping.reference):
        return state
    state = without_notice(broken_off(state.with_document(checkpoint=reference)), {LoadRequest.lane, StepRequest.lane})
    ran = state.ran
    if ran is None or state.inputs == state.refused:  # there is nothing that could be shown in its place at once
        return replace(state, loading=reference, opening=None, restored=True, refused=None)
    if ran.inputs.prompt != state.document.prompt and state.document.selection.query == last_token(ran):
        selection = replace(state.document.selection, query=END)  # what has not run yet has an end too
        state = state.with_document(selection=selection)
    return replace(
        state, stepping=StepRequest(reference=reference, placement=loaded.request.placement, inputs=state.inputs)
    )


def same_but_for_the_step(document: Document, training: TrainingSteps | None) -> Document:
    """`document` at the end of `training`, where it is of that: all its steps are one to undo."""
    if training is None or not is_of(document.checkpoint, training):
        return document
    return replace(document, checkpoint=training.reference)


def at_the_step_of(document: Document, present: Document, training: TrainingSteps | None) -> Document:
    """`document` at the step at which `present` is, where both are of `training`."""
    if training is None or not (is_of(document.checkpoint, training) and is_of(present.checkpoint, training)):
        return document
    return replace(document, checkpoint=present.checkpoint)


def is_of(reference: str, training: TrainingSteps) -> bool:
    """Whether it names the end of `training` or one of its steps."""
    base, at, step = reference.rpartition("@")
    return reference == training.reference or (bool(at) and base == training.reference and step.isdecimal())
