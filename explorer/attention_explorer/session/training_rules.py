"""How a training changes what is on screen: what a person does to it, and what its process tells. Pure."""

from __future__ import annotations

from dataclasses import replace

from attention_explorer.session.intents import (
    DiscardTraining,
    OpenCheckpoint,
    RestoreDocument,
    SetText,
    TakeUpTraining,
    TellTraining,
    Train,
    TrainingsLeft,
    TrainingTold,
)
from attention_explorer.session.rules import rule, without_sentence
from attention_explorer.session.state import Notice, State
from attention_explorer.session.training import FELL, LeftTraining, TrainingState
from attention_models.protocol.training_messages import (
    Began,
    Classified,
    Dissect,
    Dissected,
    Ended,
    Failed,
    Fell,
    Go,
    Learned,
    Measured,
    NotDissected,
    OneBatch,
    Said,
    Save,
    Saved,
    SnapshotWritten,
    Write,
    Wrote,
)


@rule.register
def _(intent: Train, state: State) -> State:
    return _unsaid(state).with_live(learning=TrainingState(_next_number(state), intent.asked))


@rule.register
def _(intent: TrainingsLeft, state: State) -> State:
    return replace(state, left_trainings=intent.found)


@rule.register
def _(intent: TakeUpTraining, state: State) -> State:
    left = intent.left  # it has learned so much, whether or not its process ever says so
    learning = TrainingState(_next_number(state), left.asked, left=left, step=left.step, snapshot=left.step)
    return replace(_unsaid(state).with_live(learning=learning), left_trainings=_others(state, left))


@rule.register
def _(intent: DiscardTraining, state: State) -> State:
    if intent.left not in state.left_trainings:
        return state
    discarded = (*state.discarded_trainings, intent.left)
    return replace(state, left_trainings=_others(state, intent.left), discarded_trainings=discarded)


@rule.register
def _(intent: TellTraining, state: State) -> State:
    training = state.live.learning
    if training is None or training.command is intent.message:
        return state
    if not (training.is_alive or training.folder or training.left is not None):
        return state  # it never began
    if isinstance(intent.message, Dissect) and (training.phase not in ("paused", "ended")):
        return state  # the step would be over before it is read
    told = replace(training, command=intent.message)
    if isinstance(intent.message, Dissect):
        return state.with_live(learning=replace(told, is_dissecting=True, undissected=""))
    if isinstance(intent.message, Go | OneBatch | Save | Write):
        state = _unsaid(state)
        told = replace(told, sentence="", phase=training.phase if training.is_alive else "starting")
    return state.with_live(learning=told)


@rule.register
def _(intent: TrainingTold, state: State) -> State:
    training = state.live.learning
    if training is None or training.number != intent.number:
        return state  # of one that was replaced
    match intent.message:
        case Began() as began:
            return _begun(state, training, began)
        case Learned() as learned:
            training = training.learned(learned)
        case Measured(held_out=held_out):
            training = replace(training, curves=training.curves.with_held_out(held_out))
        case SnapshotWritten(step=step):
            training = replace(training, snapshot=step)
        case Saved(folder=folder):
            training = replace(training, saved=folder, saved_step=training.step, sentence="")
            state = replace(state, notice=Notice("info", f"The model is saved: {folder}."))
        case Wrote() | Classified() as wrote:
            training = replace(training, wrote=wrote)
        case Said(sentence=sentence):
            return _said(state, training, sentence)
        case Dissected(dissection=dissection):
            if dissection.step == training.step + 1:  # else it has been taken since
                training = replace(training, dissection=dissection)
            training = replace(training, is_dissecting=False)
        case NotDissected(sentence=sentence):
            training = replace(training, is_dissecting=False, undissected=sentence)
        case Ended() as ended:
            training = replace(training, phase="ended", step=ended.step, sentence=ended.notice)
            if ended.how == "done":
                training = replace(training, fraction=1.0)
            if ended.notice:
                state = replace(state, notice=Notice("warning", ended.notice))
        case Failed(sentence=sentence):
            return _said(state, replace(training, phase="failed"), sentence)
        case Fell():
            return _said(state, replace(training, phase="failed"), _of_fall(training))
    return state.with_live(learning=training)


def _others(state: State, left: LeftTraining) -> tuple[LeftTraining, ...]:
    return tuple(other for other in state.left_trainings if other != left)


def _unsaid(state: State) -> State:
    """Without the notice of what went wrong with the training, which goes on now or makes way for another."""
    return state if state.live.learning is None else without_sentence(state, state.live.learning.sentence)


def _next_number(state: State) -> int:
    return 1 if state.live.learning is None else state.live.learning.number + 1


def _begun(state: State, training: TrainingState, began: Began) -> State:
    is_new = not training.folder  # else it was opened then, and what a person has opened since stays
    curves = replace(training.curves, of="text" if began.classifies else "token")
    training = replace(
        training,
        phase="running",
        folder=began.folder,
        title=began.title,
        example=began.example,
        parameters=began.parameters,
        dropout=began.dropout,
        smoothing=began.smoothing,
        step=began.step,
        curves=curves.with_points(began.points) if is_new else curves.until(began.step),
    )
    state = state.with_live(learning=training)
    if not is_new:
        return state
    # a snapshot, which stays as it is: the folder's own weights are written anew with each pause, under what is open
    snapshot = f"{began.folder}@{began.step}"
    if training.tuning is not None and training.tuning.checkpoint == state.document.checkpoint:
        return rule(RestoreDocument(replace(state.document, checkpoint=snapshot)), state)  # all that is chosen stays
    state = rule(OpenCheckpoint(snapshot), state)
    if not began.example:
        return state
    return rule(SetText(began.example), state)  # what was read before is seldom of the letters that this model knows


def _said(state: State, training: TrainingState, sentence: str) -> State:
    return replace(state.with_live(learning=replace(training, sentence=sentence)), notice=Notice("error", sentence))


def _of_fall(training: TrainingState) -> str:
    if training.snapshot < 0:
        return f"{FELL} Nothing was learned yet: press Train again."
    return f"{FELL} The snapshot of step {training.snapshot:,} is kept: “Go on” takes it up."
