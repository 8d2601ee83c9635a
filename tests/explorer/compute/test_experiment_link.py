"""The link to the process in which an experiment's runs learn, with the real process."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from attention_explorer.compute import experiment_link
from attention_explorer.compute.experiment_link import ExperimentLink, connect_experiment
from attention_explorer.compute.gui_queue import GuiQueue
from attention_explorer.recovery import training_folders
from attention_explorer.session.experiment import ExperimentState
from attention_explorer.session.intents import RunExperiment, StopExperiment
from tests.explorer.compute.linked import Linked, babbling, wait
from tests.explorer.prepared import tiny_experiment

ENDLESS = 1_000_000


class LinkedExperiment(Linked[ExperimentLink]):
    def __init__(self) -> None:
        super().__init__(ExperimentLink(GuiQueue()), connect_experiment)

    @property
    def experiment(self) -> ExperimentState:
        assert self.session.live.experiment is not None
        return self.session.live.experiment


@pytest.fixture
def linked(qtbot, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_EXPLORER_HOME", str(tmp_path / "home"))
    it = LinkedExperiment()
    yield it
    assert it.link.stop(10.0)
    assert not list(training_folders.trainings_folder().glob("*"))  # nothing is kept


@pytest.mark.full
def test_it_runs_to_its_end_and_the_process_with_it(qtbot, linked, tmp_path):
    linked.session.dispatch(RunExperiment(*tiny_experiment(tmp_path), seed=2))
    wait(qtbot, lambda: linked.experiment.phase == "running")
    process = linked.process
    wait(qtbot, lambda: linked.experiment.phase == "ended")
    assert linked.experiment.ended.how == "done"
    assert [[p.step for p in curve.points] for curve in linked.experiment.curves] == [[*range(1, 21)]] * 2
    assert [curve.held_out[-1].step for curve in linked.experiment.curves] == [20, 20]
    wait(qtbot, lambda: not process.is_running())
    assert linked.session.state.notice is None
    for model in linked.experiment.ended.models:
        assert (Path(model.folder) / "model.safetensors").is_file()
        assert training_folders.is_private(model.folder)


@pytest.mark.full
def test_stopped_it_tells_where_it_stood(qtbot, linked, tmp_path):
    linked.session.dispatch(RunExperiment(*tiny_experiment(tmp_path, ENDLESS), seed=0))
    wait(qtbot, lambda: linked.experiment.step > 0)
    linked.session.dispatch(StopExperiment())
    wait(qtbot, lambda: linked.experiment.phase == "ended")
    assert linked.experiment.ended.how == "stopped"
    assert linked.link.process is None


@pytest.mark.full
def test_another_one_takes_its_place(qtbot, linked, tmp_path):
    linked.session.dispatch(RunExperiment(*tiny_experiment(tmp_path, ENDLESS), seed=0))
    wait(qtbot, lambda: linked.experiment.step > 0)
    process = linked.process
    linked.session.dispatch(RunExperiment(*tiny_experiment(tmp_path), seed=1))
    wait(qtbot, lambda: not process.is_running())
    wait(qtbot, lambda: linked.experiment.phase == "ended")
    assert (linked.experiment.number, linked.experiment.step) == (2, 20)


def test_stopped_while_it_starts_it_is_gone_at_once(qtbot, linked, tmp_path):
    linked.session.dispatch(RunExperiment(*tiny_experiment(tmp_path), seed=0))
    wait(qtbot, lambda: linked.link.process.pid is not None)
    process = linked.process
    linked.session.dispatch(StopExperiment())
    wait(qtbot, lambda: not process.is_running())
    assert linked.experiment.phase == "ended"
    assert linked.experiment.ended is None


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_killed_it_is_a_sentence_and_can_be_run_again(qtbot, linked, tmp_path):
    linked.session.dispatch(RunExperiment(*tiny_experiment(tmp_path, ENDLESS), seed=0))
    wait(qtbot, lambda: linked.experiment.step > 0)
    os.kill(linked.process.pid, signal.SIGKILL)
    wait(qtbot, lambda: linked.experiment.phase == "failed")
    assert "Press Run again" in linked.session.state.notice.text
    linked.session.dispatch(RunExperiment(*tiny_experiment(tmp_path), seed=0))
    wait(qtbot, lambda: linked.experiment.phase == "ended")


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_a_process_that_does_not_answer_is_killed_at_close(qtbot, linked, tmp_path):
    linked.session.dispatch(RunExperiment(*tiny_experiment(tmp_path, ENDLESS), seed=0))
    wait(qtbot, lambda: linked.experiment.step > 0)
    process = linked.process
    process.suspend()
    linked.link.stop(0)
    assert linked.link.stop(5.0)
    assert not process.is_running()


def test_words_that_are_no_message_end_it_with_a_sentence(qtbot, linked, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(experiment_link, "WORK", replace(experiment_link.WORK, module=babbling(tmp_path)))
    linked.session.dispatch(RunExperiment(*tiny_experiment(tmp_path), seed=0))
    wait(qtbot, lambda: linked.experiment.phase == "failed")
    assert "cannot be read, and was ended. Press Run again." in linked.session.state.notice.text


@pytest.mark.full
def test_models_of_the_last_experiments_can_be_opened_and_older_ones_go(qtbot, linked, tmp_path, monkeypatch):
    monkeypatch.setattr(experiment_link, "_KEPT", 1)
    folders = []
    for steps in (1, 2):
        linked.session.dispatch(RunExperiment(*tiny_experiment(tmp_path, steps), seed=0))
        wait(qtbot, lambda: linked.experiment.phase == "ended")
        folders.append(Path(linked.experiment.ended.models[0].folder))
    assert [folder.exists() for folder in folders] == [False, True]


def test_a_folder_that_cannot_be_made_is_a_sentence(qtbot, linked, tmp_path, monkeypatch):
    with monkeypatch.context() as there:
        there.setenv("ATTENTION_EXPLORER_HOME", str(tmp_path / "a file"))
        (tmp_path / "a file").write_text("")
        linked.session.dispatch(RunExperiment(*tiny_experiment(tmp_path), seed=0))
    assert linked.experiment.phase == "failed"
    assert "could not be written" in linked.session.state.notice.text
    assert linked.link.process is None
