"""What the process that trains can be asked for: a textbook model from nothing, or a checkpoint that learns on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from models.files.training_steps import SNAPSHOTS
from models.opening.open import open_checkpoint
from models.protocol.training_messages import Asked, AskedTuning
from models.training.continuation import written
from models.training.course import Course
from models.training.experiment import Experiment, experiment
from models.training.finetuning import FineTuning, settings_of
from models.training.folders import save
from models.training.pairs_file import data_of
from models.training.resuming import resumed
from models.training.training import Training
from models.training.tuned_folders import restore_tuned, save_tuned
from models.training.tuning_rows import rows_of


class Taught(Protocol):
    """A model that is to learn, and how it is kept."""

    @property
    def course(self) -> Course:
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

    def write(self, prompt: str) -> tuple[str, str] | None:
        """What the model writes after `prompt`, before it learned and now; None where it began as nothing.

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
    watched: int = 128  # a curve with many points says more than one with exact ones
    cools_down: bool = True
    made_from: None = None

    @property
    def title(self) -> str:
        return self.planned.title

    @property
    def example(self) -> str:
        return self.planned.example

    def save(self, folder: Path) -> None:
        save(self.course, self.planned, folder)

    def write(self, prompt: str) -> None:
        return None


@dataclass(frozen=True, slots=True)
class _Tuned:
    course: FineTuning
    data: str  # its name
    made_from: Path
    example: str = ""
    cools_down: bool = False
    _before: dict[str, str] = field(default_factory=dict)  # what the checkpoint writes, by prompt: that never changes

    @property
    def watched(self) -> int:
        """All: what is measured before stands beside what is measured after."""
        return self.course.settings.held_out

    @property
    def title(self) -> str:
        return f"go on from {self.course.model.info.name} with {self.data}"

    def save(self, folder: Path) -> None:
        save_tuned(self.course, folder, self.data)

    def write(self, prompt: str) -> tuple[str, str]:
        course = self.course
        course.module.eval()
        if prompt not in self._before:
            with course.as_it_was():
                self._before[prompt] = written(course.model, prompt)
        before = self._before[prompt]
        return before, written(course.model, prompt) if course.step_number else before


def _tuned(asked: AskedTuning, folder: Path, taken_up: bool) -> _Tuned:
    data = data_of(asked)
    settings = settings_of(asked)
    model = open_checkpoint(asked.checkpoint)
    tuning = FineTuning(model, rows_of(model, data, settings.seed), settings, folder / SNAPSHOTS)
    if taken_up:
        restore_tuned(tuning, folder)
    return _Tuned(tuning, Path(asked.file).name if asked.file else "a pasted text", Path(model.info.folder))
