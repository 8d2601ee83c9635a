"""What the window asks of the engine and what comes back: frozen values, numpy arrays and plain Python only.

No torch is imported here. The engine may answer from a thread, another process or another machine.
A `Request` names its lane; within a lane the newest request wins (see `explorer.compute.mailbox`).
Arrays in results are read-only. Results compare by identity: an array has no cheap equality.
"""

from __future__ import annotations

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
class TrustRequest(Request):
    """Compare run `run` with the model's own eager forward. Answered by `TrustReport`."""

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompareView(Result):
    """What the interventions of a run changed."""

    run: int
    site: SiteRef
    head: int
    before: np.ndarray  # (queries, keys) float32: the model as it is
    after: np.ndarray  # (queries, keys) float32: this run
    entropy_before: np.ndarray  # (queries,) float32, bits of each row
    entropy_after: np.ndarray  # (queries,) float32
    prediction_before: Prediction | None
    prediction_after: Prediction | None
    loss_before: float | None  # mean cross-entropy of the text's own next tokens, nats; None for other than causal
    loss_after: float | None
    dead_rows: tuple[int, ...]  # queries that may look at nothing: their weights and output are 0


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
    numerator: float  # exp(score - largest score of the row), 0 if masked
    denominator: float  # sum of the row's numerators (with the sink's, where there is one)
    weight: float
    value: np.ndarray  # (value_dim,)
    mixed: np.ndarray  # (value_dim,) weight * value
    head_output: np.ndarray  # (value_dim,) the sum of the row's mixed values
    key_head: int  # the key/value head that this query head shares
    key_group: tuple[int, ...]  # the query heads that share it
    write: np.ndarray | None  # (width,) what this cell adds to the residual stream, W_O applied
    write_norm: float | None
    head_write_norm: float | None  # of the whole head's write
    stream_norm: float | None  # of the residual stream after the block, at the query
    target: int | None  # vocabulary id
    target_label: str
    effect: float | None  # direct effect of the cell's write on the target's logit
    head_effect: float | None  # and of the whole head's write
    effect_note: str  # where there is none: why


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrustReport(Result):
    """Largest absolute differences to the same weights run through transformers' own eager attention."""

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exported(Result):
    run: int
    path: str
    size: int  # bytes
