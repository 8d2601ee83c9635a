"""Whether a training can be had as it is asked for: what is asked, and what is answered. No torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attention_models.protocol.errors import NO_MEMORY_TO_TRAIN
from attention_models.protocol.request import Lane, Request, Result
from attention_models.protocol.training_messages import Asked, AskedTuning


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest(Request):
    """Answered by `PlanView`."""

    lane: ClassVar[Lane] = Lane("plan", order=1)
    activity: ClassVar[str] = "looking at what is to be trained"
    answered_by: ClassVar[str] = "attention_models.training.plan:answer"
    no_memory: ClassVar[str] = NO_MEMORY_TO_TRAIN
    outlives_model: ClassVar[bool] = True
    asked: Asked | AskedTuning


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanView(Result):
    """`sentence` says why it cannot be trained; "" where it can.

    Of a checkpoint that is to go on learning, and is not open, `parameters` and rows are 0: that is found at the start.
    Of a long text or file the rows alone are.
    """

    request: PlanRequest
    sentence: str = ""
    parameters: int = 0  # that are learned
    rows: int = 0  # to learn from, of a text its windows
    held_out: int = 0  # rows
