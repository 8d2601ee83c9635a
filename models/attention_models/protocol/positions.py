"""The same words in another order, with positions and without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from attention_models.protocol.request import HeadOfRunRequest, Lane, Result, RunRequest

if TYPE_CHECKING:
    import numpy as np


# How a model tells positions apart.


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionsRequest(HeadOfRunRequest):
    """How the open model tells positions apart, seen from one cell of run `run`. Answered by `PositionsView`."""

    lane: ClassVar[Lane] = Lane("view:positions")
    activity: ClassVar[str] = "reading how the model tells positions apart"
    answered_by: ClassVar[str] = "attention_models.views.positions:answer"
    printed_by: ClassVar[str] = "attention_models.scripts.positions:write"
    query: int
    key: int


@dataclass(frozen=True, slots=True, eq=False)
class PositionScheme:
    """How a model tells positions apart, at one attention site. Arrays are None where the scheme has no such thing."""

    kind: str  # "learned", "sinusoidal", "rope", "alibi", "t5" or "none"
    name: str  # in a word or two: "learned table"
    title: str
    words: str  # two or three sentences
    off_note: str = ""  # why positions cannot be turned off; "" where they can
    shift_note: str = ""  # why they cannot be shifted
    table: np.ndarray | None = None  # (positions, width) float32: what is added to a token at each place
    alike: np.ndarray | None = None  # (rows, rows) float32: cosine between every `step`th two rows of the table
    step: int = 1
    components: np.ndarray | None = None  # (3, positions) float32: coordinates along the principal components
    shares: np.ndarray | None = None  # (3,) float32: each component's share of the variance
    frequencies: np.ndarray | None = None  # (pairs,) float32: radians a position that each pair is turned by
    gain: float = 1.0  # what turned vectors are multiplied by as well
    distances: np.ndarray | None = None  # (distances,) int: place of the key less place of the query
    bias: np.ndarray | None = None  # (heads, distances) float32: what is added to each head's scores


@dataclass(frozen=True, slots=True, eq=False)
class RotationView:
    """How the q and k of one cell were turned by their positions. Pairs of dimensions are complex numbers."""

    query_hands: np.ndarray  # (pairs,) complex128, as they enter the product
    key_hands: np.ndarray  # (pairs,) complex128
    query_angles: np.ndarray  # (pairs,) radians by which each was turned
    key_angles: np.ndarray  # (pairs,)
    parts: np.ndarray  # (pairs,) each pair's share of q . k
    untouched: float  # the share of dimensions that are not turned
    product: float  # q . k
    distance: int  # place of the query less place of the key
    distances: np.ndarray  # (distances,) int
    products: np.ndarray  # (distances,) what q . k would be there


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PositionsView(Result):
    request: PositionsRequest
    scheme: PositionScheme
    embedding: np.ndarray | None  # (width,) float32 the query token's embedding; None where no vector is added to it
    position: np.ndarray | None  # (width,) float32 what its position adds
    total: np.ndarray | None  # (width,) float32 their sum
    sum_note: str  # what else happens before the first layer, or why there is no sum
    query_word: str
    key_word: str
    rotation: RotationView | None
    rotation_note: str  # why there is none in a model that rotates


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchPositionsRequest(RunRequest):
    """How alike the positions of the patches of run `run` are to a vision model. Answered by `PatchPositionsView`."""

    lane: ClassVar[Lane] = Lane("view:patches")
    activity: ClassVar[str] = "comparing the positions of patches"
    answered_by: ClassVar[str] = "attention_models.views.patch_positions:answer"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PatchPositionsView(Result):
    """The learned positions of a picture's patches, each compared with all."""

    request: PatchPositionsRequest
    alike: np.ndarray | None  # (rows, columns, rows, columns) float32, cosines; None where the model has no table
    words: str  # what is shown, or why nothing is


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
