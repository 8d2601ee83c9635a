"""What the model would say if it ended after an earlier layer: the logit lens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from attention_models.protocol.request import Lane, Result, RunRequest

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class LensRequest(RunRequest):
    """The stream of run `run` read off by the model's own last norm and head after every layer. Answered by `LensView`.

    `target` is the token whose rank is followed, by its id or as it stands in a text; None for what the model says at
    each position in the end.
    """

    lane: ClassVar[Lane] = Lane("view:lens")
    activity: ClassVar[str] = "reading every layer by the output head"
    answered_by: ClassVar[str] = "attention_models.effects.lens:answer"
    target: int | str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LensAtRequest(LensRequest):
    """The same, of which one position is meant: that of the curve, which is written as PyTorch."""

    activity: ClassVar[str] = "reading every layer at one position"
    printed_by: ClassVar[str] = "attention_models.scripts.lens:write"
    position: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LensView(Result):
    """Row 0 is the embedding, row l + 1 the stream after block l. Where `why` is said there is nothing but the norms.

    nostalgebraist 2020, "interpreting GPT: the logit lens".
    """

    request: LensRequest
    norms: np.ndarray  # (layers + 1, tokens) float32: the length of the stream
    written: np.ndarray  # (layers, tokens) float32: the length of what each block added
    best: np.ndarray | None = None  # (layers + 1, tokens) int: the likeliest id
    best_share: np.ndarray | None = None  # its probability, float32
    entropy: np.ndarray | None = None  # bits, float32
    targets: np.ndarray | None = None  # (tokens,) int: the token that is followed at each position
    target_share: np.ndarray | None = None  # (layers + 1, tokens) float32: its probability
    target_rank: np.ndarray | None = None  # (layers + 1, tokens) int: 1 is the likeliest
    labels: dict[int, str] | None = None  # of every id in `best` and `targets`
    why: str = ""
    position: int = 0  # the one asked for, else where the model is asked for its answer
    deviation: float = 0.0  # of the last row's logits from the run's own, the largest
