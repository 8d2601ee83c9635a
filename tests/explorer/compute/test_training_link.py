"""The link to the process that trains, with the real process: it starts, is killed, is taken up, and ends at close."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from attention_explorer.compute import training_link
from attention_explorer.compute.gui_queue import GuiQueue
from attention_explorer.compute.training_link import TrainingLink, connect_training
from attention_explorer.recovery import owners, training_folders
from attention_explorer.session.intents import DiscardTraining, TakeUpTraining, TellTraining, Train
from attention_explorer.session.training import LeftTraining, TrainingState
from attention_models.protocol.training_messages import Asked, Go, Pause, Save, Stop
from attention_models.training.common import Budget
from attention_models.training.experiment import experiment
from attention_models.training.folders import save
from tests.explorer.compute.linked import Linked, babbling, wait

TINY = (("width", "16"), ("heads", "2"), ("layers", "1"), ("batch", "8"))
ENDLESS = Asked("copy:4", TINY, seconds=None, steps=1_000_000)


class LinkedTraining(Linked[TrainingLink]):
    def __init__(self) -> None:
        super().__init__(TrainingLink(GuiQueue()), connect_training)
        self.link.keeps_unsaved = True

    @property
    def training(self) -> TrainingState:
        assert self.session.live.learning is not None
        return self.session.live.learning


@pytest.fixture
def linked(qtbot, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_EXPLORER_HOME", str(tmp_path / "home"))
    it = LinkedTraining()
    yield it
    it.link.stop(10.0)


@pytest.mark.full
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


@pytest.mark.full
def test_another_training_takes_its_place_and_the_first_stays_until_it_is_discarded(qtbot, linked):
    linked.session.dispatch(Train(ENDLESS))
    wait(qtbot, lambda: linked.training.snapshot >= 20)
    first, process = Path(linked.training.folder), linked.process
    linked.session.dispatch(Train(Asked("reverse:4", TINY, seconds=None, steps=10)))
    wait(qtbot, lambda: linked.training.phase == "ended")
    wait(qtbot, lambda: bool(linked.session.state.left_trainings) and not process.is_running())
    (left,) = linked.session.state.left_trainings
    assert (left.folder, left.asked, left.step) == (str(first), ENDLESS, training_folders.last_step(first))
    assert left.step >= 20
    linked.session.dispatch(DiscardTraining(left))
    wait(qtbot, lambda: not first.parent.exists())
    assert linked.session.state.left_trainings == ()
    second, process = Path(linked.training.folder), linked.process
    assert second.is_dir()
    assert linked.link.stop(10.0)
    assert second.exists()  # it was not saved
    assert not process.is_running()


def test_closed_while_it_starts_it_ends_at_once(qtbot, linked):
    linked.session.dispatch(Train(ENDLESS))
    wait(qtbot, lambda: linked.link.process.pid is not None)
    process = linked.process
    linked.link.stop(0)
    assert linked.link.stop(10.0)
    assert not process.is_running()
    assert list(training_folders.trainings_folder().iterdir()) == []


@pytest.mark.full
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
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(training_link, "WORK", replace(training_link.WORK, module=babbling(tmp_path)))
    linked.session.dispatch(Train(ENDLESS))
    wait(qtbot, lambda: linked.training.phase == "failed")
    assert "cannot be read" in linked.session.state.notice.text


def test_a_folder_that_cannot_be_made_is_a_sentence(qtbot, linked, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_EXPLORER_HOME", str(tmp_path / "a file"))
    (tmp_path / "a file").write_text("")
    linked.session.dispatch(Train(ENDLESS))
    wait(qtbot, lambda: linked.training.phase == "failed")
    assert "could not be written" in linked.session.state.notice.text
    assert linked.link.process.pid is None


def ended(folder: Path, number: int) -> Path:
    """The same folder as a process would have named it that has ended: this one's number, begun earlier."""
    host = owners.own_mark().rsplit("-", 2)[0]
    path = folder.parent.with_name(f"{host}-{os.getpid()}-1-{number}")
    folder.parent.rename(path)
    return path / folder.name


def made() -> Path:
    folder = training_folders.new_folder(ENDLESS)
    training_folders.make(folder, ENDLESS)
    return folder


def test_what_ended_processes_left_without_a_step_is_removed_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_EXPLORER_HOME", str(tmp_path))
    own = made()
    began = ended(made(), 2)
    elsewhere, thesis = own.parent.with_name("another-computer-1-1-1"), own.parent.with_name("thesis")
    for folder in (elsewhere, thesis):
        folder.mkdir()
        (folder / "file").write_text("x")
    assert training_folders.left_behind() == ()
    assert not began.exists()
    assert own.exists()
    assert [(folder / "file").exists() for folder in (elsewhere, thesis)] == [True, True]
    assert training_folders.is_private(str(own))
    assert not training_folders.is_private(str(tmp_path / "my-model"))


