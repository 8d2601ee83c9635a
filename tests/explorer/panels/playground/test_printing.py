"""“Show as PyTorch” on each page of the playground, by mouse: what is asked for is what is on screen."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from attention_explorer.panels.playground import experiments
from attention_explorer.panels.playground.panel import (
    CURVES,
    EXPERIMENTS,
    FINE_TUNE,
    ONE_BATCH,
    SET_UP,
    PlaygroundPanel,
)
from attention_explorer.session.intents import ExperimentTold, RunExperiment, Train, TrainingTold
from attention_explorer.session.state import Document, State
from attention_models.protocol.experiment_messages import RunsBegan, RunsLearned, RunsMeasured
from attention_models.protocol.request import Request
from attention_models.protocol.training_messages import (
    Asked,
    AskedTuning,
    Began,
    Dissected,
    FromProcess,
    HeldOutPoint,
    Learned,
    Measured,
    TrainingPoint,
)
from attention_models.protocol.training_scripts import BatchOnScreen, RunsOnScreen, TrainingOnScreen, TuningOnScreen
from attention_models.training.experiment import experiment
from attention_models.training.gradient_breakdown import break_down_gradient
from tests.explorer.prepared import tiny_experiment
from tests.explorer.session.answers import loaded
from tests.explorer.silent import SilentSession, shown

TINY = (("width", "16"), ("heads", "2"), ("layers", "1"), ("batch", "4"))


@pytest.fixture
def session() -> SilentSession:
    return SilentSession(State(Document(checkpoint="story-gpt", text="Tom went")))


@pytest.fixture
def asked_for(qtbot, session: SilentSession, panel: PlaygroundPanel) -> list[Request]:
    found: list[Request] = []
    panel.script_wanted.connect(found.append)
    return found


@pytest.fixture
def panel(qtbot, session: SilentSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlaygroundPanel:
    path, _ = tiny_experiment(tmp_path)
    monkeypatch.setattr(experiments, "FILE", Path(path))
    panel = shown(qtbot, PlaygroundPanel, session)
    session.arrive(loaded("story-gpt"))
    return panel


def press(button: QWidget) -> None:
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def tell(session: SilentSession, message: FromProcess) -> None:
    learning = session.live.learning
    assert learning is not None
    session.dispatch(TrainingTold(learning.number, message))


def point(step: int, loss: float = 1.0) -> TrainingPoint:
    return TrainingPoint(step, loss, 0.5, 0.1, 100.0)


def test_before_anything_is_trained_it_is_what_train_would_begin(panel, asked_for, qtbot):
    panel.form.difficulty.setFocus()
    QTest.keyClick(panel.form.difficulty, Qt.Key.Key_Up)
    press(panel.code_button)  # at once: what was typed a moment ago counts
    assert asked_for == [TrainingOnScreen(asked=panel.form.asked())]
    assert asked_for[0].asked.task == "reverse:11"
    press(panel.pages.button(CURVES))
    press(panel.code_button)
    assert asked_for[1] == asked_for[0]


def test_a_training_that_has_begun_brings_its_figures(panel, session, asked_for):
    session.dispatch(Train(panel.form.asked()))
    tell(session, Began("/somewhere", "write", "abc", 7))
    first = HeldOutPoint(0, 3.5, 0.1, 0.0, 128)
    tell(session, Measured(first))
    tell(session, Learned(tuple(point(step, 4 - step / 10) for step in range(1, 4)), 1.0, 0.1, "running"))
    for page in (CURVES, SET_UP):
        press(panel.pages.button(page))
        press(panel.code_button)
        request = asked_for[-1]
        assert isinstance(request, TrainingOnScreen)
        assert [(p.step, p.loss) for p in request.points] == [(1, 3.9), (2, 3.8), (3, 3.7)]
        assert (request.held_out, request.folder) == ((first,), "/somewhere")
    panel.form.seed.setValue(5)  # another training: what is on the curves is not of it
    press(panel.code_button)
    assert asked_for[-1] == TrainingOnScreen(asked=panel.form.asked())
    press(panel.pages.button(CURVES))
    press(panel.code_button)
    assert asked_for[-1].points == request.points


def test_of_a_long_curve_the_first_steps_are_all_there(panel, session, asked_for):
    session.dispatch(Train(panel.form.asked()))
    tell(session, Began("/somewhere", "write", "abc", 7))
    for start in range(1, 3000, 100):
        tell(session, Learned(tuple(point(step, step / 8) for step in range(start, start + 100)), 1.0, 0.1, "running"))
    press(panel.pages.button(CURVES))
    press(panel.code_button)
    assert session.live.learning.curves.every == 8
    assert [p.step for p in asked_for[-1].points] == list(range(1, 11))


def test_the_next_batch_is_the_one_that_is_shown(panel, session, asked_for):
    asked = Asked("reverse:4", TINY)
    training = experiment(asked.task, dict(asked.switches)).training()
    session.dispatch(Train(asked))
    press(panel.pages.button(ONE_BATCH))
    assert not panel.code_button.isEnabled()
    tell(session, Began("/somewhere", "write", "abc", 7))
    tell(session, Learned((TrainingPoint(*astuple(training.step())),), 1.0, 0.1, "paused"))
    assert not panel.code_button.isEnabled()
    with training.untouched():
        found = break_down_gradient(training)
    tell(session, Dissected(found))
    panel.one_batch.row.setFocus()
    QTest.keyClick(panel.one_batch.row, Qt.Key.Key_Up)
    press(panel.code_button)
    assert asked_for == [BatchOnScreen(asked=asked, dissection=found, row=1, folder="/somewhere")]
    tell(session, Learned((), 1.0, 0.2, "running"))
    assert not panel.code_button.isEnabled()  # that step is being taken


def test_an_experiment_brings_the_curves_of_its_runs(panel, session, asked_for):
    page = panel.experiments
    press(panel.pages.button(EXPERIMENTS))
    page.seed.setValue(3)
    press(panel.code_button)
    assert asked_for == [RunsOnScreen(file=str(page.file), name="tiny", seed=3)]
    session.dispatch(RunExperiment(str(page.file), page.prepared, 3))
    page.seed.setValue(4)  # of another run: the curves on screen stay those of seed 3
    number = session.live.experiment.number
    held = tuple(HeldOutPoint(1, loss, 0.5, 0.5, 100) for loss in (2.5, 3.5))
    for message in (RunsBegan((7, 7)), RunsLearned(1, ((point(1, 2.0),), (point(1, 3.0),)), 0.1), RunsMeasured(held)):
        session.dispatch(ExperimentTold(number, message))
    press(panel.code_button)
    request = asked_for[1]
    assert isinstance(request, RunsOnScreen)
    assert (request.name, request.seed) == ("tiny", 3)
    assert [[p.loss for p in points] for points in request.points] == [[2.0], [3.0]]
    assert request.held_out == ((held[0],), (held[1],))


def test_a_fine_tuning_brings_its_figures_whatever_the_prompt(panel, session, asked_for):
    press(panel.pages.button(FINE_TUNE))
    panel.fine_tune.text.setFocus()
    QTest.keyClicks(panel.fine_tune.text, "Once more")
    press(panel.code_button)
    assert asked_for == [TuningOnScreen(asked=AskedTuning("story-gpt", text="Once more"))]
    session.dispatch(Train(panel.fine_tune.asked()))
    tell(session, Began("/somewhere", "go on", "", 7))
    tell(session, Learned((point(1, 2.0),), 1.0, 0.1, "running"))
    QTest.keyClicks(panel.fine_tune.prompt, "And then")
    press(panel.code_button)
    assert [p.loss for p in asked_for[1].points] == [2.0]
    press(panel.pages.button(CURVES))
    press(panel.code_button)
    assert isinstance(asked_for[2], TuningOnScreen)
    assert asked_for[2].points == asked_for[1].points
