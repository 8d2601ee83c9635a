"""What the window knows of the training that is under way: where it stands, and its curves, thinned and bounded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from attention_models.protocol.gradient_breakdown import GradientBreakdown
from attention_models.protocol.training_messages import (
    Asked,
    AskedTuning,
    Classified,
    HeldOutPoint,
    Learned,
    ToProcess,
    TrainingPoint,
    Wrote,
)
from attention_models.protocol.values import CheckpointInfo

MOST_POINTS = 600  # of a curve: as many as a plot has pixels; beyond, every second one goes
FIRST = 10  # steps that are kept beside, however long a curve grows
_LATEST = 0.2  # of the speed that is shown is that of the last steps

Phase = Literal["starting", "running", "paused", "ended", "failed"]

FELL = "The process that trains ended before it was told to: something else has ended it, or memory ran out."
"""What a person is told of a process that ended by itself."""


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """Steps ascend in each."""

    points: tuple[TrainingPoint, ...] = ()
    every: int = 1  # of how many steps one is kept
    norms: tuple[TrainingPoint, ...] = ()  # those whose gradients were measured
    held_out: tuple[HeldOutPoint, ...] = ()
    of: Literal["token", "text"] = "token"  # what there is one loss of, and is right or wrong: a text of a classifier
    first: tuple[TrainingPoint, ...] = ()  # the first `FIRST` steps, all of them

    def with_points(self, new: tuple[TrainingPoint, ...]) -> Curves:
        """With more steps; where they begin before the last one, what was after that is gone."""
        if not new:
            return self
        here, every = self.until(new[0].step - 1), self.every
        kept = (*here.points, *(point for point in new if _is_kept(point.step, every)))
        while len(kept) > MOST_POINTS:
            every *= 2
            kept = tuple(point for point in kept if _is_kept(point.step, every))
        norms = (*here.norms, *(point for point in new if point.gradients))
        first = (*here.first, *(point for point in new if point.step <= FIRST))
        norms = norms[::2] if len(norms) > MOST_POINTS else norms
        return replace(here, points=kept, every=every, norms=norms, first=first)

    @property
    def from_the_first(self) -> tuple[TrainingPoint, ...]:
        """As many of the first steps as are known one after another, with none left out between."""
        known = self.points if self.every == 1 else self.first
        return tuple(point for number, point in enumerate(known, 1) if point.step == number)

    def with_held_out(self, new: HeldOutPoint) -> Curves:
        before = tuple(point for point in self.held_out if point.step < new.step)
        thinned = before[::2] if len(before) >= MOST_POINTS else before
        return replace(self, held_out=(*thinned, new))

    def until(self, step: int) -> Curves:
        """Those of the first steps."""
        if not any(kept and kept[-1].step > step for kept in (self.points, self.norms, self.held_out)):
            return self
        return replace(
            self,
            points=tuple(point for point in self.points if point.step <= step),
            norms=tuple(point for point in self.norms if point.step <= step),
            held_out=tuple(point for point in self.held_out if point.step <= step),
            first=tuple(point for point in self.first if point.step <= step),
        )


def _is_kept(step: int, every: int) -> bool:
    return step == 1 or step % every == 0


@dataclass(frozen=True, slots=True)
class LeftTraining:
    """A training that was not saved when its window ended, or when the next one of its window began."""

    folder: str  # where the model lies
    asked: Asked | AskedTuning
    step: int  # of its newest snapshot
    written: float  # seconds since the epoch


@dataclass(frozen=True, slots=True, eq=False)
class TrainingState:
    """The training of this window that was begun last."""

    number: int  # in this window, from 1
    asked: Asked | AskedTuning
    phase: Phase = "starting"
    left: LeftTraining | None = None  # which it goes on with; None where it begins anew
    command: ToProcess | None = None  # that was given last: each is an object of its own
    folder: str = ""  # where the model lies; "" until it is made
    title: str = ""  # of the task: "write the letters backwards"
    example: str = ""
    parameters: int = 0
    dropout: float = 0.0  # of a step, as is the smoothing of its labels: held-out rows are measured without
    smoothing: float = 0.0
    curves: Curves = Curves()
    step: int = 0
    seconds: float = 0.0  # of this run, without pauses
    fraction: float = 0.0  # of this run that is done
    speed: float = 0.0  # tokens a second, of the last steps
    snapshot: int = -1  # the step of the one that was written last; -1 before the first
    sentence: str = ""  # what went otherwise than asked for
    saved: str = ""  # the folder of the person's where it was saved last
    saved_step: int = -1
    dissection: GradientBreakdown | None = None  # of the next step; None where it was not asked for, or has been taken
    is_dissecting: bool = False  # it was asked for, and is not here yet
    undissected: str = ""  # why there is none, as a sentence
    wrote: Wrote | Classified | None = None  # what a tuned model writes, or says of a text, before and after

    @property
    def is_alive(self) -> bool:
        """Whether there is a process that can be told something."""
        return self.phase != "failed"

    @property
    def is_under_way(self) -> bool:
        return self.phase in ("starting", "running", "paused")

    @property
    def seconds_left(self) -> float | None:
        """At the pace so far; None where that cannot be told."""
        if not 0 < self.fraction < 1 or self.phase not in ("running", "paused"):
            return None
        return self.seconds * (1 - self.fraction) / self.fraction

    @property
    def tuning(self) -> AskedTuning | None:
        """What is tuned, where it is no training from nothing."""
        return self.asked if isinstance(self.asked, AskedTuning) else None

    def is_open(self, info: CheckpointInfo) -> bool:
        """Whether that is this model, at one of its steps."""
        return info.training is not None and info.training.reference == self.folder

    @property
    def held_out_before(self) -> HeldOutPoint | None:
        """The figures of held-out rows before the first step."""
        held = self.curves.held_out
        return held[0] if held and held[0].step == 0 else None

    @property
    def held_out(self) -> HeldOutPoint | None:
        """The newest figures of held-out rows."""
        return self.curves.held_out[-1] if self.curves.held_out else None

    @property
    def held_out_best(self) -> HeldOutPoint | None:
        """That with the lowest loss, the first of equal ones; of a long training those that are still known."""
        return min(self.curves.held_out, key=lambda point: point.loss, default=None)

    def learned(self, told: Learned) -> TrainingState:
        """With the steps that were told of."""
        speed, is_past = self.speed, bool(told.points) or told.phase == "running"
        for point in told.points:
            if point.tokens_per_second:  # those of an earlier window are not known any more
                speed = point.tokens_per_second if not speed else speed + _LATEST * (point.tokens_per_second - speed)
        return replace(
            self,
            phase=told.phase,
            curves=self.curves.with_points(told.points),
            step=max((self.step, *(point.step for point in told.points))),
            dissection=None if is_past else self.dissection,
            is_dissecting=self.is_dissecting and not is_past,
            undissected="" if is_past else self.undissected,
            seconds=told.seconds,
            fraction=told.fraction,
            speed=speed,
        )
