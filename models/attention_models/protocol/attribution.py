"""Which parts of a model wrote a logit: of the stream that the logits are read from, every summand's share of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from attention_models.protocol.effects import LIKELIEST, Metric, MetricView
from attention_models.protocol.request import Lane, Result, RunRequest
from attention_models.protocol.values import SiteRef

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributionRequest(RunRequest):
    """What each part of the model adds to `aim`, a logit or a difference of two. Answered by `AttributionView`."""

    lane: ClassVar[Lane] = Lane("view:attribution")
    activity: ClassVar[str] = "attributing the logit"
    answered_by: ClassVar[str] = "attention_models.effects.attribution:answer"
    printed_by: ClassVar[str] = "attention_models.scripts.attribution:write"
    aim: Metric = LIKELIEST


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SiteAttribution:
    """What one attention module adds: (heads,) float64 of its heads, and the bias of its W_O."""

    site: SiteRef
    heads: np.ndarray
    bias: float

    @property
    def total(self) -> float:
        return float(self.heads.sum()) + self.bias


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttributionView(Result):
    """aim = embedding + every attention module + every feed-forward network + constant + remainder.

    Of each part what it wrote at the position, times the direction in the stream that the logit is read along, with
    the divisor of the last normalisation held at its value in this run (Elhage et al. 2021). `constant` is what the
    last normalisation's bias and the output head's add. Where other norms, activations or a cap stand between a write
    and the logit, `held` says which were held at their factors in this run, and `constant` is of all biases on the way
    (Ali et al. 2022). Where `why` is said there is no such sum.
    """

    request: AttributionRequest
    aim: MetricView
    embedding: float = 0.0
    sites: tuple[SiteAttribution, ...] = ()
    networks: tuple[tuple[SiteRef, float], ...] = ()  # by block
    constant: float = 0.0
    remainder: float = 0.0  # the logit less the sum: rounding
    held: str = ""
    why: str = ""
