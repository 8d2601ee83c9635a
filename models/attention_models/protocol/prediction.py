"""What the model predicts at some positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attention_models.protocol.request import Lane, Result, RunRequest
from attention_models.protocol.values import Candidate, Prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionRequest(RunRequest):
    """The `top` likeliest tokens at each of `positions` of run `run`. Answered by `PredictionView`."""

    lane: ClassVar[Lane] = Lane("view:prediction")
    activity: ClassVar[str] = "reading what the model predicts"
    answered_by: ClassVar[str] = "attention_models.forward.predictions:answer"
    printed_by: ClassVar[str] = "attention_models.scripts.next_token:write"
    positions: tuple[int, ...]
    top: int = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PredictionView(Result):
    request: PredictionRequest
    predictions: tuple[Prediction, ...]
    pair: tuple[Candidate, ...] = ()  # of a model with a head for pairs too, what it says of two texts
