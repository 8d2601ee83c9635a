"""The script of a training from nothing, in a process of its own, gives the losses of the training itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from attention_models.engine.engine import Engine
from attention_models.protocol.scripts import ScriptRequest, ScriptView
from attention_models.protocol.training_messages import Asked, HeldOutPoint, TrainingPoint
from attention_models.protocol.training_scripts import TrainingOnScreen
from attention_models.scripts.training.learning import learning_script
from attention_models.scripts.training.lines import MOST_WRITTEN
from attention_models.textbook.sentences import english_text
from attention_models.textbook.tasks import TASKS
from attention_models.training.common import Budget
from attention_models.training.experiment import experiment
from attention_models.training.folders import save
from attention_models.training.taught import WATCHED
from attention_models.training.training import Training
from tests.models.asking import ask, failure_of
from tests.models.scripts.running import Line, printed

TOLERANCE = 1e-6  # of a loss: none is needed where torch has as many threads
TINY = {"width": "16", "heads": "2", "layers": "1", "batch": "4"}
SHORT = {"modular": ":7", "spanish": ":1", "feeling": ":1", "brackets": ":3"}

MODELS: dict[str, tuple[str, dict[str, str]]] = {
    "decoder": ("addition:2", {**TINY, "shape": "decoder", "positions": "rope", "tied": "off"}),
    "encoder": ("sort:4", {**TINY, "shape": "encoder", "norm": "rms", "norm_place": "pre", "label_smoothing": "0"}),
    "no causal mask": ("copy:3", {**TINY, "shape": "decoder", "causal_mask": "off", "positions": "learned"}),
    "reads the target ahead": ("addition:1", {**TINY, "causal_mask": "off", "score": "additive"}),
    "other numbers": ("reverse:3", {**TINY, "rate": "1.5", "warmup": "2", "clip": "0.1", "dropout": "0.3"}),
    "bahdanau": ("dates", {"model": "recurrent", "hidden": "8", "batch": "4"}),
    "luong": ("reverse:4", {"model": "recurrent", "hidden": "8", "score": "dot", "scope": "predictive"}),
    "lstm": ("copy:4", {"model": "recurrent", "hidden": "8", "score": "general", "cell": "lstm"}),
    "bottleneck": ("reverse:4", {"model": "recurrent", "hidden": "8", "score": "none", "bidirectional": "off"}),
}
LONG, CLOCK = "long text", "by the clock"


class Case(NamedTuple):
    training: Training
    request: TrainingOnScreen
    code: str
    lines: list[Line]  # that it printed


def trained(asked: Asked, folder: Path | None = None) -> tuple[Training, TrainingOnScreen]:
    """The training that is asked for, at its end, and what is on screen of it."""
    planned = experiment(asked.task, dict(asked.switches), asked.seed, asked.text)
    training = planned.training()
    training.measure(WATCHED)
    training.run(Budget(asked.seconds, asked.steps), cool_down=True)
    training.measure()
    if folder is not None:
        save(training, planned, folder)
    return training, on_screen(training, asked, folder)


def on_screen(training: Training, asked: Asked, folder: Path | None = None) -> TrainingOnScreen:
    return TrainingOnScreen(
        asked=asked,
        points=tuple(TrainingPoint(*astuple(point)) for point in training.points),
        held_out=tuple(HeldOutPoint(*astuple(found)) for found in training.held_out),
        folder="" if folder is None else str(folder),
    )


def asked_for(task: str, switches: dict[str, str], seed: int, steps: int, text: str = "") -> Asked:
    return Asked(task, tuple(switches.items()), seed=seed, text=text, seconds=None, steps=steps)


STRANGE = "“¿Qué?” \"two\" 'one' \\n \\ \t\r\n{x}\u202e\x0b\u2028 \U0001f600"
ASKED = {
    **{name: asked_for(f"{name}{SHORT.get(name, '')}", TINY, 3, 4) for name in TASKS},
    **{name: asked_for(task, switches, 1, 6) for name, (task, switches) in MODELS.items()},
    "text": asked_for("text:12", {**TINY, "positions": "alibi"}, 1, 6, english_text(1500, 1)),
    "strange text": asked_for("text:8", TINY, 0, 2, (STRANGE + english_text(60, 1)) * 12),
    LONG: asked_for("text:8", TINY, 0, 2, english_text(MOST_WRITTEN + 1, 2) + STRANGE),
    CLOCK: Asked("reverse:3", tuple(TINY.items()), seconds=2.0),
}


FEW = ("dates", "decoder", "bahdanau", "text")
"""What runs with the other tests."""


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Case]:
    """A training and what its script prints, by name; the few and the rest run in one process each."""
    folder = tmp_path_factory.mktemp("scripts")

    @cache
    def run_together(few: bool) -> dict[str, Case]:
        made = {}
        for name in ASKED:
            if (name in FEW) == few:
                training, request = trained(ASKED[name], folder / "model" if name == LONG else None)
                if name == CLOCK:  # how many steps it takes is for the computer's speed to say
                    request = replace(request, points=request.points[:3])
                made[name] = (training, request, learning_script(request).code())
        found = printed({name: code for name, (_, _, code) in made.items()}, folder, own_classes=True)
        return {name: Case(*made[name], found[name]) for name in made}

    return lambda name: run_together(name in FEW)[name]


@pytest.mark.short(*FEW)
@pytest.mark.parametrize("name", [name for name in ASKED if name != CLOCK])
def test_it_learns_as_it_does_in_the_window(every: Callable[[str], Case], name: str) -> None:
    """Each number that is said to be on screen is the training's, and the script comes by it too."""
    case = every(name)
    training = case.training
    first, last = training.held_out
    figures = [(found.loss, found.tokens_right, found.sequences_right) for found in (first, last)]
    shown = [*figures[0], *(point.loss for point in training.points), *figures[1]]
    assert [line.shown for line in case.lines] == shown
    for line in case.lines:
        assert line.computed == pytest.approx(line.shown, abs=TOLERANCE), line


