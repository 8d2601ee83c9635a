"""The process that trains runs side by side: what it tells is what `Comparison` finds, and it ends when told to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest
import torch

from attention_models import open_checkpoint
from attention_models.files.own_process import OwnProcess
from attention_models.protocol.experiment_messages import (
    EXPERIMENT_HERE,
    BeginRuns,
    Finding,
    Measure,
    RunsBegan,
    RunsEnded,
    RunsLearned,
    RunsMeasured,
    from_experiment,
    to_experiment,
)
from attention_models.protocol.training_messages import Failed, HeldOutPoint, Said, Stop, TrainingPoint, line_of
from attention_models.training.comparison import Comparison
from attention_models.training.experiment_process import MEASURED, Runs
from attention_models.training.prepared import read_prepared
from tests.models.training.talk import Talk

TINY = """
[tiny]
title = "Tiny"
compares = "Two."
look_for = "Either."
claim = "None."
source = "Nobody"
task = "copy:3"
steps = {steps}
seconds = 1
set = {{ width = 16, heads = 2, layers = 1, batch = 8 }}
runs = [
    {{ name = "sinusoids" }},
    {{ name = "none", set = {{ positions = "none" }} }},
    {{ name = "wild", set = {{ rate = 1e30, warmup = 1 }} }},
]
holds = [
    {{ measure = "training loss", run = "none", at_most = 50 }},
    {{ measure = "steps to learn", run = "sinusoids", below = "none" }},
    {{ measure = "milliseconds a step", run = "sinusoids", at_most = 0 }},
]
shown = ["sequences right", "held-out loss"]
"""


def tiny(folder: Path, steps: int = 45) -> str:
    path = folder / "tiny.toml"
    path.write_text(TINY.format(steps=steps))
    return str(path)


@pytest.fixture
def talk() -> Iterator[Talk]:
    talking = Talk(Runs, from_experiment)
    yield talking
    talking.close()


def without_time(point: TrainingPoint) -> tuple[Any, ...]:
    return (point.step, point.loss, point.accuracy, point.rate, point.gradients)


def test_what_is_told_comes_back_as_it_was():
    point = TrainingPoint(3, 0.1 + 0.2, 1 / 3, 1e-300, 5.0, (("head", 2.5),))
    held = HeldOutPoint(3, 1 / 7, 0.5, 0.25, 100)
    told = [
        *(RunsBegan((1, 2)), RunsLearned(3, ((point,), ()), 1.5), RunsMeasured((held, None))),
        RunsEnded(
            "done", 3, 1.5, (Measure("steps to learn", ("7", "never")),), (Finding("a “b”\n", True, False),), ("x",)
        ),
        *(Said("a"), Failed("b", "c")),
    ]
    assert [from_experiment(line_of(message)) for message in told] == told
    asked = [BeginRuns("/tmp/x.toml", "tiny", 3, "/tmp"), Stop()]
    assert [to_experiment(line_of(message)) for message in asked] == asked


@pytest.mark.parametrize("line", [b"", b"{", b'{"type": "Go"}', b'{"type": "BeginRuns", "file": "x"}'])
def test_anything_else_is_refused(line):
    with pytest.raises(ValueError, match="no message"):
        to_experiment(line)


def test_every_point_and_figure_is_that_of_the_runs_themselves(talk, tmp_path):
    """Bit for bit, also that of a run that diverges."""
    path = tiny(tmp_path)
    talk.tell(BeginRuns(path, "tiny", 4, str(tmp_path)))
    told, ended = talk.until(RunsEnded)

    alone = Comparison(read_prepared(Path(path))["tiny"], 4)
    points: list[list[TrainingPoint]] = [[], [], []]
    held = [[learner.training.measure() for learner in alone.learners]]
    while not alone.is_done:
        for kept, point in zip(points, alone.step(), strict=True):
            if point is not None:
                kept.append(TrainingPoint(*astuple(point)))
        if alone.step_number % (45 // MEASURED) == 0 or alone.is_done:
            held.append([learner.training.measure() for learner in alone.learners])
    verdict = alone.verdict()

    (began,) = (message for message in told if isinstance(message, RunsBegan))
    assert began.parameters == tuple(
        sum(p.numel() for p in learner.training.model.parameters()) for learner in alone.learners
    )
    learned = [message for message in told if isinstance(message, RunsLearned)]
    for run in range(3):
        heard = [point for message in learned for point in message.points[run]]
        assert list(map(without_time, heard)) == list(map(without_time, points[run]))
    assert len(points[2]) < 45 == learned[-1].step
    measured = [message.held_out for message in told if isinstance(message, RunsMeasured)]
    assert [row[:2] for row in measured] == [tuple(HeldOutPoint(*astuple(one)) for one in row[:2]) for row in held]
    assert measured[-1][2] is None

    assert (ended.how, ended.step) == ("done", 45)
    figures = {measure.name: measure.figures for measure in ended.measures}
    assert figures["training loss"][:2] == tuple(
        f"{v:.3g}" for v in list(verdict.measured["training loss"].values())[:2]
    )
    assert figures["held-out loss"][0] == f"{held[-1][0].loss:.3g}"
    assert figures["steps to learn"] == ("never", "never", "never")
    assert math.inf in verdict.measured["steps to learn"].values()
    assert [(finding.holds, finding.is_clocked) for finding in ended.findings] == [
        (True, False),
        (False, False),
        (False, True),
    ]
    assert ended.findings[0].sentence == verdict.findings[0].sentence
    assert ended.notices == verdict.notices
    assert ended.models[2] is None  # nothing can be read off one that diverged
    assert [Path(model.folder).name for model in ended.models[:2]] == ["tiny-sinusoids", "tiny-none"]
    for learner, model in zip(alone.learners[:2], ended.models[:2], strict=True):
        module = open_checkpoint(model.folder).module
        weights = learner.training.model.state_dict()
        assert all(torch.equal(p, weights[name]) for name, p in module.named_parameters())
        assert set(model.example) <= set(learner.training.rows.alphabet)
    assert ended.notices[0].startswith("wild: At step ")


def test_stopped_it_tells_what_was_measured_and_judges_nothing(talk, tmp_path):
    talk.tell(BeginRuns(tiny(tmp_path, steps=1_000_000), "tiny", 0, str(tmp_path)))
    talk.until(RunsLearned)
    talk.tell(Stop())
    told, ended = talk.until(RunsEnded)
    assert ended.how == "stopped"
    assert 0 < ended.step < 1_000_000
    assert ended.findings == ()
    assert [measure.name for measure in ended.measures][:1] == ["training loss"]
    heard = [message.step for message in told if isinstance(message, RunsLearned)]
    assert not heard or heard[-1] == ended.step
    talk.tell(Stop())
    assert talk.until(Said)[1].sentence == "The runs are over."


@pytest.mark.parametrize(
    ("text", "name", "sentence"),
    [
        (TINY.format(steps=1), "dance", "There is no experiment “dance”. There are tiny."),
        (TINY.format(steps=1).replace("heads = 2", "heads = 3"), "tiny", "Heads is 3, which does not divide"),
        ("[a]\ntitle = 'A'", "a", "The experiment a is not whole"),
        (None, "a", "The list of experiments cannot be read (No such file or directory)."),
    ],
)
def test_what_cannot_be_run_is_a_sentence(talk, tmp_path, text, name, sentence):
    path = tmp_path / "x.toml"
    if text is not None:
        path.write_text(text)
    talk.tell(BeginRuns(str(path), name, 0, str(tmp_path)))
    failed = talk.until(Failed)[1]
    assert sentence in failed.sentence
    assert failed.cause == ""


def test_a_disk_that_refuses_is_said_with_what_came_out(talk, tmp_path):
    talk.tell(BeginRuns(tiny(tmp_path, steps=3), "tiny", 0, str(tmp_path / "nowhere" / "at all")))
    ended = talk.until(RunsEnded)[1]
    assert (ended.how, ended.models) == ("done", ())
    assert len(ended.findings) == 3
    assert "could not be written" in ended.notices[-1]


def test_what_it_does_not_understand_is_said_and_it_goes_on(talk, tmp_path):
    talk.write(b"hello\n")
    talk.tell(Stop(), BeginRuns(tiny(tmp_path, steps=2), "tiny", 0, str(tmp_path)))
    told, ended = talk.until(RunsEnded)
    assert any(isinstance(message, Said) and "does not understand" in message.sentence for message in told)
    assert ended.how == "done"


@pytest.mark.full
def test_the_process_ends_with_its_input_in_the_middle_of_a_step(tmp_path):
    process = OwnProcess("attention_models.training.experiment_process", EXPERIMENT_HERE).running()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line_of(BeginRuns(tiny(tmp_path, steps=1_000_000), "tiny", 0, str(tmp_path))))
    process.stdin.flush()
    while not isinstance(from_experiment(process.stdout.readline()), RunsLearned):
        pass
    process.stdin.close()
    while process.stdout.readline():
        pass
    assert process.wait(20) == 0
    process.stdout.close()
