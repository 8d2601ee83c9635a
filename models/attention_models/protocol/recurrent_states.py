"""The hidden states of a recurrent model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from attention_models.protocol.request import Lane, Result, RunRequest

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentRequest(RunRequest):
    """The hidden states of run `run` of a recurrent model. Answered by `RecurrentView`."""

    lane: ClassVar[Lane] = Lane("view:recurrent")
    activity: ClassVar[str] = "reading the hidden states"
    answered_by: ClassVar[str] = "attention_models.views.recurrent_views:answer"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecurrentView(Result):
    """The hidden states of a recurrent model, step by step. Arrays are float32."""

    request: RecurrentRequest
    score: str  # "none" (the bottleneck), "bahdanau", "dot", "general" or "concat"
    scope: str  # "global", "monotonic" or "predictive"
    cell: str  # "gru" or "lstm"
    encoder: tuple[np.ndarray, ...]  # a direction each, (source, hidden): forward, and backward where there is one
    states: np.ndarray  # (steps, hidden): the decoder's, after each step
    contexts: np.ndarray  # (steps, encoded); the bottleneck's one vector, (1, hidden)
    scores: np.ndarray | None  # (steps, source): e, what enters the softmax; None for the bottleneck
    masked: np.ndarray | None  # (steps, source) bool: outside of the window of local attention
    weights: np.ndarray | None  # (steps, source)
