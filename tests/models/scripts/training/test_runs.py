"""The script of a prepared experiment gives, in a process of its own, the curves of its runs."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

import pytest

from attention_explorer.paths import resource
from attention_models.engine.engine import Engine
from attention_models.protocol.scripts import ScriptRequest
from attention_models.protocol.training_messages import HeldOutPoint, TrainingPoint
from attention_models.protocol.training_scripts import RunsOnScreen
from attention_models.training.comparison import Comparison
from attention_models.training.prepared import read_prepared
from tests.explorer.prepared import tiny_experiment
from tests.models.asking import failure_of
from tests.models.scripts.running import printed, script

TOLERANCE = 1e-6  # of a loss: none is needed where torch has as many threads

OTHERS = """
[others]
title = "Kinds"
compares = "A decoder that reads a text, and one that sees what follows."
look_for = "Nothing."
claim = "Nothing."
source = "Nobody"
steps = 6
seconds = 1
characters = 2000
set = { batch = 4, width = 16, heads = 2, layers = 1 }
runs = [
    { name = "a “text”", task = "text:8", set = { shape = "decoder" } },
    { name = "no mask", task = "copy:3", set = { causal_mask = "off", shape = "decoder" } },
]
holds = [{ measure = "training loss", run = "no mask", at_most = 50 }]

[recurrent]
title = "Scores"
compares = "Two recurrent models."
look_for = "Nothing."
claim = "Nothing."
source = "Nobody"
task = "reverse:3"
steps = 4
seconds = 1
set = { model = "recurrent", batch = 4, hidden = 8 }
runs = [{ name = "dot", set = { score = "dot" } }, { name = "none", set = { score = "none" } }]
holds = [{ measure = "training loss", run = "dot", at_most = 50 }]
"""


def run(file: Path, name: str, steps: int) -> tuple[Comparison, RunsOnScreen]:
    comparison = Comparison(read_prepared(file)[name], seed=4)
    points: list[list[TrainingPoint]] = [[] for _ in comparison.learners]
    for _ in range(steps):
        for kept, point in zip(points, comparison.step(), strict=True):
            assert point is not None
            kept.append(TrainingPoint(*astuple(point)))
    held_out = tuple((HeldOutPoint(*astuple(learner.held_out)),) for learner in comparison.learners)
    shown = tuple(map(tuple, points))
    return comparison, RunsOnScreen(file=str(file), name=name, seed=4, points=shown, held_out=held_out)


def code_of(request: RunsOnScreen) -> str:
    return script(Engine(), request)


def test_each_run_is_that_of_the_window(tmp_path: Path) -> None:
    tiny, _ = tiny_experiment(tmp_path)
    others = tmp_path / "others.toml"
    others.write_text(OTHERS, encoding="utf-8")
    made = {
        "tiny": run(Path(tiny), "tiny", 20),
        "stopped": run(Path(tiny), "tiny", 7),
        "others": run(others, "others", 6),
        "recurrent": run(others, "recurrent", 4),
    }
    found = printed({name: code_of(request) for name, (_, request) in made.items()}, tmp_path, own_classes=True)
    for name, lines in found.items():
        comparison, _ = made[name]
        for learner in comparison.learners:
            said = {line.name: line for line in lines if line.name.startswith(f"{learner.name}, ")}
            steps = len(learner.losses)
            losses = {step: learner.losses[step - 1] for step in (1, 2, 3, 4, 5, steps) if step <= steps}
            wanted = {f"{learner.name}, loss of step {step}": loss for step, loss in losses.items()}
            held = learner.held_out
            figures = {"loss": held.loss, "tokens right": held.tokens_right, "rows right": held.sequences_right}
            wanted |= {f"{learner.name}, held-out {what} after step {steps}": v for what, v in figures.items()}
            assert {key: line.shown for key, line in said.items()} == wanted
            for line in said.values():
                assert line.computed == pytest.approx(line.shown, abs=TOLERANCE), line


def test_every_experiment_that_comes_along_can_be_written() -> None:
    file = resource("experiments.toml")
    for name, prepared in read_prepared(file).items():
        code = code_of(RunsOnScreen(file=str(file), name=name, seed=0))
        compile(code, name, "exec")
        assert all(repr(run.name) in code for run in prepared.runs)


def test_a_run_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    path, _ = tiny_experiment(tmp_path)
    file = Path(path)
    file.write_text(file.read_text(encoding="utf-8").replace("heads = 2", "heads = 3"), encoding="utf-8")
    sentence = failure_of(Engine(), ScriptRequest(of=RunsOnScreen(file=path, name="tiny", seed=0))).sentence
    assert "does not divide" in sentence
