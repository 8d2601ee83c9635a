"""What the engine answers: frozen values, numpy arrays and plain Python only, no torch.

Arrays are read-only. Results compare by identity: an array has no cheap equality.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from models.protocol.chat import Prompt
from models.protocol.requests import Request
from models.protocol.values import (
    TOLERANCE,
    Candidate,
    CheckpointInfo,
    DeviceInfo,
    Experiment,
    HeadScores,
    Moved,
    Placement,
    PositionScheme,
    Prediction,
    RecurrentScore,
    RotationView,
    SeenPicture,
    Site,
    SiteRef,
    Tile,
    Token,
    TokenChange,
)

if TYPE_CHECKING:
    from models.protocol.interventions import Intervention


EAGER = "the model's own eager attention"
"""What a run is compared with, where its model has one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Result:
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Failure(Result):
    """`sentence` is for the person: what was wrong, where, what to do. `cause` is for the log."""

    sentence: str
    cause: str = ""
    cut_to: int | None = None  # a text too long for the model: how many of its characters fit
    of_target: bool = False  # that text is the target, not the source
    stale: bool = False  # asked about a run that is gone: nobody needs to hear of it
    no_room: Placement | None = None  # where memory ran out: another device or number format may do


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Progress(Result):
    """Work that takes longer than a moment says what it is doing; `fraction` is None where that is unknown."""

    label: str
    fraction: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loaded(Result):
    info: CheckpointInfo
    device: str  # "CPU", "CUDA 0 (NVIDIA H100)"; several where it was spread
    dtype: str  # "float32"
    eval_mode: bool
    seconds: float
    placement: Placement  # with the device that it came to


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DevicesView(Result):
    devices: tuple[DeviceInfo, ...]  # the CPU first


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ran(Result):
    """A forward pass that ended: `run` names it in every later request."""

    run: int
    text: Prompt
    tokens: tuple[Token, ...]
    sites: tuple[Site, ...]
    masks: tuple[int, ...]  # positions of mask tokens, empty for models without them
    interventions: tuple[Intervention, ...] = ()  # what was changed in this run
    target: str | None = None  # as asked for
    source: tuple[Token, ...] = ()  # of the encoder, in an encoder-decoder model
    picture: str = ""  # as asked for
    seen: SeenPicture | None = None  # what a vision model saw
    written: str = ""  # what its decoder said: `target`, or what it wrote itself
    seconds: float
    trace_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeadView(Result):
    run: int
    site: SiteRef
    head: int
    weights: np.ndarray  # (queries, keys) float32, rows sum to 1, masked cells exactly 0
    masked: np.ndarray | None  # (queries, keys) bool, True where the key may not be looked at; None where all may


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowView(Result):
    run: int
    site: SiteRef
    head: int
    query: int
    weights: np.ndarray  # (keys,) float32, sums to 1, masked cells exactly 0
    masked: np.ndarray | None  # (keys,) bool; None where all may be looked at


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TilesView(Result):
    """Some tiles of one head's map, the first of those asked for."""

    run: int
    site: SiteRef
    head: int
    pooling: str
    scale_rows: bool
    tiles: tuple[tuple[Tile, np.ndarray], ...]  # (down, across) float32; NaN where a whole square is masked


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AtlasView(Result):
    run: int
    images: np.ndarray  # (sites, heads, rows, columns) float32; NaN where a site has fewer heads or tokens
    mean: np.ndarray  # (sites, rows, columns) float32: the mean over heads, pooled likewise
    row_error: float  # largest |sum of a row - 1| over every row of every head
    cell: int  # each pixel pools cell x cell weights
    pooling: str
    seconds: float
    done: float = 1.0  # the share of all weights that is in it; what is not yet computed is NaN


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PredictionView(Result):
    run: int
    predictions: tuple[Prediction, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompareView(Result):
    """What the interventions of a run changed.

    Of a long text the pictures pool squares of `cell` x `cell` weights: before and after the largest of each square,
    the difference that which is furthest from 0. What is not computed yet is NaN, and `done` says how much is.
    """

    run: int
    site: SiteRef
    head: int
    head_dim: int
    scale: float  # of the scores, as trained
    factor: float  # what interventions multiply it by, 1 without
    before: np.ndarray  # (down, across) float32: the model as it is; (queries, keys) of a text that is not long
    after: np.ndarray  # (down, across) float32: this run
    masked_before: np.ndarray | None  # (down, across) bool: may not be looked at, as a whole; None where all may be
    masked_after: np.ndarray | None
    difference: np.ndarray  # (down, across) float32: after - before
    largest_difference: float  # its largest absolute value
    entropy_before: np.ndarray  # (queries,) float32, bits of each row
    entropy_after: np.ndarray  # (queries,) float32
    top_key_before: np.ndarray  # (queries,) int: the key that each row looks at most
    top_key_after: np.ndarray  # (queries,) int
    top_before: np.ndarray  # (queries,) float32: the weight of that key
    top_after: np.ndarray  # (queries,) float32
    token_changes: tuple[TokenChange, ...]  # the likeliest of both, by the larger of their two probabilities
    prediction_before: Prediction | None
    prediction_after: Prediction | None
    loss_before: float | None  # mean cross-entropy of the text's own next tokens, nats; None for other than causal
    loss_after: float | None
    peeks: bool  # somewhere in this run a token may look at a later one that the model as it is hides from it
    dead_rows: tuple[int, ...]  # queries that may look at nothing: their weights and output are 0
    cell: int = 1  # each pixel pools cell x cell weights
    done: float = 1.0  # the share that is computed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellView(Result):
    """How one score came about, became a weight, and what that weight did. Arrays are float32."""

    run: int
    site: SiteRef
    head: int
    query: int
    key: int
    q: np.ndarray  # (head_dim,) the query vector, as it enters the product
    k: np.ndarray  # (head_dim,) the key vector
    rotated: bool  # q and k were turned by their positions on the way here (RoPE)
    products: np.ndarray  # (head_dim,) q * k
    raw: float  # the sum of the products
    scale: float  # as trained
    factor: float  # what interventions multiply it by, 1 without
    scaled: float  # raw * scale * factor
    bias: float | None  # position bias added, None for a model without
    softcap: float | None
    score: float  # what enters the softmax, before the mask
    masked: bool
    reason: str  # why it is masked, or why it is not: "causal", "painted", "window 8", ""
    row_raw: np.ndarray  # (keys,) raw products of the whole row
    row_scores: np.ndarray  # (keys,) scores before the mask
    row_masked: np.ndarray  # (keys,) bool
    row_weights: np.ndarray  # (keys,)
    shift: float | None  # the row's largest score (or its sink's), subtracted from all; None where all are masked
    numerator: float  # exp(score - shift), 0 if masked
    sink: float | None  # the sink's numerator: a share of the row that no key gets; None for a model without
    denominator: float  # sum of the row's numerators, the sink's included
    weight: float
    value: np.ndarray  # (value_dim,)
    value_norm: float
    mixed: np.ndarray  # (value_dim,) weight * value
    mixed_norm: float
    head_output: np.ndarray  # (value_dim,) the sum of the row's mixed values
    head_output_norm: float
    key_head: int  # the key/value head that this query head shares
    key_group: tuple[int, ...]  # the query heads that share it
    write: np.ndarray | None  # (width,) what this cell adds to the residual stream, W_O applied
    write_norm: float | None
    head_write_norm: float | None  # of the whole head's write
    stream_norm: float | None  # of the residual stream after the block, at the query
    candidates: tuple[Candidate, ...]  # the likeliest next tokens at the query: what `target` may be chosen from
    target: int | None  # vocabulary id
    target_label: str
    logit: float | None  # the target's, in this run
    effect: float | None  # direct effect of the cell's write on the target's logit
    head_effect: float | None  # and of the whole head's write
    effect_note: str  # where there is none: why
    recurrent: RecurrentScore | None = None  # of a recurrent model: q and k are then its `state` and `key`


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VarianceView(Result):
    run: int | None
    experiment: Experiment
    head: HeadScores | None  # None without a run, and for a head that may look at nothing


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PositionsView(Result):
    run: int
    site: SiteRef
    head: int
    query: int
    key: int
    scheme: PositionScheme
    embedding: np.ndarray | None  # (width,) float32 the query token's embedding; None where no vector is added to it
    position: np.ndarray | None  # (width,) float32 what its position adds
    total: np.ndarray | None  # (width,) float32 their sum
    sum_note: str  # what else happens before the first layer, or why there is no sum
    query_word: str
    key_word: str
    rotation: RotationView | None
    rotation_note: str  # why there is none in a model that rotates


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PatchPositionsView(Result):
    """The learned positions of a picture's patches, each compared with all."""

    run: int
    alike: np.ndarray | None  # (rows, columns, rows, columns) float32, cosines; None where the model has no table
    words: str  # what is shown, or why nothing is


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShuffleView(Result):
    """The same words in another order, with positions and without."""

    run: int
    seed: int
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AlignmentView(Result):
    """Row i holds the weights with which the model wrote target token i + 1: a position predicts the next token."""

    run: int
    site: SiteRef | None
    head: int | None
    weights: np.ndarray  # (target tokens, source tokens) float32, rows sum to 1
    likelihoods: np.ndarray  # (target tokens,) float32: of the token that each row wrote; NaN for the last, not written
    description: str  # "mean over the 8 heads of cross-attention layer 2"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecurrentView(Result):
    """The hidden states of a recurrent model, step by step. Arrays are float32."""

    run: int
    score: str  # "none" (the bottleneck), "bahdanau", "dot", "general" or "concat"
    scope: str  # "global", "monotonic" or "predictive"
    cell: str  # "gru" or "lstm"
    encoder: tuple[np.ndarray, ...]  # a direction each, (source, hidden): forward, and backward where there is one
    states: np.ndarray  # (steps, hidden): the decoder's, after each step
    contexts: np.ndarray  # (steps, encoded); the bottleneck's one vector, (1, hidden)
    scores: np.ndarray | None  # (steps, source): e, what enters the softmax; None for the bottleneck
    masked: np.ndarray | None  # (steps, source) bool: outside of the window of local attention
    weights: np.ndarray | None  # (steps, source)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrustReport(Result):
    """Largest absolute differences to transformers' own eager attention; in half precision each layer by itself.

    A textbook model has none: it is held against its papers' formulas, computed anew in float64.
    """

    run: int
    logit_difference: float
    weight_difference: float
    tolerance: float  # of weights
    seconds: float
    logit_tolerance: float = TOLERANCE
    rounding: float | None = None  # of layers compared each by itself: the largest share of what rounding explains
    end_to_end: float | None = None  # in float32: what rounding added up to, where layers were compared for that reason
    rows: int = 0  # of a long text: how many rows of every head were compared; 0 where all were
    against: str = EAGER

    @property
    def holds(self) -> bool:
        return (
            self.weight_difference <= self.tolerance
            and self.logit_difference <= self.logit_tolerance
            and (self.rounding is None or self.rounding <= 1)
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stepped(Result):
    """The text with the model's choice in it; `ended` where the model chose to end the text instead."""

    run: int
    text: Prompt
    chosen: Candidate
    ended: bool = False
    target: str | None = None  # as in the document, with the token in it where the model writes there


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exported(Result):
    run: int
    path: str
    size: int  # bytes
