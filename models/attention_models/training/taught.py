"""What the process that trains can be asked for: a textbook model from nothing, or a checkpoint that learns on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from attention_models.decoding.beam import BEAMS, MOST_WRITTEN
from attention_models.decoding.decode import decode
from attention_models.files.training_steps import SNAPSHOTS
from attention_models.forward.classes import classes_at
from attention_models.forward.model import Model
from attention_models.forward.run import run
from attention_models.opening.open import open_checkpoint
from attention_models.protocol.chat import Pair
from attention_models.protocol.training_messages import Asked, AskedTuning, Classified, ClassShare, Wrote
from attention_models.training.experiment import Experiment, experiment
from attention_models.training.finetuning import FineTuning, check_kind, settings_of
from attention_models.training.folders import save
from attention_models.training.pairs_file import Source, source_of
from attention_models.training.resuming import resumed
from attention_models.training.training import Training
from attention_models.training.training_loop import TrainingLoop
from attention_models.training.tuned_folders import read_tuned, restore_tuned, save_tuned, source_in
from attention_models.training.tuning_rows import data_for, rows_of

# What a model writes after a prompt: a translator by the beam search of the window, others the likeliest token.
# A classifier writes nothing: of it the probability of each class.


MOST_TOKENS = 40  # of a text that could go on for ever


def written(model: Model, prompt: str) -> str:
    """Up to `MOST_TOKENS` tokens; the whole of a translation; of a masked model the prompt with its masks filled in.

    Raises:
        InputError: the prompt is empty or too long.
    """
    steps = decode(model, prompt, MOST_TOKENS)
    if model.seq2seq:
        steps = decode(model, prompt, MOST_WRITTEN, strategy="beam", beams=BEAMS)
    text = ""
    for step in steps:
        text = step.text
    return text


def shares(model: Model, prompt: str, second: str = "") -> dict[int, tuple[str, float]]:
    """Label and probability of each class by its number, of a text or, where there is a second one, of the pair.

    Raises:
        InputError: a text is empty or too long, or the model reads no pairs.
    """
    trace = run(model, Pair(prompt, second) if second.strip() else prompt)
    return {one.id: (one.label, one.probability) for one in classes_at(model, trace, 0)}


_MOST_CLASSES = 12  # that are told of, of the likeliest

WATCHED = 128
"""Held-out rows that are measured while a model learns: a curve with many points says more than one with exact ones."""


class Taught(Protocol):
    """A model that is to learn, and how it is kept."""

    @property
    def course(self) -> TrainingLoop:
        """It learns step by step."""

    @property
    def title(self) -> str:
        """What it learns, as a sentence goes on: "write the letters backwards"."""

    @property
    def example(self) -> str:
        """A text for it to read; "" where that is for the person to say."""

    @property
    def watched(self) -> int:
        """Held-out rows that are measured while it learns."""

    @property
    def cools_down(self) -> bool:
        """Whether its rate falls towards the end."""

    @property
    def made_from(self) -> Path | None:
        """The folder of the checkpoint that it began as, which it must not be saved in."""

    def save(self, folder: Path) -> None:
        """Write the model as it is now. Raises OSError where the disk refuses."""

    @property
    def classifies(self) -> bool:
        """Whether a row is a text and its class."""

    def write(self, prompt: str, second: str) -> Wrote | Classified | None:
        """What the model writes after `prompt`, or says of the two texts, before it learned and now.

        None where it began as nothing.

        Raises:
            ExplorerError: a prompt that it does not take.
        """


def taught(asked: Asked | AskedTuning, folder: Path, taken_up: bool) -> Taught:
    """What is asked for, with its snapshots in `folder`; it goes on from the newest of them where it is taken up.

    Raises:
        ValueError, ExplorerError: it cannot be had; the sentence says why.
    """
    if isinstance(asked, AskedTuning):
        return _tuned(asked, folder, taken_up)
    if taken_up:  # it may have lain there for long, so all of it is checked
        found = resumed(folder)
        return _FromNothing(found.experiment, found.training)
    planned = experiment(asked.task, dict(asked.switches), asked.seed, asked.text)
    return _FromNothing(planned, planned.training(folder / SNAPSHOTS))


@dataclass(frozen=True, slots=True)
class _FromNothing:
    planned: Experiment
    course: Training
    watched: int = WATCHED
    cools_down: bool = True
    made_from: None = None
    classifies: bool = False

    @property
    def title(self) -> str:
        return self.planned.title

    @property
    def example(self) -> str:
        return self.planned.example

    def save(self, folder: Path) -> None:
        save(self.course, self.planned, folder)

    def write(self, prompt: str, second: str) -> None:
        return None


@dataclass(frozen=True, slots=True)
class _Tuned:
    course: FineTuning
    data: Source
    made_from: Path
    example: str = ""
    cools_down: bool = False
    # what the checkpoint writes, or says, by prompt: that never changes
    _before: dict[tuple[str, str], Any] = field(default_factory=dict)

    @property
    def watched(self) -> int:
        """All: what is measured before stands beside what is measured after."""
        return self.course.settings.held_out

    @property
    def title(self) -> str:
        return f"go on from {self.course.model.info.name} with {self.data.title}"

    @property
    def classifies(self) -> bool:
        return self.course.model.info.class_head is not None

    def save(self, folder: Path) -> None:
        save_tuned(self.course, folder, self.data)

    def write(self, prompt: str, second: str) -> Wrote | Classified:
        course = self.course
        course.module.eval()
        say: Callable[[], Any] = partial(written, course.model, prompt)
        if self.classifies:
            say = partial(shares, course.model, prompt, second)
        if (prompt, second) not in self._before:
            with course.as_it_was():
                self._before[prompt, second] = say()
        before = self._before[prompt, second]
        after = say() if course.step_number else before
        if not self.classifies:
            return Wrote(prompt, before, after, course.step_number)
        ranked = sorted(after, key=lambda number: -after[number][1])
        classes = [
            ClassShare(after[number][0], before[number][1], after[number][1]) for number in ranked[:_MOST_CLASSES]
        ]
        return Classified(prompt, second, tuple(classes), len(after) - len(classes), course.step_number)


def _tuned(asked: AskedTuning, folder: Path, taken_up: bool) -> _Tuned:
    record = read_tuned(folder) if taken_up else None  # which has the data as they were: the file may be another by now
    source = source_of(asked) if record is None else source_in(record, folder)
    settings = settings_of(asked)
    model = open_checkpoint(asked.checkpoint)
    check_kind(model)
    rows = rows_of(model, data_for(model, source), settings.seed)
    tuning = FineTuning(model, rows, settings, folder / SNAPSHOTS, keeps_first=True)
    if record is not None:
        restore_tuned(tuning, record, folder)
    return _Tuned(tuning, source, Path(model.info.folder))
