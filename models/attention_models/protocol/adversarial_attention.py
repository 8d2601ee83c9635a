"""Whether other attention weights would give the same answer, and the least change of them that gives another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from attention_models.protocol.choices import check_choice
from attention_models.protocol.request import HeadOfRunRequest, Lane, Result
from attention_models.protocol.values import Candidate, SiteRef

if TYPE_CHECKING:
    import numpy as np

Scope = Literal["head", "layer", "stack"]
"""Whose weights are changed: those of one head, of every head of its layer, or of every head of all layers like it."""

EPSILON = 0.01
"""How far the answer may move, in total variation distance: Jain and Wallace's bound for classifiers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdversarialAttentionRequest(HeadOfRunRequest):
    """Other weights for the row that an answer is read at. Answered by `AdversarialAttentionView`.

    An answer holds what could be computed in a moment; `have` is the `done` of the one before.

    Attributes:
        scope: what is changed beside `head` of `site`.
        position: where the answer is read; None as in `attention_models.protocol.effects.Metric`.
        epsilon: the largest total variation distance from the run's own answer that counts as the same.
    """

    lane: ClassVar[Lane] = Lane("view:other-weights")
    activity: ClassVar[str] = "searching for other attention weights"
    answered_by: ClassVar[str] = "attention_models.effects.adversarial_attention:answer"
    printed_by: ClassVar[str] = "attention_models.scripts.adversarial_attention:write"
    scope: Scope = "head"
    position: int | None = None
    epsilon: float = EPSILON
    have: float = 0.0

    def __post_init__(self) -> None:
        """Raises ValueError."""
        check_choice("scope", self.scope, Scope)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rerun:
    """A run of the model with other weights put into the row, and what it said.

    Attributes:
        weights: (heads, keys) float64, of the heads in the order of `AdversarialAttentionView.heads`.
        divergence: (heads,) float64: Jensen-Shannon's from the observed weights, in nats, at most log 2.
        distance: total variation distance of the run's answer from the answer as it was, 0 to 1.
        best: its likeliest answer.
        former: what was likeliest before, and how likely it is now.
    """

    weights: np.ndarray
    divergence: np.ndarray
    distance: float
    best: Candidate
    former: Candidate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moved:
    """The least change of one kind that was found, and the run with it.

    Attributes:
        source: the key whose weight was taken.
        target: the key that was given it; None where it was blocked, and the row shared it out.
        mass: how much of the row's weight moved: the mean over the heads that are changed.
        share: of the weight on `source`, how much was taken: 1 is all of it.
    """

    source: int
    target: int | None
    mass: float
    share: float
    rerun: Rerun


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdversarialAttentionView(Result):
    """Every distance and answer in it is that of a run with the weights beside it.

    Attributes:
        heads: which heads are changed, with their sites.
        query: the row that is changed; its keys are those of the sites.
        visible: (heads, keys) bool: what the masks let it attend to.
        observed: (heads, keys) float64: the weights as they are.
        before: the likeliest answer as it is.
        same: the weights found that are furthest from the observed ones and leave the answer within `epsilon`.
        blocked: the key of least weight without which another answer is likeliest; None where there is none, or not
            yet.
        moved: the least weight whose move from one key to another makes another answer likeliest; likewise.
        tried: how many moves from one key to another were tried; `moves` how many there are.
        searched: whether `same` is final; `blocks_done`, `moves_done`: whether the others are.
    """

    request: AdversarialAttentionRequest
    heads: tuple[tuple[SiteRef, int], ...]
    position: int
    query: int
    visible: np.ndarray
    observed: np.ndarray
    before: Candidate
    same: Rerun
    blocked: Moved | None = None
    moved: Moved | None = None
    tried: int = 0
    moves: int = 0
    searched: bool = False
    blocks_done: bool = False
    moves_done: bool = False
    done: float = 1.0

    @property
    def found(self) -> dict[str, Rerun]:
        """What was found so far, by its name: “same”, “blocked”, “moved”."""
        same = {"same": self.same} if float(self.same.divergence.mean()) > 0 else {}
        return same | {name: change.rerun for name, change in self.changes.items()}

    @property
    def changes(self) -> dict[str, Moved]:
        """Those that make another answer likeliest: “blocked”, “moved”."""
        both = {"blocked": self.blocked, "moved": self.moved}
        return {name: change for name, change in both.items() if change is not None}
