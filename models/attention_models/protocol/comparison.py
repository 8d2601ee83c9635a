"""One head and the next token of a run, beside the model as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from attention_models.protocol.request import HeadOfRunRequest, Lane, Result
from attention_models.protocol.values import Prediction

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareRequest(HeadOfRunRequest):
    """One head of run `run` beside the same text run without interventions. Answered by `CompareView`.

    Of a long text an answer holds what could be computed in a moment, as that of an `AtlasRequest` does.
    """

    lane: ClassVar[Lane] = Lane("view:compare")
    activity: ClassVar[str] = "comparing with the model as it is"
    answered_by: ClassVar[str] = "attention_models.views.long_comparison:answer"
    position: int  # where the next token is compared
    top: int = 6
    have: float = 0.0


@dataclass(frozen=True, slots=True)
class TokenChange:
    """How likely one token is as the next, in the model as it is and in an edited run; of a classifier one class.

    Of a model that answers questions, how likely one token is as the answer's start or end.
    """

    id: int
    label: str
    before: float
    after: float
    is_share: bool = True  # between 0 and 1; else the logit itself, of a model that gives a plain number


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompareView(Result):
    """What the interventions of a run changed.

    Of a long text the pictures pool squares of `cell` x `cell` weights: before and after the largest of each square,
    the difference that which is furthest from 0. What is not computed yet is NaN, and `done` says how much is.
    """

    request: CompareRequest
    head_dim: int
    scale: float  # of the scores, as trained
    factor: float  # what interventions multiply it by, 1 without
    before: np.ndarray  # (down, across) float32: the model as it is; (queries, keys) of a text that is not long
    after: np.ndarray  # (down, across) float32: this run
    masked_before: np.ndarray | None  # (down, across) bool: masked as a whole; None where none is
    masked_after: np.ndarray | None
    difference: np.ndarray  # (down, across) float32: after - before
    largest_difference: float  # its largest absolute value
    entropy_before: np.ndarray  # (queries,) float32, bits of each row
    entropy_after: np.ndarray  # (queries,) float32
    top_key_before: np.ndarray  # (queries,) int: the key that each row attends to most
    top_key_after: np.ndarray  # (queries,) int
    top_before: np.ndarray  # (queries,) float32: the weight of that key
    top_after: np.ndarray  # (queries,) float32
    token_changes: tuple[TokenChange, ...]  # the likeliest of both, by the larger of their two probabilities
    prediction_before: Prediction | None  # of a model that says words
    prediction_after: Prediction | None
    loss_before: float | None  # mean cross-entropy of the text's own next tokens, nats; None for other than causal
    loss_after: float | None
    peeks: bool  # somewhere in this run a token may attend to a later one that the model as it is masks
    dead_rows: tuple[int, ...]  # queries to which nothing is visible: their weights and output are 0
    cell: int = 1  # each pixel pools cell x cell weights
    done: float = 1.0  # the share that is computed

    @property
    def masked_throughout(self) -> np.ndarray | None:
        """(down, across) bool: masked before and after, so that there is no weight to change; None where none is."""
        if self.masked_before is None or self.masked_after is None:
            return None
        throughout: np.ndarray = self.masked_before & self.masked_after
        return throughout
