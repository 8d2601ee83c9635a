"""The same words in another order, with positions and without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from attention_models.protocol.positions import PositionScheme
from attention_models.protocol.request import Lane, Result, RunRequest

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffleRequest(RunRequest):
    """Run the text of run `run` in another order of words, with positions and without. Answered by `ShuffleView`.

    Seed 0 swaps the first word and the last; every other seed is an order of its own.
    """

    lane: ClassVar[Lane] = Lane("view:shuffle")
    activity: ClassVar[str] = "running the text in another order"
    answered_by: ClassVar[str] = "attention_models.views.order:answer"
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """How far each token's output moved when the words changed places, read at the token's new place."""

    distances: np.ndarray  # (tokens,) float32, by place in the new order: largest absolute difference

    @property
    def largest(self) -> float:
        return float(self.distances.max(initial=0.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShuffleView(Result):
    """The same words in another order, with positions and without."""

    request: ShuffleRequest
    words: tuple[str, ...]  # as written, one a token
    order: tuple[int, ...]  # which token of the written order stands at each place of the new one
    fixed: tuple[bool, ...]  # by written place: special tokens, which stay
    measured: str  # "logits" or "hidden states"
    causal: bool
    on: Moved  # the model as it is
    off: Moved | None  # its positions off; None where they cannot be turned off
    off_open: Moved | None  # a causal model's positions off, and its mask opened too
    note: str  # why nothing was moved; else ""
    scheme: PositionScheme
