"""Cross-attention as an alignment of two texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from attention_models.protocol.request import Lane, Result, RunRequest
from attention_models.protocol.values import SiteRef

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentRequest(RunRequest):
    """Cross-attention weights of run `run` as an alignment of its two texts. Answered by `AlignmentView`.

    One head of `site`; the mean over the site's heads where `head` is None; over every cross head where both are.
    """

    lane: ClassVar[Lane] = Lane("view:alignment")
    activity: ClassVar[str] = "reading which words the model attended to"
    answered_by: ClassVar[str] = "attention_models.views.alignment:answer"
    site: SiteRef | None = None
    head: int | None = None
    words: bool = False  # whether rows and columns are words, not tokens


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AlignmentView(Result):
    """Row i holds the weights with which the model wrote target token i + 1: a position predicts the next token.

    Where words are asked for, row i is the i-th of `Words.written`, averaged over the pieces that it wrote, and columns
    are summed over the pieces of a source word.
    """

    request: AlignmentRequest
    weights: np.ndarray  # (target tokens, source tokens) float32, rows sum to 1
    likelihoods: (
        np.ndarray
    )  # (target tokens,) float32: of what each row wrote, the product over a word; NaN for the last
    description: str  # "mean over the 8 heads of cross-attention layer 2"
