"""A run held against the model's own eager attention, or its papers' formulas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from models.protocol.request import Lane, Result, RunRequest
from models.protocol.values import TOLERANCE

EAGER = "the model's own eager attention"
"""What a run is compared with, where its model has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustRequest(RunRequest):
    """Compare run `run` with the model's own eager forward, or with its papers' formulas. Answered by `TrustReport`."""

    lane: ClassVar[Lane] = Lane("trust", order=3)
    activity: ClassVar[str] = "comparing with the model's own attention"
    answered_by: ClassVar[str] = "models.trust.report:answer"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrustReport(Result):
    """Largest absolute differences to transformers' own eager attention; in half precision each layer by itself.

    A textbook model has none: it is held against its papers' formulas, computed anew in float64.
    """

    request: TrustRequest
    logit_difference: float
    weight_difference: float
    tolerance: float  # of weights
    seconds: float
    logit_tolerance: float = TOLERANCE
    rounding: float | None = None  # of layers compared each by itself: the largest share of what rounding explains
    end_to_end: float | None = None  # in float32: what rounding added up to, where layers were compared for that reason
    rows: int = 0  # of a long text: how many rows of every head were compared; 0 where all were
    against: str = EAGER
    input_difference: float | None = None  # of a picture, to what its image processor makes of the file

    @property
    def holds(self) -> bool:
        return (
            self.weight_difference <= self.tolerance
            and self.logit_difference <= self.logit_tolerance
            and (self.rounding is None or self.rounding <= 1)
            and self.has_own_input
        )

    @property
    def has_own_input(self) -> bool:
        """Whether nothing is known against the input: what the model was given is what its own processor gives."""
        return self.input_difference is None or self.input_difference <= TOLERANCE
