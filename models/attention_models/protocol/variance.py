"""Why scores are divided by sqrt(d): random vectors, and a real head."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from attention_models.protocol.request import Lane, Request, Result
from attention_models.protocol.values import SiteRef

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceRequest(Request):
    """Why scores are divided by sqrt(d): random vectors, and one head of run `run`. Answered by `VarianceView`.

    Queries and keys are drawn with shape (batch, tokens, d) for each d. Without a run only they are measured.
    """

    lane: ClassVar[Lane] = Lane("view:variance")
    activity: ClassVar[str] = "measuring the variance"
    answered_by: ClassVar[str] = "attention_models.views.variance:answer"
    printed_by: ClassVar[str] = "attention_models.scripts.variance:write"
    widest: ClassVar[int] = 1024  # the largest d
    most_elements: ClassVar[int] = 1 << 24
    batch: int
    tokens: int
    deviation: float  # of every component
    seed: int
    run: int | None = None
    site: SiteRef | None = None
    head: int = 0

    def refusal(self) -> str:
        """A sentence that says why these numbers cannot be drawn; "" where they can."""
        elements = self.batch * self.tokens * self.widest
        if not (self.batch >= 1 and self.tokens >= 2):
            return f"B is {self.batch} and T is {self.tokens}: it takes at least 1 row and 2 keys."
        if not 0 < self.deviation <= 100:
            return f"The standard deviation m is {self.deviation:g}: choose more than 0 and at most 100."
        if self.seed < 0:
            return f"The seed is {self.seed}: choose 0 or more."
        if elements > self.most_elements:
            most = self.most_elements // self.widest
            return (
                f"B × T × {self.widest} is {elements:,} numbers, more than {self.most_elements:,}. "
                f"Choose B × T of at most {most:,}."
            )
        return ""


@dataclass(frozen=True, slots=True)
class HeadScores:
    """How q . k of one real head scatters over the cells that its mask allows, before any scaling."""

    site: SiteRef
    head: int
    head_dim: int
    cells: int
    mean: float
    variance: float
    scale: float  # what the model multiplies q . k by, interventions included
    independent: float  # the variance if components were independent: head_dim times E[q^2] E[k^2]

    @property
    def deviation(self) -> float:
        return math.sqrt(self.variance)

    @property
    def scaled_variance(self) -> float:
        return self.variance * self.scale**2


@dataclass(frozen=True, slots=True, eq=False)
class Experiment:
    """Random queries and keys at each of `dimensions`.

    Axis 0 of (2, ...) arrays: the softmax of q . k as it is, and of q . k / sqrt(d).
    """

    dimensions: np.ndarray  # (dims,) int64: the d that were measured
    variance: np.ndarray  # (dims,) float64: of q . k, over batch x tokens independent pairs
    law: np.ndarray  # (dims,) float64: deviation^4 d
    standard_error: np.ndarray  # (dims,) float64: of `variance`, as sampling theory has it under the law
    largest: np.ndarray  # (2, dims) float64: mean largest weight of a row
    entropy: np.ndarray  # (2, dims) float64: mean entropy of a row, bits
    gradient: np.ndarray  # (2, dims) float64: mean Frobenius norm of the softmax's Jacobian
    rows: np.ndarray  # (2, dims, tokens) float32: the weights of one row, largest first


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VarianceView(Result):
    request: VarianceRequest
    experiment: Experiment
    head: HeadScores | None  # None without a run, and for a head to which nothing is visible
