"""`my-model@4`: the weights of that step, whatever the folder is called, and a sentence for what there is not."""

from __future__ import annotations

import json
import pickle
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from attention_models import open_checkpoint, run
from attention_models.files.fingerprint import content_hash, fingerprint
from attention_models.files.training_steps import snapshot_path, step_of, steps_in
from attention_models.opening.open import describe
from attention_models.opening.trial import TrialRequest
from attention_models.opening.trial_process import verdict_elsewhere
from attention_models.protocol.errors import CheckpointError
from tests.models.training_folders import trained

SHAPES = ("encoder-decoder", "decoder", "encoder")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trainings") / "my-model"
    trained(path)
    return path


@pytest.fixture
def own(folder: Path, tmp_path: Path) -> Path:
    """One to do damage to."""
    return shutil.copytree(folder, tmp_path / "own")


@pytest.mark.short("on-encoder-decoder", "off-decoder")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("tied", ["on", "off"])
def test_the_weights_are_those_that_the_training_had(tmp_path, shape, tied):
    training = trained(tmp_path / "model", steps=2, shape=shape, tied=tied)
    then = {name: p.detach().clone() for name, p in training.model.named_parameters(remove_duplicate=False)}
    training.step()
    assert training.snapshots is not None
    training.snapshot()
    now = {name: p.detach().clone() for name, p in training.model.named_parameters(remove_duplicate=False)}
    assert steps_in(tmp_path / "model") == (2, 3)
    for step, wanted in ((2, then), (3, now)):
        module = open_checkpoint(f"{tmp_path / 'model'}@{step}").module
        found = dict(module.named_parameters(remove_duplicate=False))
        assert found.keys() == wanted.keys()
        assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    assert not all(torch.equal(then[name], now[name]) for name in then)


def test_a_recurrent_model_has_steps_too(tmp_path):
    training = trained(tmp_path / "model", model="recurrent")
    assert training.snapshots is not None
    for step in (2, 6):
        wanted = training.snapshots.load(step)
        model = open_checkpoint(f"{tmp_path / 'model'}@{step}")
        assert (model.info.name, model.info.reference) == (f"copy, step {step}", f"{tmp_path / 'model'}@{step}")
        found = dict(model.module.named_parameters())
        assert all(torch.equal(found[name], wanted[f"model.{name}"]) for name in found)
    with pytest.raises(CheckpointError, match="has no snapshot of step 3"):
        open_checkpoint(f"{tmp_path / 'model'}@3")


def test_what_is_said_of_it_is_of_the_step(folder):
    info = open_checkpoint(f"{folder}@4").info
    assert (info.reference, info.name, info.folder) == (f"{folder}@4", "copy, step 4", str(folder))
    assert info.summary == "A snapshot of a training, after step 4. The last one is of step 6."
    assert info.training is not None
    assert (info.training.step, info.training.steps, info.training.at(2)) == (4, (2, 4, 6), f"{folder}@2")
    assert describe(f"{folder}@4").parameters == describe(str(folder)).parameters == info.parameters
    end = open_checkpoint(folder).info
    assert end.training is not None
    assert (end.training.step, end.training.at(None), end.name) == (None, str(folder), "copy")


def test_the_end_has_the_weights_of_the_last_snapshot_where_it_was_taken_there(folder):
    text = "abcd"
    end, last, first = (run(open_checkpoint(f"{folder}{step}"), text, target="abc") for step in ("", "@6", "@2"))
    assert np.array_equal(end.logits, last.logits)
    assert not np.array_equal(end.logits, first.logits)


def test_its_contents_are_those_of_its_own_file(folder):
    two, four = (content_hash(describe(f"{folder}@{step}")) for step in (2, 4))
    assert set(two) == {"step-00000002.safetensors"}
    assert set(two.values()).isdisjoint(four.values())
    path = snapshot_path(folder, 4)
    found = fingerprint(path)
    assert {"config.json", "tokenizer.json", path.name} <= found.keys()
    assert {"training.json", "explorer.json", "model.safetensors"}.isdisjoint(found)


