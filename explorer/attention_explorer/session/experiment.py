"""What the window knows of the prepared experiment whose runs learn side by side, or did last."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from attention_explorer.session.training import Curves
from attention_models.protocol.experiment_messages import RunsEnded, RunsLearned, RunsMeasured
from attention_models.training.prepared import CLOCKED, Prepared

Phase = Literal["starting", "running", "ended", "failed"]


@dataclass(frozen=True, slots=True, eq=False)
class ExperimentState:
    """The experiment of this window that was run last. Its runs come in the order of `prepared.runs`."""

    number: int  # in this window, from 1
    file: str  # where `prepared` stands
    prepared: Prepared
    seed: int
    curves: tuple[Curves, ...]  # of each run
    phase: Phase = "starting"
    is_stopping: bool = False  # it has been told to stop
    parameters: tuple[int, ...] = ()  # of each run's model; () until they are made
    step: int = 0
    seconds: float = 0.0
    ended: RunsEnded | None = None  # what was found, where the runs came to an end
    sentence: str = ""  # what went otherwise than asked for
    has_paused: bool = False  # a training that was under way waits for it
    has_company: bool = False  # a training went on beside it, which changes what is measured by the clock

    @property
    def is_under_way(self) -> bool:
        return self.phase in ("starting", "running")

    @property
    def fraction(self) -> float:
        """Of all steps that are taken, 0 to 1."""
        return self.step / self.prepared.steps

    @property
    def seconds_left(self) -> float | None:
        """At the pace so far; None where that cannot be told."""
        if self.phase != "running" or not 0 < self.fraction < 1:
            return None
        return self.seconds * (1 - self.fraction) / self.fraction

    @property
    def is_clocked(self) -> bool:
        """Whether something is measured that a busy computer changes."""
        return not CLOCKED.isdisjoint(self.prepared.measures)

    def learned(self, told: RunsLearned) -> ExperimentState:
        """With the steps that were told of."""
        curves = tuple(curve.with_points(new) for curve, new in zip(self.curves, told.points, strict=True))
        return replace(self, curves=curves, step=told.step, seconds=told.seconds)

    def measured(self, told: RunsMeasured) -> ExperimentState:
        """With what the runs make of held-out rows."""
        curves = tuple(
            curve if new is None else curve.with_held_out(new)
            for curve, new in zip(self.curves, told.held_out, strict=True)
        )
        return replace(self, curves=curves)
