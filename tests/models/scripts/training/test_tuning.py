"""The script of a fine-tuning gives, in a process of its own, the losses of the fine-tuning itself."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Collection
from dataclasses import astuple
from pathlib import Path

import pytest
from msgspec.structs import replace

from attention_models.engine.engine import Engine
from attention_models.opening.open import open_checkpoint
from attention_models.protocol.scripts import ScriptRequest
from attention_models.protocol.training_messages import AskedTuning, HeldOutPoint, TrainingPoint
from attention_models.protocol.training_scripts import TuningOnScreen
from attention_models.scripts.training.lines import MOST_WRITTEN
from attention_models.training.common import Budget
from attention_models.training.finetuning import FineTuning, settings_of
from attention_models.training.pairs_file import source_of
from attention_models.training.tuning_rows import data_for, rows_of
from tests.models import tiny
from tests.models.asking import failure_of
from tests.models.scripts.running import few_first, printed, script

TOLERANCE = 1e-5  # of a loss: none is needed where torch has as many threads

_TEXT = "Tom and Anna went to the park . They saw a “big” dog , and the dog was happy to run ."
_NOUNS = ("dog", "cat", "man", "sun", "sea", "boy")
TEXT = "\n".join(" ".join(random.Random(line).sample(_TEXT.split(), 12)) for line in range(30))
PAIRS = "\n".join(f"the {word} is here\tel {word} está aquí" for word in _NOUNS)
STEPS = 3


FIRST = AskedTuning("story-gpt", text=TEXT, seconds=None, steps=STEPS)
WITHOUT_PADDING = dataclasses.replace(
    tiny.KINDS["gpt2_classifier"],
    settings={name: value for name, value in tiny.KINDS["gpt2_classifier"].settings.items() if name != "pad_token_id"},
)
ASKED = {
    "all": FIRST,
    "head": replace(FIRST, tuned="head", rate=0.01),
    "lora": replace(FIRST, tuned="lora", rank=2, seed=5),
    "masked": replace(FIRST, checkpoint="story-bert"),
    "pairs": replace(FIRST, checkpoint="en-es", text=PAIRS),
    "pairs lora": replace(FIRST, checkpoint="en-es", text=PAIRS, tuned="lora", rank=4),
    "file": replace(FIRST, text="", file="long.txt"),
}


def tuned(asked: AskedTuning) -> tuple[FineTuning, TuningOnScreen]:
    """What is asked for, at its end, and what is on screen of it."""
    model = open_checkpoint(asked.checkpoint)
    tuning = FineTuning(model, rows_of(model, data_for(model, source_of(asked)), asked.seed), settings_of(asked))
    tuning.measure()
    tuning.run(Budget(steps=asked.steps))
    tuning.measure()
    points = tuple(TrainingPoint(*astuple(point)) for point in tuning.points)
    held_out = tuple(HeldOutPoint(*astuple(found)) for found in tuning.held_out)
    return tuning, TuningOnScreen(asked=asked, points=points, held_out=held_out)


def code_of(request: TuningOnScreen) -> str:
    return script(Engine(), request)


def of_classes(folder: Path) -> AskedTuning:
    """A classifier learns from lines of a text and a class."""
    lines = [f"{line}\t{number % 2}" for number, line in enumerate(TEXT.split("\n"))]
    return replace(FIRST, checkpoint=str(folder), text="\n".join(lines))


CLASSIFIERS = ("classifier", "its head", "its lora", "without padding")


@few_first((*ASKED, *CLASSIFIERS), "head", "classifier")
def test_each_way_learns_as_it_does_in_the_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_folder: Callable[..., Path], kinds: Collection[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ways = {
        **ASKED,
        "classifier": of_classes(tiny_folder("bert_classifier")),
        "its head": replace(of_classes(tiny_folder("bert_classifier")), tuned="head"),
        "its lora": replace(of_classes(tiny_folder("bert_classifier")), tuned="lora", rank=2),
        "without padding": of_classes(tiny.save(WITHOUT_PADDING, tmp_path / "without")),
    }
    Path("long.txt").write_text(TEXT * (1 + MOST_WRITTEN // len(TEXT)), encoding="utf-8")
    made = {name: tuned(asked) for name, asked in ways.items() if name in kinds}
    scripts = {name: code_of(request) for name, (_, request) in made.items()}
    assert "file" not in kinds or "read_source(Path(" in scripts["file"]
    for name, lines in printed(scripts, tmp_path, own_classes=True).items():
        tuning, _ = made[name]
        before, after = tuning.held_out
        figures = [(found.loss, found.tokens_right, found.sequences_right) for found in (before, after)]
        shown = [*figures[0], *(point.loss for point in tuning.points), *figures[1]]
        assert [line.shown for line in lines] == shown, name
        for line in lines:
            assert line.computed == pytest.approx(line.shown, abs=TOLERANCE), (name, line)


def test_steps_that_it_does_not_take_are_not_said_to_be_its_own() -> None:
    """Gone on with after its end."""
    points = tuple(TrainingPoint(step, step + 0.125, 0.5, 2e-4, 1.0) for step in range(1, 9))
    code = code_of(TuningOnScreen(asked=FIRST, points=points))
    assert "3.125" in code
    assert "4.125" not in code
    assert "8.125" not in code


def test_a_long_text_that_was_pasted_is_refused() -> None:
    asked = replace(FIRST, text=TEXT * (1 + MOST_WRITTEN // len(TEXT)))
    sentence = failure_of(Engine(), ScriptRequest(of=TuningOnScreen(asked=asked))).sentence
    assert "too many for a script. Put it into a file" in sentence


def test_what_cannot_be_trained_is_said() -> None:
    sentence = failure_of(Engine(), ScriptRequest(of=TuningOnScreen(asked=AskedTuning("")))).sentence
    assert "No checkpoint is open" in sentence