def test_an_at_sign_in_a_folders_name_stays_one(folder, tmp_path):
    plain = shutil.copytree(folder, tmp_path / "runs@4")
    assert step_of(str(plain)) is None
    assert open_checkpoint(plain).info.name == "copy"
    step = step_of(f"{plain}@2")
    assert step is not None
    assert (step.folder, step.step) == (plain, 2)
    shutil.copytree(plain, tmp_path / "runs@4@2")
    assert step_of(f"{plain}@2") is None
    shutil.rmtree(plain / "snapshots")
    shutil.rmtree(tmp_path / "runs@4@2")
    for reference in (f"{plain}@2", f"{tmp_path / 'runs'}@4@x", f"{folder}@", f"{folder}@-2", f"{folder}@٢"):
        with pytest.raises(CheckpointError, match="There is no checkpoint called"):
            open_checkpoint(reference)


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        ((2, 4, 6), "There are those of steps 2, 4 and 6."),
        ((4,), "There is one, of step 4."),
        (range(2, 2002, 2), "There are 1,000, from step 2 to 2,000, every 2 steps."),
        ((2, *range(10, 100, 10)), "There are 10, from step 2 to 90."),
    ],
)
def test_of_a_step_that_is_not_there_it_is_said_which_are(own, kept, words):
    whole = snapshot_path(own, 4).read_bytes()
    for step in steps_in(own):
        snapshot_path(own, step).unlink()
    for step in kept:
        snapshot_path(own, step).write_bytes(whole)
    with pytest.raises(CheckpointError) as found:
        open_checkpoint(f"{own}@12345")
    assert str(found.value) == f"own has no snapshot of step 12,345. {words}"


def _changed(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        tensors = load_file(path)
        change(tensors)
        save_file(tensors, path)

    return damage


def _first_weights(tensors: dict[str, torch.Tensor]) -> torch.Tensor:
    return next(tensors[name] for name in sorted(tensors) if name.startswith("model."))


def _bare(path: Path) -> None:
    header = b'{"model.x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}'
    path.write_bytes(struct.pack("<Q", 1 << 40) + header)


DAMAGE = {
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:-9]), "damaged or was not fetched whole"),
    "empty": (lambda path: path.write_bytes(b""), "damaged or was not fetched whole"),
    "huge header": (_bare, "damaged or was not fetched whole"),
    "pickle": (lambda path: path.write_bytes(pickle.dumps({"a": 1})), "damaged or was not fetched whole"),
    "no weights": (_changed(lambda t: [t.pop(n) for n in list(t) if n.startswith("model.")]), "holds no weights under"),
    "numbers": (
        _changed(lambda t: next(t[n] for n in sorted(t) if n.startswith("model.")).fill_(torch.nan)),
        "no numbers",
    ),
    "folder": (lambda path: (path.unlink(), path.mkdir()), "cannot be read"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_one_is_refused(own, what):
    damage, words = DAMAGE[what]
    damage(snapshot_path(own, 4))
    with pytest.raises(CheckpointError, match=words):
        open_checkpoint(f"{own}@4")
    assert open_checkpoint(f"{own}@2").info.training is not None


def test_one_of_another_training_is_refused(own, tmp_path):
    trained(tmp_path / "wide", width="32")
    shutil.copyfile(snapshot_path(tmp_path / "wide", 4), snapshot_path(own, 4))
    with pytest.raises(CheckpointError, match=r"own, step 4: .* another shape than config.json says"):
        open_checkpoint(f"{own}@4")
    tensors = load_file(snapshot_path(own, 2))
    name = next(n for n in tensors if n.startswith("model.") and "weight" in n)
    del tensors[name]
    save_file(tensors, snapshot_path(own, 2))
    with pytest.raises(CheckpointError, match="own, step 2 is incomplete"):
        open_checkpoint(f"{own}@2")


def test_it_is_tried_in_a_process_of_its_own_as_all_are(folder):
    verdict = verdict_elsewhere(TrialRequest(reference=f"{folder}@4"))
    assert verdict.refusal == ""
    assert verdict.info == describe(f"{folder}@4")
    assert "has no snapshot of step 5" in verdict_elsewhere(TrialRequest(reference=f"{folder}@5")).refusal


def test_a_folder_is_found_as_one_types_it(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    assert open_checkpoint("my-model@4").info.reference == "my-model@4"
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setenv("USERPROFILE", str(folder.parent))
    assert open_checkpoint("~/my-model@4").info.folder == str(folder)
    assert json.loads((folder / "training.json").read_text())["steps"] == 6
