"""The script of the next batch gives, in a process of its own, the numbers of the step that is taken afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from attention_models.engine.engine import Engine
from attention_models.protocol.scripts import ScriptRequest
from attention_models.protocol.training_messages import Asked
from attention_models.protocol.training_scripts import BatchOnScreen
from attention_models.training.experiment import experiment
from attention_models.training.gradient_breakdown import break_down_gradient
from attention_models.training.training import Training
from tests.models.asking import failure_of
from tests.models.scripts.running import printed, script

TOLERANCE = 1e-6  # of the number itself: Adam's own lines are in float64, and torch's clip is in float32

SMALL = {"width": "16", "heads": "2", "layers": "1", "batch": "4"}
LARGE = {"width": "64", "heads": "4", "layers": "1", "batch": "8"}
KINDS: dict[str, tuple[str, dict[str, str], int]] = {
    "encoder-decoder": ("addition:2", LARGE, 7),
    "at first": ("reverse:4", LARGE, 0),
    "decoder": ("addition:2", {**SMALL, "shape": "decoder", "tied": "off", "label_smoothing": "0"}, 3),
    "encoder": ("sort:3", {**SMALL, "shape": "encoder", "positions": "t5"}, 2),
    "text": ("text:12", {**SMALL, "clip": "0.5"}, 12),
}
TEXT = "The cat sat on the mat. A dog ran by the river, and nobody knew why it did. " * 5


def waiting(folder: Path, task: str, switches: dict[str, str], steps: int) -> tuple[Training, BatchOnScreen]:
    """A training that waits after so many steps, and what is on screen of its next one."""
    asked = Asked(task, tuple(switches.items()), seed=2, text=TEXT if task.startswith("text") else "")
    training = experiment(asked.task, switches, asked.seed, asked.text).training(folder / "snapshots")
    for _ in range(steps):
        training.step()
    training.snapshot()
    with training.untouched():
        found = break_down_gradient(training)
    return training, BatchOnScreen(asked=asked, dissection=found, row=2, folder=str(folder))


def code_of(request: BatchOnScreen) -> str:
    return script(Engine(), request)


def test_its_numbers_are_those_of_the_step(tmp_path: Path) -> None:
    made = {name: waiting(tmp_path / name, *kind) for name, kind in KINDS.items()}
    scripts = {name: code_of(request) for name, (_, request) in made.items()}
    assert [name for name, code in scripts.items() if "load_file(" in code] == ["encoder-decoder", "at first"]
    for name, lines in printed(scripts, tmp_path, own_classes=True).items():
        training, request = made[name]
        found, said = request.dissection, {line.name: line for line in lines}
        for line in lines:
            assert line.computed == pytest.approx(line.shown, rel=TOLERANCE, abs=1e-9), (name, line)
        weight = training.model.get_parameter(found.adam.name)
        before = float(weight.detach()[found.adam.index])
        loss = training.step().loss
        assert said["loss of the batch"].computed == pytest.approx(loss, rel=TOLERANCE)
        after = float(weight.detach()[found.adam.index])
        assert said["weight afterwards"].computed == pytest.approx(after, rel=TOLERANCE)
        assert said["change"].computed == pytest.approx(after - before, abs=1e-7)  # the weight is in float32
        row = [token.loss for token in found.tokens if token.row == 2]
        assert [line.shown for line in lines if line.name.startswith("loss of row 3,")] == row


def test_weights_that_are_not_kept_any_more_are_said_to_be_gone(tmp_path: Path) -> None:
    training, request = waiting(tmp_path, "reverse:4", SMALL, 3)
    assert training.snapshots is not None
    training.snapshots.clear()
    assert "are in no snapshot any more" in failure_of(Engine(), ScriptRequest(of=request)).sentence


def test_a_batch_that_is_too_large_to_be_written_is_refused(tmp_path: Path) -> None:
    _, request = waiting(tmp_path, "reverse:4", SMALL, 1)
    found = request.dissection
    many = replace(found, labels=found.labels * 3000)
    sentence = failure_of(Engine(), ScriptRequest(of=replace(request, dissection=many))).sentence
    assert "Train with fewer rows a batch" in sentence
