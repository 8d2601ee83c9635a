"""The link to the process that trains, with the real process: it starts, is killed, is taken up, and ends at close."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from explorer import owners, training_folders
from explorer.compute import training_link
from explorer.compute.training_link import TrainingLink, connect_training
from explorer.session.intents import TellTraining, Train
from explorer.session.session import Session
from explorer.session.training import TrainingState
from models.protocol.training_messages import Asked, Go, Save, Stop

TINY = (("width", "16"), ("heads", "2"), ("layers", "1"), ("batch", "8"))
ENDLESS = Asked("copy:4", TINY, seconds=None, steps=1_000_000)


_BABBLES = """def serve():
    print('hello', flush=True)
    import time; time.sleep(60)
"""


class Linked:
    def __init__(self) -> None:
        self.session, self.link = Session(), TrainingLink()
        connect_training(self.session, self.link)

    @property
    def training(self) -> TrainingState:
        assert self.session.state.learning is not None
        return self.session.state.learning

    @property
    def process(self) -> psutil.Process:
        assert self.link.process is not None
        return psutil.Process(self.link.process.pid)


@pytest.fixture
def linked(qtbot, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_EXPLORER_HOME", str(tmp_path / "home"))
    it = Linked()
    yield it
    it.link.stop(10.0)


def wait(qtbot, holds) -> None:
    qtbot.waitUntil(holds, timeout=120_000)


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_killed_it_is_a_sentence_and_is_taken_up_from_its_snapshot(qtbot, linked, tmp_path):
    linked.session.dispatch(Train(ENDLESS))
    wait(qtbot, lambda: linked.training.snapshot >= 40)
    os.kill(linked.process.pid, signal.SIGKILL)
    wait(qtbot, lambda: linked.training.phase == "failed")
    last = linked.training.snapshot
    assert f"snapshot of step {last:,} is kept" in linked.session.state.notice.text

    linked.session.dispatch(TellTraining(Save(str(tmp_path / "kept"))))  # a process is started that takes it up
    wait(qtbot, lambda: linked.training.saved != "")
    assert (tmp_path / "kept" / "snapshots" / f"step-{last:08}.safetensors").is_file()
    assert last <= linked.training.step == linked.training.saved_step < last + 40  # it was not let learn on
    linked.session.dispatch(TellTraining(Go()))
    wait(qtbot, lambda: linked.training.step > last)
    linked.session.dispatch(TellTraining(Stop()))
    wait(qtbot, lambda: linked.training.phase == "ended")


def test_another_training_takes_its_place_and_nothing_of_the_first_is_left(qtbot, linked):
    linked.session.dispatch(Train(ENDLESS))
    wait(qtbot, lambda: linked.training.phase == "running")
    first, process = Path(linked.training.folder), linked.process
    linked.session.dispatch(Train(Asked("reverse:4", TINY, seconds=None, steps=10)))
    wait(qtbot, lambda: linked.training.phase == "ended")
    wait(qtbot, lambda: not first.exists() and not process.is_running())
    second, process = Path(linked.training.folder), linked.process
    assert second.is_dir()
    assert linked.link.stop(10.0)
    assert not second.exists()
    assert not process.is_running()


def test_closed_while_it_starts_it_ends_at_once(qtbot, linked):
    linked.session.dispatch(Train(ENDLESS))
    wait(qtbot, lambda: linked.link.process.pid is not None)
    process = linked.process
    linked.link.stop(0)
    assert linked.link.stop(10.0)
    assert not process.is_running()
    assert list(training_folders.trainings_folder().iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_a_process_that_does_not_answer_is_killed_at_close(qtbot, linked):
    linked.session.dispatch(Train(ENDLESS))
    wait(qtbot, lambda: linked.training.phase == "running")
    process = linked.process
    process.suspend()
    linked.link.stop(0)
    assert linked.link.stop(0.5)
    assert not process.is_running()


def test_words_that_are_no_message_end_it_with_a_sentence(qtbot, linked, tmp_path, monkeypatch):
    (tmp_path / "babbling.py").write_text(
        "def serve():\n    print('hello', flush=True)\n    import time; time.sleep(60)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(training_link, "WORK", replace(training_link.WORK, module="babbling"))
    linked.session.dispatch(Train(ENDLESS))
    wait(qtbot, lambda: linked.training.phase == "failed")
    assert "cannot be read" in linked.session.state.notice.text


def test_a_folder_that_cannot_be_made_is_a_sentence(qtbot, linked, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_EXPLORER_HOME", str(tmp_path / "a file"))
    (tmp_path / "a file").write_text("")
    linked.session.dispatch(Train(ENDLESS))
    assert linked.training.phase == "failed"
    assert "could not be written" in linked.session.state.notice.text
    assert linked.link.process is None


def test_what_ended_processes_left_is_removed_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_EXPLORER_HOME", str(tmp_path))
    own = training_folders.new_folder("reverse")
    host = owners.own_mark().rsplit("-", 2)[0]
    ended = own.parent.with_name(f"{host}-{os.getpid()}-1-1")  # the number is this process's, which began later
    elsewhere, thesis = own.parent.with_name("another-computer-1-1-1"), own.parent.with_name("thesis")
    for folder in (ended, elsewhere, thesis):
        folder.mkdir()
        (folder / "file").write_text("x")
    training_folders.remove_left_behind()
    assert not ended.exists()
    assert own.exists()
    assert [(folder / "file").exists() for folder in (elsewhere, thesis)] == [True, True]
    assert training_folders.is_private(str(own))
    assert not training_folders.is_private(str(tmp_path / "my-model"))
