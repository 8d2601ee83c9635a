"""What the window and the process that trains the runs of a prepared experiment tell each other. No torch.

A line of JSON each, as `attention_models.protocol.training_messages` has them. What was measured is told as text: a
number of steps may be infinite, which JSON has no word for.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from attention_models.protocol.training_messages import (
    Failed,
    HeldOutPoint,
    Message,
    Said,
    Stop,
    TrainingPoint,
    decoded,
)

EXPERIMENT_HERE = "--experiment-in-this-process"
"""Starts the program as that process, where it was frozen into one file with its interpreter."""


class BeginRuns(Message, frozen=True):
    """First of all: the experiment `name` of `file`, a list of prepared experiments, with this seed.

    In the end the model of each run goes into a folder of its own in `folder`.
    """

    file: str
    name: str
    seed: int
    folder: str


ToExperiment = BeginRuns | Stop


class RunsBegan(Message, frozen=True):
    """The models are made. In every message the runs come in the order of the file."""

    parameters: tuple[int, ...]  # of each run's model


class RunsLearned(Message, frozen=True):
    """Steps that were taken since this was told last."""

    step: int
    points: tuple[tuple[TrainingPoint, ...], ...]  # of each run; a run that had to stop has none from there on
    seconds: float  # since the first step, held-out rows included


class RunsMeasured(Message, frozen=True):
    """What each run's model makes of held-out rows; None of a run that had to stop."""

    held_out: tuple[HeldOutPoint | None, ...]


class Measure(Struct, frozen=True, array_like=True):
    """One of `attention_models.training.prepared.MEASURES`, as it is told of each run."""

    name: str
    figures: tuple[str, ...]


class Finding(Struct, frozen=True, array_like=True):
    """A check of the claim: the figures in a sentence, and whether it came out so."""

    sentence: str
    holds: bool
    is_clocked: bool  # a busy computer changes it


class RunModel(Struct, frozen=True):
    """A run's model, to be opened."""

    folder: str
    example: str  # of its task


class RunsEnded(Message, frozen=True):
    """The runs are over. The claim is about all steps: where they were stopped before there are no findings."""

    how: Literal["done", "stopped"]
    step: int
    seconds: float
    measures: tuple[Measure, ...]
    findings: tuple[Finding, ...] = ()
    notices: tuple[str, ...] = ()  # of runs that could not go on, or whose models could not be written
    models: tuple[RunModel | None, ...] = ()  # of each run that went on to here; () where none could be written


FromExperiment = RunsBegan | RunsLearned | RunsMeasured | RunsEnded | Said | Failed

_TO: msgspec.json.Decoder[ToExperiment] = msgspec.json.Decoder(ToExperiment)
_FROM: msgspec.json.Decoder[FromExperiment] = msgspec.json.Decoder(FromExperiment)


def to_experiment(line: bytes) -> ToExperiment:
    """Raises ValueError for anything else than a message to the process."""
    return decoded(_TO, line)


def from_experiment(line: bytes) -> FromExperiment:
    """Raises ValueError for anything else than a message from the process."""
    return decoded(_FROM, line)
