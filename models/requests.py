"""What the window asks of the engine and what comes back: frozen values, numpy arrays and plain Python only.

No torch is imported here. The engine may answer from a thread, another process or another machine.
A `Request` names its lane; within a lane the newest request wins (see `explorer.compute.mailbox`).
Arrays in results are read-only. Results compare by identity: an array has no cheap equality.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

if TYPE_CHECKING:
    from models.interventions import Intervention

# --------------------------------------------------------------------------- what a model and its input are


@dataclass(frozen=True, slots=True)
class Token:
    """One token of the input and the characters it covers.

    `text == input[start:end]` (code points); special tokens that stand for no text have `start == end`.
    Where one character was split over several tokens (bytes of an emoji), all of them cover that character
    and `part` says which piece of how many this one is, counting from 1.
    """

    id: int
    piece: str  # as in the vocabulary: "Ġcats", "##ing", "▁the"
    text: str
    start: int
    end: int
    special: bool = False
    part: tuple[int, int] = (1, 1)
    label: str = ""  # what to draw: "␣cats", "⟨start⟩", "F0·9F"

    @property
    def word(self) -> str:
        """The label without the marks of leading white space: for axes, where tokens do not run on."""
        return self.label.lstrip("␣") or self.label


@dataclass(frozen=True, slots=True)
class Site:
    """One attention module as it ran: `stack` is "decoder", "encoder" or "cross"; `layer` counts from 0."""

    stack: str
    layer: int
    heads: int
    key_heads: int  # fewer than `heads` where query heads share keys and values (grouped-query attention)
    head_dim: int
    queries: int
    keys: int
    causal: bool = False
    module: str = ""  # its name in the model

    @property
    def ref(self) -> SiteRef:
        return SiteRef(self.stack, self.layer)


@dataclass(frozen=True, slots=True, order=True)
class SiteRef:
    stack: str
    layer: int


@dataclass(frozen=True, slots=True)
class StackInfo:
    stack: str
    layers: int
    heads: int
    key_heads: int


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """What can be said of a checkpoint from its config and the headers of its files, before loading it."""

    reference: str  # what was asked for: a shipped name or a folder
    name: str
    folder: str
    family: str  # "causal", "masked", "encoder", "seq2seq", "vision"
    model_type: str
    architecture: str
    stacks: tuple[StackInfo, ...]
    width: int
    context: int | None  # tokens that fit; None where the model states no bound
    vocabulary: int
    parameters: int
    file_bytes: int
    summary: str = ""
    example: str = ""
    prefix: str = ""  # put in front of every text, where training did so and the tokenizer does not
    mask_token: str | None = None
    shipped: bool = False
    textbook: bool = False  # one of ours, with its own attention module, and not one of transformers'


# --------------------------------------------------------------------------- requests


class Cancelled(Exception):
    """The work was called off (`should_stop()` was true). Nobody waits for an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """`ticket` is set by the mailbox; a result whose ticket is no longer its lane's newest is dropped."""

    lane: ClassVar[str]
    ticket: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest(Request):
    """Open a checkpoint: a shipped name or a folder. Answered by `Loaded`."""

    lane: ClassVar[str] = "load"
    reference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardRequest(Request):
    """Run the open model on `text`, with what is to be changed. Answered by `Ran`."""

    lane: ClassVar[str] = "forward"
    text: str
    interventions: tuple[Intervention, ...] = ()
    target: str | None = None  # for the decoder of an encoder-decoder model; None lets it write by beam search


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadRequest(Request):
    """The whole weight matrix of one head of run `run`. Answered by `HeadView`."""

    lane: ClassVar[str] = "view:head"
    run: int
    site: SiteRef
    head: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AtlasRequest(Request):
    """All heads of run `run`, each pooled to at most `size` x `size`. Answered by `AtlasView`."""

    lane: ClassVar[str] = "view:atlas"
    run: int
    size: int
    pooling: str = "max"


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionRequest(Request):
    """The `top` likeliest tokens at each of `positions` of run `run`. Answered by `PredictionView`."""

    lane: ClassVar[str] = "view:prediction"
    run: int
    positions: tuple[int, ...]
    top: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareRequest(Request):
    """One head of run `run` beside the same text run without interventions. Answered by `CompareView`."""

    lane: ClassVar[str] = "view:compare"
    run: int
    site: SiteRef
    head: int
    position: int  # where the next token is compared
    top: int = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRequest(Request):
    """One cell's arithmetic, from q and k to the logit of token `target`. Answered by `CellView`.

    `target` is a vocabulary id, or None for the likeliest next token at `query`.
    """

    lane: ClassVar[str] = "view:cell"
    run: int
    site: SiteRef
    head: int
    query: int
    key: int
    target: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceRequest(Request):
    """Why scores are divided by sqrt(d): random vectors, and one head of run `run`. Answered by `VarianceView`.

    Queries and keys are drawn with shape (batch, tokens, d) for each d. Without a run only they are measured.
    """

    lane: ClassVar[str] = "view:variance"
    widest: ClassVar[int] = 1024  # the largest d
    most_elements: ClassVar[int] = 1 << 24
    batch: int
    tokens: int
    deviation: float  # of every component
    seed: int
    run: int | None = None
    site: SiteRef | None = None
    head: int = 0

    def refusal(self) -> str:
        """A sentence that says why these numbers can not be drawn; "" where they can."""
        elements = self.batch * self.tokens * self.widest
        if not (self.batch >= 1 and self.tokens >= 2):
            return f"B is {self.batch} and T is {self.tokens}: it takes at least 1 row and 2 keys."
        if not 0 < self.deviation <= 100:
            return f"The standard deviation m is {self.deviation:g}: choose more than 0 and at most 100."
        if self.seed < 0:
            return f"The seed is {self.seed}: choose 0 or more."
        if elements > self.most_elements:
            most = self.most_elements // self.widest
            return (
                f"B × T × {self.widest} is {elements:,} numbers, more than {self.most_elements:,}. "
                f"Choose B × T of at most {most:,}."
            )
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionsRequest(Request):
    """How the open model tells positions apart, seen from one cell of run `run`. Answered by `PositionsView`."""

    lane: ClassVar[str] = "view:positions"
    run: int
    site: SiteRef
    head: int
    query: int
    key: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffleRequest(Request):
    """Run the text of run `run` in another order of words, with positions and without. Answered by `ShuffleView`.

    Seed 0 swaps the first word and the last; every other seed is an order of its own.
    """

    lane: ClassVar[str] = "view:shuffle"
    run: int
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentRequest(Request):
    """Cross-attention weights of run `run` as an alignment of its two texts. Answered by `AlignmentView`.

    One head of `site`; the mean over the site's heads where `head` is None; over every cross head where both are.
    """

    lane: ClassVar[str] = "view:alignment"
    run: int
    site: SiteRef | None = None
    head: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentRequest(Request):
    """The hidden states of run `run` of a recurrent model. Answered by `RecurrentView`."""

    lane: ClassVar[str] = "view:recurrent"
    run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustRequest(Request):
    """Compare run `run` with the model's own eager forward, or with its papers' formulas. Answered by `TrustReport`."""

    lane: ClassVar[str] = "trust"
    run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRequest(Request):
    """Let the model write one more token after run `run` (or fill its surest mask). Answered by `Stepped`."""

    lane: ClassVar[str] = "decode"
    run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest(Request):
    """Write all weights of run `run` to the .npz file `path`. Answered by `Exported`."""

    lane: ClassVar[str] = "export"
    run: int
    path: str


