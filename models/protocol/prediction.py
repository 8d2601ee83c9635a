"""What the model predicts at some positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from models.protocol.request import Request, Result
from models.protocol.values import Prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionRequest(Request):
    """The `top` likeliest tokens at each of `positions` of run `run`. Answered by `PredictionView`."""

    lane: ClassVar[str] = "view:prediction"
    run: int
    positions: tuple[int, ...]
    top: int = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PredictionView(Result):
    run: int
    predictions: tuple[Prediction, ...]
