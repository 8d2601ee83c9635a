"""An experiment in the state: what a person does to it, and what its process tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from attention_explorer.session.experiment import ExperimentState
from attention_explorer.session.intents import (
    ExperimentTold,
    OpenRun,
    RunExperiment,
    SetText,
    StopExperiment,
    TellTraining,
    Train,
    TrainingTold,
)
from attention_explorer.session.reduce import reduce
from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_models.protocol.experiment_messages import (
    FromExperiment,
    Measure,
    RunModel,
    RunsBegan,
    RunsEnded,
    RunsLearned,
    RunsMeasured,
)
from attention_models.protocol.training_messages import (
    Asked,
    Began,
    Failed,
    Fell,
    Go,
    HeldOutPoint,
    Learned,
    Pause,
    Said,
    TrainingPoint,
)
from attention_models.training.prepared import Prepared
from tests.explorer.prepared import tiny_experiment

BEGAN = RunsBegan((100, 90))
ENDED = RunsEnded("done", 20, 3.0, (Measure("training loss", ("1.2", "2.3")),))


@pytest.fixture
def prepared(tmp_path: Path) -> Prepared:
    return tiny_experiment(tmp_path)[1]


def point(step: int) -> TrainingPoint:
    return TrainingPoint(step, 1 / step, 0.5, 0.001, 1000.0)


def learned(*steps: int) -> RunsLearned:
    points = tuple(map(point, steps))
    return RunsLearned(steps[-1], (points, points[:1]), 1.5)


def after(prepared: Prepared, *messages: FromExperiment | Fell, state: State | None = None) -> State:
    """What the process of the first experiment tells, in turn."""
    state = reduce(state or State(), RunExperiment("/x.toml", prepared, 3))
    for message in messages:
        state = reduce(state, ExperimentTold(1, message))
    return state


def of(state: State) -> ExperimentState:
    assert state.live.experiment is not None
    return state.live.experiment


def said_in(state: State) -> str:
    assert state.notice is not None
    return state.notice.text


def test_what_its_runs_learn_is_told_of_each(prepared):
    held = HeldOutPoint(5, 2.0, 0.5, 0.25, 100)
    experiment = of(after(prepared, BEGAN, learned(1, 2, 3, 4, 5), RunsMeasured((held, None))))
    assert [[p.step for p in curve.points] for curve in experiment.curves] == [[1, 2, 3, 4, 5], [1]]
    assert [curve.held_out for curve in experiment.curves] == [(held,), ()]
    assert (experiment.phase, experiment.parameters, experiment.step) == ("running", (100, 90), 5)
    assert experiment.seconds_left == 4.5  # a quarter of 20 steps took 1.5 s


def test_its_end_keeps_what_was_found(prepared):
    experiment = of(after(prepared, BEGAN, learned(1), ENDED))
    assert (experiment.phase, experiment.step, experiment.seconds, experiment.ended) == ("ended", 20, 3.0, ENDED)
    assert experiment.seconds_left is None


def test_what_another_one_tells_is_passed_by(prepared):
    state = reduce(after(prepared, BEGAN), RunExperiment("/x.toml", prepared, 4))
    assert (of(state).number, of(state).seed, of(state).phase) == (2, 4, "starting")
    assert reduce(state, ExperimentTold(1, learned(1))) is state
    over = after(prepared, BEGAN, ENDED)
    assert reduce(over, ExperimentTold(1, learned(1))) is over


def test_stop_waits_for_what_was_measured_and_at_the_start_ends_it(prepared):
    running = reduce(after(prepared, BEGAN, learned(1)), StopExperiment())
    assert (of(running).phase, of(running).is_stopping) == ("running", True)
    starting = reduce(after(prepared), StopExperiment())
    assert of(starting).phase == "ended"
    assert reduce(starting, StopExperiment()) is starting
    assert reduce(State(), StopExperiment()).live.experiment is None


def test_a_training_waits_for_it(prepared):
    learning = reduce(reduce(State(), Train(Asked("copy:4"))), TrainingTold(1, Began("/a", "", "", 1)))
    state = after(prepared, BEGAN, state=learning)
    assert of(state).has_paused
    assert state.live.learning is not None
    assert isinstance(state.live.learning.command, Pause)
    paused = reduce(state, TrainingTold(1, Learned((), 1.0, 0.1, "paused")))
    alone = reduce(paused, ExperimentTold(1, learned(1)))
    assert not of(alone).has_company
    on = reduce(reduce(alone, TellTraining(Go())), TrainingTold(1, Learned((), 1.0, 0.1, "running")))
    assert of(reduce(on, ExperimentTold(1, learned(2)))).has_company
    assert of(reduce(on, ExperimentTold(1, learned(2)))).is_clocked
    assert not of(after(prepared, state=paused)).has_paused


def test_sentences_are_shown(prepared):
    assert said_in(after(prepared, BEGAN, Said("What?"))) == "What?"
    failed = after(prepared, Failed("There is no experiment “dance”."))
    assert (of(failed).phase, said_in(failed)) == ("failed", "There is no experiment “dance”.")
    fell = after(prepared, BEGAN, learned(1), Fell(-9))
    assert of(fell).phase == "failed"
    assert said_in(fell) == of(fell).sentence
    assert "Press Run again" in said_in(fell)
    assert len(of(fell).curves[0].points) == 1  # what was learned stays to be seen


def test_a_run_is_opened_with_the_example_of_its_task(prepared):
    state = reduce(after(prepared, BEGAN, ENDED), OpenRun(RunModel("/private/1/tiny-positions", "hqb>")))
    assert state.document.checkpoint == state.loading == "/private/1/tiny-positions"
    assert state.document.text == "hqb>"
    assert of(state).ended == ENDED


def test_undo_and_the_document_know_nothing_of_it(qtbot, prepared):
    session = Session()
    session.dispatch(SetText("abc"))
    before = session.state.document
    session.dispatch(RunExperiment("/x.toml", prepared, 0))
    session.dispatch(ExperimentTold(1, BEGAN))
    assert session.state.document is before
    session.undo()
    assert session.state.document.text == ""
    assert of(session.state).phase == "running"
