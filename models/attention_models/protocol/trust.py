"""A run held against the model's own eager attention, or its papers' formulas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attention_models.protocol.request import Lane, Result, RunRequest
from attention_models.protocol.values import TOLERANCE

EAGER = "the model's own eager attention"
"""What a run is compared with, where its model has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustRequest(RunRequest):
    """Compare run `run` with the model's own eager forward, or with its papers' formulas. Answered by `TrustReport`."""

    lane: ClassVar[Lane] = Lane("trust", order=3)
    activity: ClassVar[str] = "comparing with the model's own attention"
    answered_by: ClassVar[str] = "attention_models.trust.report:answer"
    printed_by: ClassVar[str] = "attention_models.scripts.trust:write"


@dataclass(frozen=True, slots=True)
class InputReport:
    """Where the ids of a run come from, and whether the tokenizer's own call gives the same of the same text."""

    story: str
    equal: bool | None = None  # None where there is nothing to compare with
    starts_twice: bool = False  # the call itself begins with the same special token twice


@dataclass(frozen=True, slots=True)
class AloneReport:
    """How far a text of a batch is from the same text run alone, over all tokens that are no padding."""

    weight_difference: float  # largest |in the batch - alone| over every weight of every head
    logit_difference: float  # relative to the largest |logit| where that exceeds 1
    tolerance: float | None  # of both; None in half precision, where rounding hides what there is to find

    @property
    def holds(self) -> bool | None:
        """Whether it is read as if alone; None where that cannot be known."""
        if self.tolerance is None:
            return None
        return max(self.weight_difference, self.logit_difference) <= self.tolerance


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
    input: InputReport | None = None  # None of a picture
    input_difference: float | None = None  # of a picture, to what its image processor makes of the file
    alone: AloneReport | None = None  # of one of several texts that ran together

    @property
    def holds(self) -> bool:
        """Whether the model was given its own input, read it as if alone, and computed what it computes."""
        is_as_alone = self.alone is None or self.alone.holds is not False
        return self.computes_the_same and self.has_own_input and is_as_alone

    @property
    def computes_the_same(self) -> bool:
        """Whether weights and logits are the model's own, whatever it was given."""
        return (
            self.weight_difference <= self.tolerance
            and self.logit_difference <= self.logit_tolerance
            and (self.rounding is None or self.rounding <= 1)
        )

    @property
    def has_own_input(self) -> bool:
        """Whether nothing is known against the input: what the model was given is what its own processor gives."""
        return self.has_own_ids and self.has_own_picture

    @property
    def has_own_ids(self) -> bool:
        return self.input is None or self.input.equal is not False

    @property
    def has_own_picture(self) -> bool:
        return self.input_difference is None or self.input_difference <= TOLERANCE
