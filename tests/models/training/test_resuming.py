"""A training that is taken up again from its folder, and folders that no training could go on from."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from attention_models.files.training_steps import RECORD, SNAPSHOTS, snapshot_path, steps_in
from attention_models.protocol.errors import CheckpointError
from attention_models.training import training_loop
from attention_models.training.common import Budget
from attention_models.training.experiment import experiment
from attention_models.training.folders import TEXT_FILE, save, why_not
from attention_models.training.resuming import resumed
from attention_models.training.snapshots import Snapshots
from attention_models.training.training import Training
from tests.models.training_folders import OF_ALL, SMALL, trained

TEXT = "".join(f"{i} green bottles hanging on the wall. " for i in range(60, 0, -1))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trainings") / "model"
    trained(path)
    return path


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "model")


def weights(training: Training) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in training.model.named_parameters()}


@pytest.mark.parametrize("switches", [{}, {"shape": "decoder", "dropout": "0"}, {"model": "recurrent"}])
def test_it_goes_on_bit_for_bit_as_one_that_was_not_broken_off(tmp_path, switches):
    through = trained(tmp_path / "through", steps=11, **switches)
    trained(tmp_path / "broken", steps=6, **switches)
    found = resumed(tmp_path / "broken")
    assert found.training.step_number == 6
    assert [point.step for point in found.training.points] == []  # of every tenth step one is kept
    found.training.run(Budget(steps=5))
    ours, theirs = weights(found.training), weights(through)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert found.training.measure() == through.measure()


def test_the_curve_of_a_long_training_is_known_from_its_beginning(tmp_path, monkeypatch):
    monkeypatch.setattr(training_loop, "MOST_POINTS", 32)
    trained(tmp_path / "long", steps=100)
    steps = [point.step for point in resumed(tmp_path / "long").training.points]
    assert steps[0] <= 20
    assert max(later - step for step, later in pairwise(steps)) <= 20
    assert steps[-1] == 100


def test_the_rate_cools_as_it_would_have(tmp_path):
    planned = experiment("copy:4", {**OF_ALL, **SMALL})
    through, broken = planned.training(), planned.training(tmp_path / SNAPSHOTS)
    through.run(Budget(steps=20), cool_down=True)
    steps = iter(["go"] * 18 + ["stop"])
    broken.run(Budget(steps=20), lambda: next(steps), cool_down=True)  # type: ignore[arg-type]
    save(broken, planned, tmp_path, Budget(steps=20))
    found = resumed(tmp_path)
    assert found.budget == Budget(steps=20)
    found.training.run(Budget(steps=20), cool_down=True, since=0)
    assert found.training.step_number == 20
    ours, theirs = weights(found.training), weights(through)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_a_text_lies_in_the_folder(tmp_path):
    planned = experiment("text:16", {**OF_ALL, **SMALL}, 3, TEXT)
    training = planned.training(tmp_path / SNAPSHOTS)
    training.run(Budget(steps=2))
    save(training, planned, tmp_path, Budget(seconds=9), 2.5)
    found = resumed(tmp_path)
    assert (found.experiment.text, found.experiment.settings.seed) == (TEXT, 3)
    assert (found.budget, found.spent) == (Budget(seconds=9), 2.5)
    (tmp_path / TEXT_FILE).write_text(TEXT.replace("green", "brown"))
    with pytest.raises(CheckpointError, match=r"training\.data is not the text that it learned from"):
        resumed(tmp_path)
    (tmp_path / TEXT_FILE).unlink()
    with pytest.raises(CheckpointError, match=r"cannot be read"):
        resumed(tmp_path)


def test_before_the_first_snapshot_it_begins(folder):
    shutil.rmtree(folder / SNAPSHOTS)
    assert resumed(folder).training.step_number == 0


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right of their own there")
def test_snapshots_behind_a_link_are_refused_and_nothing_is_written_there(folder, tmp_path):
    far = tmp_path / "of the system"
    (folder / SNAPSHOTS).rename(far)
    (folder / SNAPSHOTS).symlink_to(far)
    before = {path: path.read_bytes() for path in far.iterdir()}
    with pytest.raises(CheckpointError, match="snapshots is a link, and a training would write wherever it leads"):
        resumed(folder)
    assert why_not(folder).startswith(f"{folder / SNAPSHOTS} is a link")
    assert steps_in(folder) == ()
    assert {path: path.read_bytes() for path in far.iterdir()} == before


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right of their own there")
def test_a_link_under_the_name_of_what_is_being_written_is_not_followed(folder, tmp_path):
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    found = resumed(folder).training
    name = snapshot_path(folder, found.step_number + 1).name
    for planted in (f".{name}.unfinished", name):
        (folder / SNAPSHOTS / planted).symlink_to(precious)
    found.run(Budget(steps=1))
    found.snapshot()
    assert precious.read_bytes() == b"precious"
    assert resumed(folder).training.step_number == found.step_number
    copied = tmp_path / "copy" / SNAPSHOTS
    copied.mkdir(parents=True)
    for planted in (f".{name}.unfinished", name):
        (copied / planted).symlink_to(precious)
    Snapshots(copied).copy(snapshot_path(folder, found.step_number))
    assert precious.read_bytes() == b"precious"
    assert (copied / name).read_bytes() == snapshot_path(folder, found.step_number).read_bytes()


def test_a_snapshot_of_no_step_has_no_optimiser_yet(tmp_path):
    planned = experiment("copy:4", {**OF_ALL, **SMALL})
    training = planned.training(tmp_path / SNAPSHOTS)
    training.snapshot()
    save(training, planned, tmp_path)
    found = resumed(tmp_path).training
    for one in (found, training):
        one.step()
    ours, theirs = weights(found), weights(training)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def _record(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        table = json.loads((folder / RECORD).read_text())
        (folder / RECORD).write_text(json.dumps({**table, **changes}))

    return change


def _config(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        table = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**table, **changes}))

    return change


def _newest(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        tensors = load_file(snapshot_path(folder, 6))
        change(tensors)
        save_file(tensors, snapshot_path(folder, 6))

    return damage


def _cut(folder: Path) -> None:
    path = snapshot_path(folder, 6)
    path.write_bytes(path.read_bytes()[:-8])


def _first(tensors: dict[str, torch.Tensor], part: str) -> str:
    return next(name for name in sorted(tensors) if name.startswith(part))


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no record": (lambda folder: (folder / RECORD).unlink(), "There is no training in .*: it holds no training.json"),
    "no json": (lambda folder: (folder / RECORD).write_text("{"), "cannot be read as JSON"),
    "empty": (lambda folder: (folder / RECORD).write_text("{}"), "describes no training that could go on"),
    "no task": (_record(task="juggle"), "there is no task “juggle”"),
    "other alphabet": (_record(task="brackets:2"), "vocabulary in config.json is not that of the training"),
    "no difficulty": (_record(task="copy:many"), "“many” is no number"),
    "no switch": (_record(switches={"colour": "red"}), "there is no switch “colour”"),
    "other switch": (_record(switches={}), "its settings are not those of its switches"),
    "seed": (_record(settings={"seed": float("inf")}), "the seed is inf, and has to be a whole number"),
    "large seed": (_record(settings={"seed": 1 << 70}), "the seed is a number of more than 20 digits"),
    "many rows": (_record(switches={**SMALL, "batch": "1000000000"}), "batch is 1,000,000,000, and is 4,096 at most"),
    "many layers": (_record(switches={**SMALL, "layers": "1000000"}), "layers is 1,000,000, and is 128 at most"),
    "not switches": (_record(switches=[1]), "describes no training that could go on"),
    "negative": (_record(budget={"seconds": None, "steps": -1, "spent": 0}), "give a positive number"),
    "config": (_config(positions="rope"), "positions in config.json is not that of the training"),
    "no config": (lambda folder: (folder / "config.json").unlink(), "has no config.json"),
    "cut": (_cut, "damaged or was not fetched whole"),
    "no optimiser": (_newest(lambda t: t.pop(_first(t, "exp_avg_sq."))), "lacks exp_avg_sq"),
    "no weights": (_newest(lambda t: t.pop(_first(t, "model."))), "lacks model."),
    "shape": (
        _newest(lambda t: t.__setitem__(_first(t, "exp_avg."), torch.zeros(3))),
        "is of another training: its exp_avg",
    ),
    "no numbers": (_newest(lambda t: t[_first(t, "exp_avg.")].fill_(torch.nan)), "holds values that are no numbers"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_folder_that_does_not_hold_together_is_refused(folder, what):
    damage, words = DAMAGE[what]
    damage(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(CheckpointError, match=words):
        resumed(folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