@pytest.mark.full
def test_by_the_clock_the_first_steps_are_the_same(every: Callable[[str], Case]) -> None:
    lines = every(CLOCK).lines
    assert [line.shown for line in lines[3:]] == [point.loss for point in list(every(CLOCK).training.points)[:3]]
    for line in lines:
        assert line.computed == pytest.approx(line.shown, abs=TOLERANCE), line


def test_rows_are_made_by_lines_that_are_in_the_script(every: Callable[[str], Case]) -> None:
    assert "def date_pair(" in every("dates").code
    assert not any("from attention_models.training" in every(name).code for name in FEW)


@pytest.mark.full
def test_a_long_text_is_read_from_the_folder_of_the_training(every: Callable[[str], Case]) -> None:
    assert len(every(LONG).code) < 10_000
    request = replace(every(LONG).request, folder="", points=(), held_out=())
    sentence = failure_of(Engine(), ScriptRequest(of=request)).sentence
    assert "characters, too many for a script. Press Train" in sentence


def test_what_came_after_another_ending_is_not_said_to_be_the_scripts() -> None:
    """Stopped while the rate fell, and gone on with: the script, which does not stop, comes elsewhere."""
    asked = Asked("reverse:3", tuple(TINY.items()), seconds=None, steps=10)
    training = experiment(asked.task, dict(asked.switches)).training()
    training.run(Budget(steps=10), command=lambda: "stop" if training.step_number == 9 else "go", cool_down=True)
    training.run(Budget(steps=10), command=lambda: "stop" if training.step_number == 10 else "go", cool_down=True)
    training.measure()
    code = learning_script(on_screen(training, asked)).code()
    points = list(training.points)
    assert repr(points[8].loss) in code
    assert repr(points[9].loss) not in code
    assert repr(training.held_out[-1].loss) not in code


@pytest.mark.full
def test_one_that_has_not_begun_can_be_run(tmp_path: Path) -> None:
    asked = Asked("copy:3", tuple(TINY.items()), seconds=None, steps=2)
    view = ask(Engine(), ScriptRequest(of=TrainingOnScreen(asked=asked)))
    assert isinstance(view, ScriptView)
    assert view.title == "A model that learns to write the letters again: copy:3, seed 0"
    assert printed({"new": view.code}, tmp_path, own_classes=True)["new"] == []


def test_what_cannot_be_trained_is_said() -> None:
    asked = Asked("reverse", (("width", "10"), ("heads", "4")))
    sentence = failure_of(Engine(), ScriptRequest(of=TrainingOnScreen(asked=asked))).sentence
    assert "does not divide" in sentence