# --------------------------------------------------------------------------- results


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Progress(Result):
    """Work that takes longer than a moment says what it is doing; `fraction` is None where that is unknown."""

    label: str
    fraction: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loaded(Result):
    info: CheckpointInfo
    device: str  # "CPU", "CUDA (NVIDIA H100)"
    dtype: str  # "float32"
    eval_mode: bool
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ran(Result):
    """A forward pass that ended: `run` names it in every later request."""

    run: int
    text: str
    tokens: tuple[Token, ...]
    sites: tuple[Site, ...]
    masks: tuple[int, ...]  # positions of mask tokens, empty for models without them
    interventions: tuple[Intervention, ...] = ()  # what was changed in this run
    target: str | None = None  # as asked for
    source: tuple[Token, ...] = ()  # of the encoder, in an encoder-decoder model
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
class AtlasView(Result):
    run: int
    images: np.ndarray  # (sites, heads, rows, columns) float32; NaN where a site has fewer heads or tokens
    mean: np.ndarray  # (sites, rows, columns) float32: the mean over heads, pooled likewise
    row_error: float  # largest |sum of a row - 1| over every row of every head
    cell: int  # each pixel pools cell x cell weights
    pooling: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Candidate:
    id: int
    label: str
    piece: str
    probability: float
    logit: float
    rank: int  # 1 is the likeliest


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the model says at one position: the next token of a causal model, the token itself of a masked one."""

    position: int
    candidates: tuple[Candidate, ...]
    actual: Candidate | None  # the token that stands there in the text, where there is one
    entropy: float  # bits, of the whole distribution


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PredictionView(Result):
    run: int
    predictions: tuple[Prediction, ...]


@dataclass(frozen=True, slots=True)
class TokenChange:
    """How likely one token is as the next, in the model as it is and in an edited run."""

    id: int
    label: str
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompareView(Result):
    """What the interventions of a run changed."""

    run: int
    site: SiteRef
    head: int
    head_dim: int
    scale: float  # of the scores, as trained
    factor: float  # what interventions multiply it by, 1 without
    before: np.ndarray  # (queries, keys) float32: the model as it is
    after: np.ndarray  # (queries, keys) float32: this run
    difference: np.ndarray  # (queries, keys) float32: after - before
    largest_difference: float  # its largest absolute value
    entropy_before: np.ndarray  # (queries,) float32, bits of each row
    entropy_after: np.ndarray  # (queries,) float32
    top_key_before: np.ndarray  # (queries,) int: the key that each row looks at most
    top_key_after: np.ndarray  # (queries,) int
    token_changes: tuple[TokenChange, ...]  # the likeliest of both, by the larger of their two probabilities
    prediction_before: Prediction | None
    prediction_after: Prediction | None
    loss_before: float | None  # mean cross-entropy of the text's own next tokens, nats; None for other than causal
    loss_after: float | None
    peeks: bool  # somewhere in this run a token may look at a later one that the model as it is hides from it
    dead_rows: tuple[int, ...]  # queries that may look at nothing: their weights and output are 0


@dataclass(frozen=True, slots=True, eq=False)
class RecurrentScore:
    """How a recurrent model scored one encoder state h for a decoder state s. Arrays are (hidden,) float32.

    The score is the sum of `products`: v tanh(W s + U h) of the additive kinds, s (W h) of the others.
    """

    kind: str  # "bahdanau", "dot", "general" or "concat"
    state: np.ndarray  # W s; s itself for dot and general
    key: np.ndarray  # U h; W h for general, h for dot, brought to the decoder's width where it is wider
    tanh: np.ndarray | None  # tanh(W s + U h); None for dot and general
    v: np.ndarray | None  # None for dot and general
    products: np.ndarray
    place: float | None  # which source place local attention looks around; None where it looks everywhere
    gaussian: float | None  # what the distance from a predicted place adds to the score


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


@dataclass(frozen=True, slots=True)
class HeadScores:
    """How q . k of one real head scatters over the cells that its mask allows, before any scaling."""

    site: SiteRef
    head: int
    head_dim: int
    cells: int
    mean: float
    variance: float
    scale: float  # what the model multiplies q . k by, interventions included
    independent: float  # the variance if components were independent: head_dim times E[q^2] E[k^2]

    @property
    def deviation(self) -> float:
        return math.sqrt(self.variance)

    @property
    def scaled_variance(self) -> float:
        return self.variance * self.scale**2


@dataclass(frozen=True, slots=True, eq=False)
class Experiment:
    """Random queries and keys at each of `dimensions`.

    Axis 0 of (2, ...) arrays: the softmax of q . k as it is, and of q . k / sqrt(d).
    """

    dimensions: np.ndarray  # (dims,) int64: the d that were measured
    variance: np.ndarray  # (dims,) float64: of q . k, over batch x tokens independent pairs
    law: np.ndarray  # (dims,) float64: deviation^4 d
    standard_error: np.ndarray  # (dims,) float64: of `variance`, as sampling theory has it under the law
    largest: np.ndarray  # (2, dims) float64: mean largest weight of a row
    entropy: np.ndarray  # (2, dims) float64: mean entropy of a row, bits
    gradient: np.ndarray  # (2, dims) float64: mean Frobenius norm of the softmax's Jacobian
    rows: np.ndarray  # (2, dims, tokens) float32: the weights of one row, largest first


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VarianceView(Result):
    run: int | None
    experiment: Experiment
    head: HeadScores | None  # None without a run, and for a head that may look at nothing


@dataclass(frozen=True, slots=True, eq=False)
class PositionScheme:
    """How a model tells positions apart, at one attention site. Arrays are None where the scheme has no such thing."""

    kind: str  # "learned", "sinusoidal", "rope", "alibi", "t5" or "none"
    title: str
    words: str  # two or three sentences
    off_note: str = ""  # why positions can not be turned off; "" where they can
    shift_note: str = ""  # why they can not be shifted
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

    run: int
    seed: int
    words: tuple[str, ...]  # as written, one a token
    order: tuple[int, ...]  # which token of the written order stands at each place of the new one
    fixed: tuple[bool, ...]  # by written place: special tokens, which stay
    measured: str  # "logits" or "hidden states"
    causal: bool
    on: Moved  # the model as it is
    off: Moved | None  # its positions off; None where they can not be turned off
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
    """Largest absolute differences to the same weights run through transformers' own eager attention.

    A textbook model has none: it is held against its papers' formulas, computed anew in float64.
    """

    run: int
    logit_difference: float
    weight_difference: float
    tolerance: float
    seconds: float
    note: str = ""

    @property
    def holds(self) -> bool:
        return self.logit_difference <= self.tolerance and self.weight_difference <= self.tolerance


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stepped(Result):
    """The text with the model's choice in it; `ended` where the model chose to end the text instead."""

    run: int
    text: str
    chosen: Candidate
    ended: bool = False
    target: str | None = None  # as in the document, with the token in it where the model writes there


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exported(Result):
    run: int
    path: str
    size: int  # bytes
