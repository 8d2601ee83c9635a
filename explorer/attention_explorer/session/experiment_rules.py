"""How an experiment changes what is on screen: what a person does to it, and what its process tells. Pure."""

from __future__ import annotations

from dataclasses import replace

from attention_explorer.session.experiment import ExperimentState
from attention_explorer.session.intents import (
    ExperimentTold,
    OpenCheckpoint,
    OpenRun,
    RunExperiment,
    SetText,
    StopExperiment,
    TellTraining,
)
from attention_explorer.session.rules import rule, without_sentence
from attention_explorer.session.state import Notice, State
from attention_explorer.session.training import FELL, Curves
from attention_models.protocol.experiment_messages import RunsBegan, RunsEnded, RunsLearned, RunsMeasured
from attention_models.protocol.training_messages import Failed, Fell, Pause, Said


@rule.register
def _(intent: RunExperiment, state: State) -> State:
    number = 1 if state.live.experiment is None else state.live.experiment.number + 1
    curves = tuple(Curves() for _ in intent.prepared.runs)
    begun = ExperimentState(number, intent.file, intent.prepared, intent.seed, curves)
    if _learns(state):  # it would take the time that the runs need, and change what the clock says of them
        state, begun = rule(TellTraining(Pause()), state), replace(begun, has_paused=True)
    if state.live.experiment is not None:  # what went wrong with the one before
        state = without_sentence(state, state.live.experiment.sentence)
    return state.with_live(experiment=begun)


@rule.register
def _(intent: StopExperiment, state: State) -> State:
    experiment = state.live.experiment
    if experiment is None or not experiment.is_under_way:
        return state
    if experiment.phase == "starting":  # nothing has been learned that could be told of
        return state.with_live(experiment=replace(experiment, phase="ended", is_stopping=True))
    return state.with_live(experiment=replace(experiment, is_stopping=True))


@rule.register
def _(intent: OpenRun, state: State) -> State:
    state = rule(OpenCheckpoint(intent.model.folder), state)
    return rule(SetText(intent.model.example), state)  # what was read before is seldom of the letters that it knows


@rule.register
def _(intent: ExperimentTold, state: State) -> State:
    experiment = state.live.experiment
    if experiment is None or experiment.number != intent.number or not experiment.is_under_way:
        return state  # of one that was replaced, or is over
    match intent.message:
        case RunsBegan(parameters=parameters):
            experiment = replace(experiment, phase="running", parameters=parameters)
        case RunsLearned() as learned:
            experiment = replace(experiment.learned(learned), has_company=experiment.has_company or _learns(state))
        case RunsMeasured() as measured:
            experiment = experiment.measured(measured)
        case RunsEnded() as ended:
            experiment = replace(experiment, phase="ended", step=ended.step, seconds=ended.seconds, ended=ended)
        case Said(sentence=sentence):
            return _said(state, experiment, sentence)
        case Failed(sentence=sentence):
            return _said(state, replace(experiment, phase="failed"), sentence)
        case Fell():
            return _said(state, replace(experiment, phase="failed"), f"{FELL} Press Run again.")
    return state.with_live(experiment=experiment)


def _learns(state: State) -> bool:
    return state.live.learning is not None and state.live.learning.phase in ("starting", "running")


def _said(state: State, experiment: ExperimentState, sentence: str) -> State:
    return replace(state.with_live(experiment=replace(experiment, sentence=sentence)), notice=Notice("error", sentence))
