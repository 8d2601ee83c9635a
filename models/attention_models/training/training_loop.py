"""What learns step by step: watched from outside, stopped and taken up again, whatever it is that learns."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from attention_models.training.common import Budget
from attention_models.training.gradients import StateGradient
from attention_models.training.settings import cooled
from attention_models.training.snapshots import Snapshots

MOST_POINTS = 4096  # of a curve; beyond, those of odd steps go first
_PAUSE = 0.02  # seconds between two looks at whether a pause is over

Command = Literal["go", "pause", "step", "stop"]
"""What `TrainingLoop.run` is told to do: "step" is one batch, and then it asks again."""


@dataclass(frozen=True, slots=True)
class Point:
    """One step of a training."""

    step: int  # counted from 1
    loss: float  # nats a token, with the label smoothing that it is trained with
    accuracy: float  # part of the batch's tokens that were the model's first choice
    rate: float
    tokens_per_second: float
    gradients: tuple[tuple[str, float], ...] = ()  # length by part of the model; every `NORMS_EVERY` steps
    states: tuple[StateGradient, ...] = ()  # of a recurrent encoder, by position; as often


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What the model makes of rows that it never learns from, after `step` steps."""

    step: int
    loss: float  # nats a token, without smoothing
    tokens_right: float
    sequences_right: float  # rows of which every token is right, when it writes them itself
    rows: int
    of_learned: float | None = None
    """The same loss of the rows that the last step learned from, without dropout and smoothing too; before the first
    step of those that it will learn from. None where it is no number, or was not measured."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. `notice` is a sentence for the person, "" where there is nothing to say."""

    ended: Literal["done", "stopped", "diverged"]
    step: int
    seconds: float  # of training: pauses are not counted
    notice: str = ""


class Diverged(Exception):
    """The loss cannot be followed any further. The message is for the person."""

    def __init__(self, step: int, sentence: str) -> None:
        super().__init__(sentence)
        self.step = step


class TrainingLoop(ABC):
    """A model that learns, and how far it has come."""

    def __init__(self, snapshots: Snapshots | None) -> None:
        """There are no snapshots where they are left out."""
        self.snapshots = snapshots
        self.step_number = 0
        self.cooling = 1.0
        """What the rate of the next step is multiplied by."""
        self.points: deque[Point] = deque()
        self.held_out: list[HeldOut] = []
        self.notice = ""

    @property
    @abstractmethod
    def snapshot_every(self) -> int:
        """Steps between two snapshots."""

    @property
    @abstractmethod
    def parameters(self) -> int:
        """How many numbers are learned."""

    @property
    @abstractmethod
    def dropout(self) -> float:
        """The part of the activations that a step drops, the largest of those of its layers."""

    @property
    def smoothing(self) -> float:
        """The part of the probability that a step's labels spread over all tokens."""
        return 0.0

    @abstractmethod
    def step(self, cooling: float = 1.0) -> Point:
        """Learn from one batch. `cooling` multiplies the rate.

        Raises:
            Diverged: the loss cannot be followed. Nothing was changed by this step.
        """

    @abstractmethod
    def measure(self, most: int | None = None) -> HeldOut:
        """What the model makes of the held-out rows now, or of the first `most` of them, without dropout."""

    @abstractmethod
    def _state(self) -> dict[str, Tensor]:
        """What a snapshot holds."""

    @abstractmethod
    def _take(self, state: dict[str, Tensor], step: int) -> None:
        """Be as a snapshot says."""

    def run(
        self,
        budget: Budget,
        command: Callable[[], Command] = lambda: "go",
        told: Callable[[Point], None] = lambda _: None,
        cool_down: bool = False,
        since: int | None = None,
        spent: float = 0.0,
    ) -> Outcome:
        """Train until `budget` is spent, or `command` says stop; `told` hears of each step.

        With `cool_down` the rate falls towards the end of the budget. Its steps are counted from step `since` on, from
        here on where that is left out, and `spent` of its seconds are gone: of a training that is taken up again both
        say how it went before.
        """
        seconds, first = spent, self.step_number if since is None else since
        ended: Literal["done", "stopped", "diverged"] = "done"
        while (fraction := budget.fraction(self.step_number - first, seconds)) < 1:
            self.cooling = cooled(fraction) if cool_down else 1.0
            asked = command()
            if asked == "stop":
                ended = "stopped"
                break
            if asked == "pause":
                time.sleep(_PAUSE)
                continue
            begun = time.perf_counter()
            try:
                point = self.step(self.cooling)
            except Diverged as error:
                self.cooling = 1.0
                return Outcome("diverged", error.step, seconds, f"{error} {self._back()}")
            if self.snapshots is not None and self.step_number % self.snapshot_every == 0:
                self.snapshot()
            seconds += time.perf_counter() - begun
            told(point)
        self.cooling = 1.0
        return Outcome(ended, self.step_number, seconds, self.notice)

    def _note(self, point: Point) -> None:
        self.points.append(point)
        every = 1
        while len(self.points) > MOST_POINTS:  # by their number: a record has every tenth step, of those that are left
            every *= 2
            self.points = deque(one for one in self.points if one.step == 1 or one.step % every == 0)

    def recall(self, held_out: Iterable[HeldOut], curve: Iterable[tuple[int, float, float, float]]) -> None:
        """Know what a folder's record tells of the steps up to here. Of each of the curve: loss, accuracy and rate."""
        self.held_out = [*held_out]
        self.points = deque(Point(step, loss, right, rate, 0.0) for step, loss, right, rate in curve)
        self._stand_at(self.step_number)

    def _stand_at(self, step: int) -> None:
        """Be at that step: what was noted of later ones goes."""
        self.step_number = step
        self.points = deque(point for point in self.points if point.step <= step)
        self.held_out = [found for found in self.held_out if found.step <= step]

    def _back(self) -> str:
        """Go back to the last good snapshot; says what was done."""
        steps = self.snapshots.steps if self.snapshots is not None else []
        if not steps:
            return "There is no snapshot to go back to."
        self.restore(steps[-1])
        return f"The snapshot of step {self.step_number:,} was taken up again."

    def snapshot(self) -> None:
        """Keep weights and optimiser as they are. A disk that refuses is told in `notice`, and the training goes on."""
        assert self.snapshots is not None
        try:
            self.snapshots.put(self.step_number, self._state())
        except OSError as error:
            why = error.strerror or type(error).__name__
            steps = self.snapshots.steps
            last = f"the last one is of step {steps[-1]:,}" if steps else "there is none"
            self.notice = f"The snapshot of step {self.step_number:,} could not be written ({why}); {last}."

    def restore(self, step: int) -> None:
        """Go on from the snapshot of `step`, bit for bit as if nothing had come between."""
        assert self.snapshots is not None
        self._take(self.snapshots.load(step), step)


def finite(value: float) -> float | None:
    """`value`, or None where it is no number."""
    return value if math.isfinite(value) else None
