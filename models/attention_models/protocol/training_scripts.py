"""What the playground shows, with the figures on screen in it, to be written as PyTorch. No torch.

What learns does so in a process of its own: these are nothing to be answered, and stand in a `ScriptRequest` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attention_models.protocol.gradient_breakdown import GradientBreakdown
from attention_models.protocol.request import Request
from attention_models.protocol.training_messages import Asked, AskedTuning, HeldOutPoint, TrainingPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOnScreen(Request):
    """A training from nothing: one that has begun, or one that could."""

    outlives_model: ClassVar[bool] = True
    printed_by: ClassVar[str] = "attention_models.scripts.training.learning:write"
    asked: Asked
    points: tuple[TrainingPoint, ...] = ()  # steps from the first on, none left out
    held_out: tuple[HeldOutPoint, ...] = ()
    folder: str = ""  # where the model lies; "" where it has not begun


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOnScreen(Request):
    """The next step of a training that waits, taken apart."""

    outlives_model: ClassVar[bool] = True
    printed_by: ClassVar[str] = "attention_models.scripts.training.next_batch:write"
    asked: Asked
    dissection: GradientBreakdown
    row: int  # of the batch: its tokens are told one by one
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsOnScreen(Request):
    """The runs of the prepared experiment `name` of `file`."""

    outlives_model: ClassVar[bool] = True
    printed_by: ClassVar[str] = "attention_models.scripts.training.runs:write"
    file: str
    name: str
    seed: int
    points: tuple[tuple[TrainingPoint, ...], ...] = ()  # of each run some steps; () where they have not begun
    held_out: tuple[tuple[HeldOutPoint, ...], ...] = ()  # likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningOnScreen(Request):
    """A checkpoint that goes on learning, or could."""

    outlives_model: ClassVar[bool] = True
    printed_by: ClassVar[str] = "attention_models.scripts.training.tuning:write"
    asked: AskedTuning
    points: tuple[TrainingPoint, ...] = ()
    held_out: tuple[HeldOutPoint, ...] = ()
