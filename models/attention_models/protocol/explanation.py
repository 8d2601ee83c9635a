"""How much each token of a text matters to what a model says, by attention and by other accounts of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from attention_models.protocol.effects import LIKELIEST, Metric, MetricView
from attention_models.protocol.request import Lane, Result, RunRequest

if TYPE_CHECKING:
    import numpy as np

ACCOUNTS = {
    "attention": "attention",
    "rollout": "rollout",
    "flow": "attention flow",
    "gradient": "gradient × input",
    "integrated": "integrated gradients",
    "attention_gradient": "attention × gradient",
    "ablation": "ablation",
}
"""By their names, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationRequest(RunRequest):
    """What each token of run `run` has to do with `aim`, a logit or a difference. Answered by `ExplanationView`."""

    lane: ClassVar[Lane] = Lane("view:explanation")
    activity: ClassVar[str] = "weighing the tokens"
    answered_by: ClassVar[str] = "attention_models.effects.explanation:answer"
    printed_by: ClassVar[str] = "attention_models.scripts.explanation:write"
    aim: Metric = LIKELIEST


@dataclass(frozen=True, slots=True, eq=False)
class Account:
    """One number a token, (tokens,) float64, with a sign but for attention; None and the reason where there is none."""

    name: str  # one of `ACCOUNTS`
    values: np.ndarray | None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExplanationView(Result):
    """Attention is the mean over the heads of the last layer, in the row of the position.

    `correlations` are Spearman's, of absolute values, over the tokens that the position may attend to; NaN where an
    account is missing or says the same of all.
    """

    request: ExplanationRequest
    aim: MetricView
    accounts: tuple[Account, ...]
    correlations: np.ndarray  # (accounts, accounts) float64
    reached: (
        np.ndarray
    )  # (tokens,) bool: what the position may attend to, at once or by way of others; elsewhere all is 0
    baseline: float = 0.0  # the aim with all token embeddings 0: integrated gradients sum to its value less this
    gap: float = 0.0  # of that sum, as a share of the difference
    steps: int = 0  # points of the integral

    def of(self, name: str) -> np.ndarray | None:
        return next((account.values for account in self.accounts if account.name == name), None)
