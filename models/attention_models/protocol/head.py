"""What every head attends to from the token that is looked at first: words alone, no sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from attention_models.protocol.request import HeadOfRunRequest, Lane, Result
from attention_models.protocol.values import Pooling, Site, Tile

if TYPE_CHECKING:
    import numpy as np


# The weights of one head: all of them, one row, or tiles of a long text's map.


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadRequest(HeadOfRunRequest):
    """The whole weight matrix of one head of run `run`. Answered by `HeadView`. For a site that is not long."""

    lane: ClassVar[Lane] = Lane("view:head")
    activity: ClassVar[str] = "computing the weights of the head"
    answered_by: ClassVar[str] = "attention_models.views.head:answer"
    printed_by: ClassVar[str] = "attention_models.scripts.head:write"
    words: bool = False  # whether weights between words are wanted beside those between tokens
    cell: tuple[int, int] | None = None  # (query, key) that a script prints first; views do not depend on it


@dataclass(frozen=True, slots=True, eq=False)
class WordWeights:
    """Weights between words: averaged over the pieces of the word they are from, summed over those they are to."""

    weights: np.ndarray  # (query words, key words) float32, rows sum to 1 (less a sink's share)
    masked: np.ndarray | None  # (query words, key words) bool, True where every piece is masked; None where none is


@dataclass(frozen=True, slots=True)
class FirstKey:
    """What a head of self-attention does with the first token of its text, where many heads leave their weight.

    Rows that can attend to nothing but the first token are left out of `of_rows`. Xiao et al. 2024 (attention sinks).
    """

    key: int  # its position; 0 but for padding on the left
    rows: int | None  # rows that give it more than any other key; None of a long text, whose rows are not counted
    of_rows: int | None
    norm: float | None  # of its value; None where a model shows its weights alone
    others_norm: float | None  # the mean over the other keys that are no padding


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeadView(Result):
    """The weights of one head."""

    request: HeadRequest
    weights: np.ndarray  # (queries, keys) float32, rows sum to 1 (less a sink's share), masked cells exactly 0
    masked: np.ndarray | None  # (queries, keys) bool, True where the key is masked; None where none is
    by_word: WordWeights | None = None  # where the request asks for words
    sinks: np.ndarray | None = None  # (queries,) float32, what the sink takes of each row; None without sinks
    first: FirstKey | None = None  # None of cross-attention, and of a single token


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoresRequest(HeadOfRunRequest):
    """What the weights of one head of run `run` were made of. Answered by `ScoresView`. For a site that is not long."""

    lane: ClassVar[Lane] = Lane("view:scores")
    activity: ClassVar[str] = "computing the scores of the head"
    answered_by: ClassVar[str] = "attention_models.views.head:answer_scores"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoresView(Result):
    """The scores of one head. Arrays are (queries, keys) float32, masked cells included."""

    request: ScoresRequest
    raw: np.ndarray  # q . k
    scaled: np.ndarray  # what enters the softmax where nothing is masked: scaled, with a position bias and a soft cap
    masked: np.ndarray | None  # (queries, keys) bool, True where the key is masked; None where none is


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRequest(HeadOfRunRequest):
    """Where one query looks in one head of run `run`. Answered by `RowView`."""

    lane: ClassVar[Lane] = Lane("view:row")
    activity: ClassVar[str] = "computing where the token looks"
    answered_by: ClassVar[str] = "attention_models.views.head:answer_row"
    query: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowView(Result):
    """Where one query attends to."""

    request: RowRequest
    weights: np.ndarray  # (keys,) float32, sums to 1 (less a sink's share), masked cells exactly 0
    masked: np.ndarray | None  # (keys,) bool; None where none is masked
    first: FirstKey | None = None  # as in `HeadView`


@dataclass(frozen=True, slots=True, kw_only=True)
class TilesRequest(HeadOfRunRequest):
    """Parts of one head's map, those that matter most first. Answered by `TilesView`, which may hold fewer."""

    lane: ClassVar[Lane] = Lane("view:tiles", finishes=True)
    activity: ClassVar[str] = "computing a part of the map"
    answered_by: ClassVar[str] = "attention_models.views.tiles:answer"
    tiles: tuple[Tile, ...]
    pooling: Pooling = "max"
    scale_rows: bool = False  # each weight divided by the largest of its row


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TilesView(Result):
    """Some tiles of one head's map, the first of those asked for."""

    request: TilesRequest
    tiles: tuple[tuple[Tile, np.ndarray], ...]  # (down, across) float32; NaN where a whole square is masked
    sinks: tuple[np.ndarray | None, ...]  # (rows,) float32 of each tile of single weights: what the sink takes


@dataclass(frozen=True, slots=True)
class AttentionPeak:
    """The word that a head gives most of one row."""

    key: int
    weight: float


@dataclass(frozen=True, slots=True)
class AttentionPeaks:
    """The row `query` of every head, as far as words are concerned, from `attention_models.views.attention_peaks`.

    `of_heads` has an AttentionPeak for each head of each site, in the order of the run's sites; none for sites without
    such a row (the encoder and the decoder beside a cross-attention).
    """

    query: int
    of_heads: tuple[tuple[AttentionPeak, ...], ...]

    def of(self, sites: tuple[Site, ...], site: Site, head: int) -> AttentionPeak | None:
        """The peak of one head; None where its site has none."""
        found = self.of_heads[sites.index(site)]
        return found[head] if head < len(found) else None
