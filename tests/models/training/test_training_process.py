"""The process that trains: it does what it is told over its pipe, says what became of it, and ends with the pipe."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from attention_models import open_checkpoint
from attention_models.files.own_process import OwnProcess
from attention_models.protocol import training_messages as messages
from attention_models.protocol.training_messages import (
    TRAIN_HERE,
    Asked,
    Began,
    Begin,
    Dissect,
    Dissected,
    Ended,
    Failed,
    Go,
    Learned,
    Measure,
    Measured,
    NotDissected,
    OneBatch,
    Pause,
    Said,
    Save,
    Saved,
    SnapshotWritten,
    Stop,
    from_process,
    line_of,
    to_process,
)
from attention_models.training import training_process
from attention_models.training.common import Budget
from attention_models.training.experiment import experiment
from attention_models.training.gradient_breakdown import break_down_gradient
from tests.models.training.talk import Talk

TINY = (("width", "16"), ("heads", "2"), ("layers", "1"), ("batch", "8"))
ENDLESS = Asked("copy:4", TINY, seconds=None, steps=1_000_000)


@pytest.fixture
def talk() -> Iterator[Talk]:
    talking = Talk()
    yield talking
    talking.close()


def is_paused(learned: Learned) -> bool:
    return learned.phase == "paused"


# --------------------------------------------------------------------------- messages


def test_what_is_told_comes_back_as_it_was():
    said = [
        Begin(Asked("reverse:10", (("heads", "2"),), 3, "a “text”\n", 1.5, None), "/tmp/x", True),
        *(Go(), Pause(), OneBatch(), Stop(), Measure(), Save("/a/b"), Dissect(7, 3)),
    ]
    assert [to_process(line_of(message)) for message in said] == said
    assert all(line_of(message).count(b"\n") == 1 for message in said)


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b'{"type": "Fall"}', b'{"type": "Save"}', b'{"type": "Go", "now": 1}', b"\xff\n"]
)
def test_anything_else_is_refused(line):
    with pytest.raises(ValueError, match="no message"):
        to_process(line)


def test_a_line_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(messages, "MOST_BYTES", 100)
    with pytest.raises(ValueError, match="message of"):
        to_process(line_of(Save("x" * 200)))


def test_a_loss_that_is_no_number_is_no_message():
    with pytest.raises(ValueError, match="no message"):
        from_process(line_of(messages.Measured(messages.HeldOutPoint(1, float("nan"), 0.0, 0.0, 5))))


# --------------------------------------------------------------------------- a training


def test_a_run_is_the_same_as_without_a_process(talk, tmp_path):
    """Every point, the last weights and the held-out figures, bit for bit."""
    talk.tell(Begin(Asked("copy:4", TINY, 5, steps=30, seconds=None), str(tmp_path)))
    told, ended = talk.until(Ended)
    assert (ended.how, ended.step, ended.notice) == ("done", 30, "")
    alone = experiment("copy:4", dict(TINY), 5).training()
    alone.run(Budget(steps=30), cool_down=True)
    points = [point for message in told if isinstance(message, Learned) for point in message.points]
    assert [(p.step, p.loss, p.accuracy, p.rate) for p in points] == [
        (p.step, p.loss, p.accuracy, p.rate) for p in alone.points
    ]
    measured = [message.held_out for message in told if isinstance(message, Measured)]
    found = alone.measure()
    assert (measured[-1].loss, measured[-1].sequences_right) == (found.loss, found.sequences_right)
    opened = open_checkpoint(str(tmp_path)).module
    assert all(torch.equal(p, alone.model.get_parameter(name)) for name, p in opened.named_parameters())


def test_the_folder_opens_before_the_first_step(talk, tmp_path):
    talk.tell(Begin(ENDLESS, str(tmp_path)), Pause())
    before, began = talk.until(Began)
    assert not any(isinstance(message, Learned) for message in before)
    opened = open_checkpoint(began.folder).module
    assert began.parameters == sum(p.numel() for p in opened.parameters())
    untrained = experiment("copy:4", dict(TINY)).training().model
    assert torch.equal(opened.get_parameter("lm_head.weight"), untrained.get_parameter("lm_head.weight"))
    _, first = talk.until(SnapshotWritten)
    assert first.step == 0
    kept = load_file(tmp_path / "snapshots" / "step-00000000.safetensors")
    assert torch.equal(kept["model.model.encoder.embedding.weight"], untrained.get_parameter("lm_head.weight"))


def test_it_pauses_takes_one_batch_and_goes_on(talk, tmp_path):
    talk.tell(Begin(ENDLESS, str(tmp_path)))
    talk.until(Learned, lambda told: told.points)
    talk.tell(Pause())
    talk.until(Learned, is_paused)
    _, measured = talk.until(Measured)
    step = measured.held_out.step
    assert (tmp_path / "snapshots" / f"step-{step:08}.safetensors").is_file()
    talk.tell(OneBatch())
    told, _ = talk.until(Measured)
    points = [point for message in told if isinstance(message, Learned) for point in message.points]
    assert [point.step for point in points] == [step + 1]
    assert SnapshotWritten(step + 1) in told  # so that the views can show what one batch did
    assert any(isinstance(message, Learned) and is_paused(message) for message in told)
    talk.tell(Go())
    _, learned = talk.until(Learned, lambda message: message.phase == "running")
    assert learned.points[0].step == step + 2
    talk.tell(Stop())
    _, ended = talk.until(Ended)
    assert ended.how == "stopped"


def test_the_next_step_is_told_in_numbers_and_is_taken_as_if_it_had_not_been(talk, tmp_path):
    talk.tell(Begin(Asked("copy:4", TINY, 5, steps=5, seconds=None), str(tmp_path)))
    talk.until(Ended)
    alone = experiment("copy:4", dict(TINY), 5).training()
    alone.run(Budget(steps=5), cool_down=True)
    with alone.untouched():
        wanted = break_down_gradient(alone, 4, 3)
    talk.tell(Dissect(4, 3), Dissect(10_000, 0), OneBatch())
    _, told = talk.until(Dissected)
    assert told.dissection == wanted
    assert (wanted.step, wanted.output.token, wanted.output.dimension) == (6, 4, 3)
    _, said = talk.until(NotDissected)
    assert "has no entry (10000, 0)" in said.sentence
    talk.until(Ended)
    never_dissected = experiment("copy:4", dict(TINY), 5).training()
    never_dissected.run(Budget(steps=5), cool_down=True)
    never_dissected.step()
    opened = open_checkpoint(str(tmp_path)).module
    for name, p in opened.named_parameters():
        assert torch.equal(p, never_dissected.model.get_parameter(name))


def test_after_the_end_it_goes_on_as_long_again(talk, tmp_path):
    talk.tell(Begin(Asked("copy:4", TINY, steps=5, seconds=None), str(tmp_path)))
    talk.until(Ended)
    talk.tell(OneBatch())
    _, one = talk.until(Ended)
    talk.tell(Go())
    _, again = talk.until(Ended)
    assert (one.step, again.step, again.how) == (6, 11, "done")


def test_it_takes_up_the_last_snapshot(tmp_path):
    first = Talk()
    first.tell(Begin(Asked("copy:4", TINY, steps=25, seconds=None), str(tmp_path)))
    first.until(Ended)
    first.close()
    (tmp_path / "snapshots" / "step-00000025.safetensors").unlink()  # as if it had been killed before
    second = Talk()
    second.tell(Begin(Asked("copy:4", TINY, steps=3, seconds=None), str(tmp_path), taken_up=True))
    _, began = second.until(Began)
    told, ended = second.until(Ended)
    second.close()
    points = [point for message in told if isinstance(message, Learned) for point in message.points]
    assert (began.step, ended.step) == (20, 23)
    alone = experiment("copy:4", dict(TINY)).training()
    alone.run(Budget(steps=21))
    assert points[0].loss == alone.points[-1].loss


def test_it_is_saved_with_its_snapshots_while_it_learns(talk, tmp_path):
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    talk.tell(Begin(ENDLESS, str(own)))
    talk.until(SnapshotWritten, lambda written: written.step >= 20)
    talk.tell(Save(str(other)))
    _, saved = talk.until(Saved)
    assert saved.folder == str(other)
    assert open_checkpoint(str(other)).info.folder == str(other)
    assert (other / "snapshots" / "step-00000020.safetensors").is_file()
    talk.tell(Save(str(other)))  # the same training once more
    talk.until(Saved)
    another = tmp_path / "another"
    shutil.copytree(other, another)
    kept = (another / "training.json").read_bytes()
    talk.tell(Save(str(another)))
    _, said = talk.until(Said)
    assert "holds another training, which would be lost" in said.sentence
    assert (another / "training.json").read_bytes() == kept


def test_what_cannot_be_saved_is_said_and_it_learns_on(talk, tmp_path):
    own, strange = tmp_path / "own", tmp_path / "strange"
    own.mkdir()
    strange.mkdir()
    (strange / "thesis.txt").write_text("mine")
    talk.tell(Begin(ENDLESS, str(own)), Save(str(strange)), Save(str(own)))
    _, said = talk.until(Said)
    assert "no training wrote" in said.sentence
    _, said = talk.until(Said)
    assert "Name another folder" in said.sentence
    talk.until(Learned, lambda message: message.points)
    assert [path.name for path in strange.iterdir()] == ["thesis.txt"]


def test_a_full_disk_is_said_once_and_it_learns_on(talk, tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    talk.tell(Begin(ENDLESS, str(tmp_path)))
    talk.until(Began)
    monkeypatch.setattr("attention_models.training.snapshots.Snapshots.put", full)
    before, said = talk.until(Said)
    assert "could not be written (No space left on device)" in said.sentence
    later, _ = talk.until(Learned, lambda told: told.points and told.points[-1].step > 200)
    assert not any(isinstance(message, Said) for message in [*before, *later])


def test_a_disk_that_refuses_from_the_beginning_is_a_sentence(talk, tmp_path):
    talk.tell(Begin(ENDLESS, str(tmp_path / "nowhere" / "at all")))
    _, failed = talk.until(Failed)
    assert "no such folder" in failed.sentence


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (Asked("dance"), "There is no task “dance”"),
        (Asked("copy:4", (("heads", "3"),)), "Heads is 3, which does not divide the width of 64"),
        (Asked("text", text="aaaa"), "There is nothing to learn"),
        (Asked("copy:4", seconds=1.0, steps=1), "Give a positive number of seconds or of steps"),
    ],
)
def test_what_cannot_be_trained_is_refused(talk, tmp_path, asked, sentence):
    talk.tell(Begin(asked, str(tmp_path)))
    _, failed = talk.until(Failed)
    assert sentence.lower() in failed.sentence.lower()
    assert failed.cause == ""


def test_a_loss_that_diverges_ends_the_run_with_the_step_and_the_last_snapshot(talk, tmp_path):
    switches = (*TINY, ("rate", "1e30"), ("warmup", "1"))
    talk.tell(Begin(Asked("copy:4", switches, steps=500, seconds=None), str(tmp_path)))
    _, ended = talk.until(Ended)
    assert ended.how == "diverged"
    assert "rate=1e+30" in ended.notice
    assert "was taken up again" in ended.notice


def test_lines_that_are_no_message_are_said_and_passed_over(talk, tmp_path):
    talk.write(b"hello\n")
    _, said = talk.until(Said)
    assert "does not understand" in said.sentence
    talk.tell(Pause())
    talk.until(Said)
    talk.tell(Begin(Asked("copy:4", TINY, steps=2, seconds=None), str(tmp_path)), Begin(ENDLESS, "/elsewhere"))
    _, ended = talk.until(Ended)
    assert ended.how in ("done", "stopped")


def test_points_are_told_a_few_times_a_second_and_not_one_by_one(talk, tmp_path, monkeypatch):
    monkeypatch.setattr(training_process, "TOLD_EVERY", 1e9)
    talk.tell(Begin(Asked("copy:4", TINY, steps=50, seconds=None), str(tmp_path)))
    told, _ = talk.until(Ended)
    learned = [message for message in told if isinstance(message, Learned)]
    assert sum(len(message.points) for message in learned) == 50
    assert len(learned) <= 2


# --------------------------------------------------------------------------- the process itself


def started(folder: Path) -> Any:
    process = OwnProcess("attention_models.training.training_process", TRAIN_HERE).running()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line_of(Begin(ENDLESS, str(folder))))
    process.stdin.flush()
    while not isinstance(message := from_process(process.stdout.readline()), Learned):
        assert not isinstance(message, Failed)
    return process


def test_the_process_ends_with_its_pipe(tmp_path):
    process = started(tmp_path)
    process.stdin.close()
    while process.stdout.readline():
        pass
    assert process.wait(20) == 0
    process.stdout.close()
    assert open_checkpoint(str(tmp_path)).info.folder == str(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_killed_at_any_moment_its_folder_is_whole(tmp_path):
    """Config, weights and every snapshot that has its name can be read."""
    process = started(tmp_path)
    while not isinstance(message := from_process(process.stdout.readline()), SnapshotWritten) or message.step < 40:
        pass
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=20)
    snapshots = sorted((tmp_path / "snapshots").glob("step-*.safetensors"))
    assert len(snapshots) >= 3
    assert all(load_file(path) for path in snapshots)
    assert open_checkpoint(str(tmp_path)).info.folder == str(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_a_terminals_interrupt_is_for_the_window_alone(tmp_path):
    process = started(tmp_path)
    process.send_signal(signal.SIGINT)
    step = 0
    while step < 100:
        message = from_process(process.stdout.readline())
        step = message.step if isinstance(message, SnapshotWritten) else step
    process.stdin.close()
    while process.stdout.readline():
        pass
    assert process.wait(20) == 0
    process.stdout.close()
