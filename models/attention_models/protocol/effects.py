"""What every head does to what a model says: the change where it is zeroed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from attention_models.protocol.choices import check_choice
from attention_models.protocol.request import Lane, Result, RunRequest
from attention_models.protocol.values import Candidate, SiteRef

if TYPE_CHECKING:
    import numpy as np

Measure = Literal["logit", "difference", "loss"]
"""The logit of a token or class; that less another's; the text's mean cross-entropy in nats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What an effect is measured on.

    Attributes:
        measure: see `Measure`. Of the loss no position and no token is needed.
        position: where the model says it; None for the first mask of a masked model, else for its last token that is
            neither padding nor put around the text by the tokenizer, of other models the last that is no padding.
        target: a vocabulary id, a class, or the words of either as they stand in a text; None for the likeliest.
        against: of a difference the other one; None for the likeliest but for the target.
    """

    measure: Measure = "logit"
    position: int | None = None
    target: int | str | None = None
    against: int | str | None = None

    def __post_init__(self) -> None:
        """Raises ValueError."""
        check_choice("measure", self.measure, Measure)


LIKELIEST = Metric()
"""The logit of what the model says after the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectsRequest(RunRequest):
    """The change of `aim` where each head of run `run` is zeroed before W_O. Answered by `EffectsView`.

    An answer holds what could be computed in a moment; `have` is the `done` of the one before.
    """

    lane: ClassVar[Lane] = Lane("view:effects")
    activity: ClassVar[str] = "ablating every head"
    answered_by: ClassVar[str] = "attention_models.effects.sweep:answer"
    aim: Metric = LIKELIEST
    have: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadEffectRequest(EffectsRequest):
    """The same, of which one head is meant: its change alone is written as PyTorch."""

    activity: ClassVar[str] = "ablating one head"
    printed_by: ClassVar[str] = "attention_models.scripts.head_effect:write"
    site: SiteRef
    head: int


@dataclass(frozen=True, slots=True, eq=False)
class SiteEffects:
    """Of the heads of one attention module, (heads,) float64: after less before. NaN of what is not computed yet."""

    site: SiteRef
    heads: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MetricView:
    """An aim with nothing left open, and what the run itself says."""

    measure: Measure
    position: int
    target: int | None
    against: int | None
    target_label: str
    against_label: str
    value: float  # the logit, the difference or the loss of the run
    candidates: tuple[Candidate, ...]  # the likeliest at the position: what a target may be chosen from

    @property
    def words(self) -> str:
        """ "logit of “ Tom”", "“ Tom” less “ Anna”", "loss"."""
        if self.measure == "loss":
            return "loss"
        if self.measure == "difference":
            return f"“{self.target_label}” less “{self.against_label}”"
        return f"logit of “{self.target_label}”"


@dataclass(frozen=True, slots=True)
class MetricValue:
    """What a run says at the position of an aim."""

    value: float  # the aim's
    best_label: str  # of the likeliest answer
    best_share: float  # its probability; NaN where it is given a plain number
    loss: float | None  # nats; None for a model that has none


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EffectsView(Result):
    request: EffectsRequest
    aim: MetricView
    now: MetricValue
    before: MetricValue | None = None  # the same text without the interventions that are on
    sites: tuple[SiteEffects, ...]  # in the order in which they ran
    done: float = 1.0

    def of(self, site: SiteRef) -> np.ndarray | None:
        """(heads,) of one attention module; None where there is none such."""
        return next((effects.heads for effects in self.sites if effects.site == site), None)

    @property
    def largest(self) -> tuple[SiteRef, int, float] | None:
        """The head whose absence changes most, and by how much; None while nothing is computed."""
        found = [(at.site, head, float(v)) for at in self.sites for head, v in enumerate(at.heads) if v == v]
        return max(found, key=lambda one: abs(one[2]), default=None)