@pytest.mark.full
def test_all_trainings_that_were_left_stay(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_EXPLORER_HOME", str(tmp_path))
    for number in range(1, 6):
        model = ended(made(), number)
        (model / "snapshots").mkdir()
        for step in (0, 20 * number):
            snapshot = model / "snapshots" / f"step-{step:08}.safetensors"
            snapshot.write_bytes(b"")
            os.utime(snapshot, (1000 + number, 1000 + number))
    found = training_folders.left_behind()
    assert [(left.step, left.asked) for left in found] == [(step, ENDLESS) for step in (100, 80, 60, 40, 20)]
    assert len(list(training_folders.trainings_folder().iterdir())) == 5
    taken = training_folders.take(found[0])
    assert taken.parent.name.startswith(owners.own_mark())
    assert (taken / "snapshots").is_dir()
    with pytest.raises(FileNotFoundError):
        training_folders.take(found[0])  # as another window would, a moment later
    damaged = Path(found[1].folder)
    (damaged.parent / "asked.json").write_text('{"task": "../../..", "steps": []}')
    assert [left.step for left in training_folders.left_behind()] == [60, 40, 20]
    assert (damaged / "snapshots" / "step-00000080.safetensors").is_file()  # it cannot be offered, and is not deleted


@pytest.mark.full
def test_what_was_not_saved_is_taken_up_by_the_next_window(qtbot, linked, tmp_path):
    linked.session.dispatch(Train(ENDLESS))
    wait(qtbot, lambda: linked.training.snapshot >= 40 and len(linked.training.curves.held_out) > 0)
    linked.session.dispatch(TellTraining(Pause()))
    wait(qtbot, lambda: linked.training.phase == "paused" and linked.training.snapshot == linked.training.step)
    before = linked.training
    assert linked.link.stop(10.0)
    assert Path(before.folder).is_dir()
    ended(Path(before.folder), 1)

    second = LinkedTraining()
    try:
        second.link.look_for_left()
        wait(qtbot, lambda: bool(second.session.state.left_trainings))
        (left,) = second.session.state.left_trainings
        assert (left.asked, left.step) == (ENDLESS, before.step)
        second.session.dispatch(TakeUpTraining(left))
        assert second.session.state.left_trainings == ()
        wait(qtbot, lambda: second.training.phase == "paused")
        now = second.training
        assert now.step == before.step
        assert [point.step for point in now.curves.points] == [*range(10, now.step + 1, 10)]
        assert now.curves.held_out[: len(before.curves.held_out)] == before.curves.held_out
        assert not Path(left.folder).exists()
        at_last = load_file(Path(now.folder) / "snapshots" / f"step-{now.step:08}.safetensors")
        weights = load_file(Path(now.folder) / "model.safetensors")
        both = [name for name in weights if f"model.{name}" in at_last]
        assert len(both) >= len(weights) - 1  # embeddings that are tied have another name there
        assert all(torch.equal(weights[name], at_last[f"model.{name}"]) for name in both)
        second.session.dispatch(TellTraining(Go()))
        wait(qtbot, lambda: second.training.step > left.step)
        second.session.dispatch(TakeUpTraining(left))
        wait(qtbot, lambda: second.training.phase == "failed")
        assert second.session.state.notice is not None
        assert "not there any more" in second.session.state.notice.text
    finally:
        second.link.stop(10.0)


@pytest.fixture
def left(tmp_path, linked) -> LeftTraining:
    """One that an ended window has left at step 20, with real weights."""
    folder = ended(made(), 1)
    planned = experiment(ENDLESS.task, dict(ENDLESS.switches), ENDLESS.seed, "")
    training = planned.training(folder / "snapshots")
    training.snapshot()
    training.run(Budget(steps=20))
    save(training, planned, folder)
    (found,) = training_folders.left_behind()
    assert found.step == 20
    return found


def snapshots() -> list[str]:
    return [path.name for path in training_folders.trainings_folder().rglob("step-00000020.safetensors")]


@pytest.mark.full
def test_one_that_is_gone_on_with_stays_when_the_window_closes_while_it_starts(qtbot, linked, left):
    linked.session.dispatch(TakeUpTraining(left))
    wait(qtbot, lambda: linked.link.process.pid is not None)
    assert (linked.training.phase, linked.training.step) == ("starting", 20)
    linked.link.stop(0)
    assert linked.link.stop(10.0)
    assert snapshots() == ["step-00000020.safetensors"]


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_one_that_is_gone_on_with_stays_when_its_process_falls_while_it_imports(qtbot, linked, left):
    linked.session.dispatch(TakeUpTraining(left))
    wait(qtbot, lambda: linked.link.process.pid is not None)
    os.kill(linked.process.pid, signal.SIGKILL)
    wait(qtbot, lambda: linked.training.phase == "failed")
    assert "The snapshot of step 20 is kept" in linked.session.state.notice.text
    linked.session.dispatch(TellTraining(Go()))
    wait(qtbot, lambda: linked.training.step > 20)
    linked.session.dispatch(Train(ENDLESS))  # another in its place
    wait(qtbot, lambda: [found.step >= 20 for found in linked.session.state.left_trainings] == [True])
    assert linked.link.stop(10.0)
    assert snapshots() == ["step-00000020.safetensors"]


@pytest.mark.full
def test_what_was_saved_goes_at_close(qtbot, linked, tmp_path):
    linked.session.dispatch(Train(Asked("copy:4", TINY, seconds=None, steps=30)))
    wait(qtbot, lambda: linked.training.phase == "ended")
    linked.session.dispatch(TellTraining(Save(str(tmp_path / "mine"))))
    wait(qtbot, lambda: linked.training.saved != "")
    folder = Path(linked.training.folder)
    assert linked.link.stop(10.0)
    assert not folder.parent.exists()
    assert (tmp_path / "mine" / "model.safetensors").is_file()
