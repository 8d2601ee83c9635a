"""What a classifier says of a text: what is asked, and what is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attention_models.protocol.request import Lane, Result, RunRequest
from attention_models.protocol.values import Candidate, Prediction

# What the model predicts at some positions.


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionRequest(RunRequest):
    """The `top` likeliest tokens at each of `positions` of run `run`. Answered by `PredictionView`."""

    lane: ClassVar[Lane] = Lane("view:prediction")
    activity: ClassVar[str] = "reading what the model predicts"
    answered_by: ClassVar[str] = "attention_models.forward.predictions:answer"
    printed_by: ClassVar[str] = "attention_models.scripts.as_pytorch:write"
    positions: tuple[int, ...]
    top: int = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PredictionView(Result):
    request: PredictionRequest
    predictions: tuple[Prediction, ...]
    pair: tuple[Candidate, ...] = ()  # of a model with a head for pairs too, what it says of two texts


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassesRequest(RunRequest):
    """What the class head says of run `run`, at token `position` where it says something of each.

    Answered by `ClassesView`. `top` is how many tokens are named for either end of a span.
    """

    lane: ClassVar[Lane] = Lane("view:prediction")
    activity: ClassVar[str] = "reading what the model says"
    answered_by: ClassVar[str] = "attention_models.views.classes:answer"
    position: int
    top: int = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassesView(Result):
    """Classes with logit and share; `id` is the number of the class, in `starts` and `ends` the position of a token."""

    request: ClassesRequest
    classes: tuple[Candidate, ...]  # all of them, the largest logit first; of a span its start and end at the token
    tokens: tuple[Candidate, ...] = ()  # of a model that labels tokens: the class of each
    starts: tuple[Candidate, ...] = ()  # of a span: the likeliest first tokens
    ends: tuple[Candidate, ...] = ()  # and the likeliest last ones
    is_choice: bool = False  # its classes are the texts that ran together, by their place
