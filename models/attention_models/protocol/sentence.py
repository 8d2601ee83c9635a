"""One vector for a whole text: what is asked, and what is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from attention_models.protocol.request import Lane, Result, RunRequest

SentencePooling = Literal["own", "mean", "first", "last"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceRequest(RunRequest):
    """The vector of run `run`'s text, of a model without an output head. Answered by `SentenceView`.

    `how` is "own" as the checkpoint's own files say, the "mean" over all tokens, or the "first" ([CLS]) or "last" one;
    None for its own where it has one, else the mean.
    """

    lane: ClassVar[Lane] = Lane("view:prediction")
    activity: ClassVar[str] = "pooling the tokens' vectors"
    answered_by: ClassVar[str] = "attention_models.views.sentence:answer"
    how: SentencePooling | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SentenceView(Result):
    request: SentenceRequest
    how: SentencePooling  # the one that was taken
    choices: tuple[tuple[SentencePooling, str], ...]  # those that there are for this model, and what to call them
    vector: np.ndarray  # (width,) float32; empty where the model gives no vector a token
    norm: float  # its length
    words: str  # how it was made: "mean over 12 tokens, brought to length 1"
