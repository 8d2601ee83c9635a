"""The whole model in one picture: what each block writes into the residual stream, and how one block comes to it.

What a block is made of is read off the model's own modules as they ran: which ran, in what order, and of which earlier
tensors each one's input is made. What cannot be read is a `ModuleBox`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from attention_models.protocol.request import Lane, Result, RunRequest
from attention_models.protocol.values import Candidate, SiteRef

if TYPE_CHECKING:
    import numpy as np

Part = Literal["attention", "cross", "feed_forward", "other"]
"""A sublayer of a block: self-attention, cross-attention, the feed-forward network, or one of another kind."""

Placement = Literal["pre", "post", "both", "write", "none", "unknown"]
"""Where a sublayer's normalisation stands: before it ("pre"), after its sum ("post": Vaswani et al. 2017), before it
and on what it writes ("both": Gemma 2), on what it writes alone ("write": OLMo 2), nowhere."""

STREAM = -1
"""Among what a box reads: the residual stream as it enters the block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowRequest(RunRequest):
    """What every block of run `run` wrote at every position. Answered by `FlowView`."""

    lane: ClassVar[Lane] = Lane("view:flow")
    activity: ClassVar[str] = "computing what each block writes"
    answered_by: ClassVar[str] = "attention_models.flow.model:answer"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Written:
    """What one sublayer, or one part of the embedding, added to the stream. Arrays are (positions,) float32."""

    part: Part | Literal["tokens", "positions", "segments"]
    module: str  # its name in the model
    norms: np.ndarray
    off: bool = False  # an intervention switched it off: the norms are 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockFlow:
    """One block. after = before + what was written, less what a normalisation after the sum took off.

    Attributes:
        written: in the order in which they were added.
        norms: (positions,) float32, of the stream after the block.
        remainder: (positions,) float32, the norm of (after - before - all that was written). Rounding alone where
            `placement` is "pre" or "both"; under "post" what the normalisations changed.
    """

    ref: SiteRef  # stack "encoder" or "decoder"; its layer
    module: str
    placement: Placement
    parallel: bool  # attention and feed-forward network read the same input (GPT-J, GPT-NeoX)
    written: tuple[Written, ...]
    norms: np.ndarray
    remainder: np.ndarray
    sites: tuple[SiteRef, ...]  # of its attention modules: self-attention, then cross-attention
    shared_with: int | None = None  # the earlier layer whose weights it shares (ALBERT)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StackFlow:
    """The blocks of one stack, from the bottom."""

    stack: str  # "encoder" or "decoder"
    embedding: tuple[Written, ...]
    norms: np.ndarray  # (positions,) float32, of the stream as it enters block 0
    blocks: tuple[BlockFlow, ...]
    last_norm: str = ""  # the module that normalises what leaves the last block, "" for none


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecurrentFlow:
    """A recurrent model's states in time. Norms are float32."""

    encoder: tuple[np.ndarray, ...]  # (source,) norms of the state after each token read, a tuple of directions
    decoder: np.ndarray  # (tokens,) norms of the state after each token written
    contexts: np.ndarray | None  # (tokens,) norms of what attention gave each step; None for the bottleneck
    bottleneck: (
        np.ndarray | None
    )  # (hidden,) the one vector that the decoder is given of the source; None with attention


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FlowView(Result):
    """Every stack of the model, encoder first. A recurrent model has none: `recurrent` has its states instead."""

    request: FlowRequest
    stacks: tuple[StackFlow, ...]
    recurrent: RecurrentFlow | None = None
    deviation: float  # the largest difference of the streams to those that the run itself left


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockRequest(RunRequest):
    """One block of run `run` at one position, box by box. Answered by `BlockView`.

    `target` is a vocabulary id (or a class), or None for the likeliest next token at `position`.
    """

    lane: ClassVar[Lane] = Lane("view:block")
    activity: ClassVar[str] = "computing the block"
    answered_by: ClassVar[str] = "attention_models.flow.block:answer"
    printed_by: ClassVar[str] = "attention_models.scripts.block:write"
    stack: str
    layer: int
    position: int
    target: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Box:
    """One step of a block at one position. Arrays are float32.

    Attributes:
        module: its name in the model; "" for a sum.
        kind: the class of the module, "LlamaRMSNorm".
        part: the sublayer it belongs to.
        reads: which boxes its input is the sum of, as indices into `BlockView.boxes`, or `STREAM`.
        before: its input, None where it is no single vector of this position.
        after: what it gives; empty where that is no vector of this position (keys and values of the other stack).
        parameters: how many numbers it learned.
    """

    module: str
    kind: str
    part: Part
    reads: tuple[int, ...]
    before: np.ndarray | None
    after: np.ndarray
    parameters: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NormBox(Box):
    """y = (x - mean) / sqrt(variance + eps) * gain + bias (Ba et al. 2016); of an RMS norm mean is 0 (Zhang 2019)."""

    rms: bool
    mean: float
    deviation: float  # of an RMS norm the root of the mean square
    eps: float
    gain: np.ndarray | None  # (width,) as it multiplies; None for a norm that learned none
    bias: np.ndarray | None
    off: bool = False  # an intervention took the gain (and bias) away


class FirstTerms(NamedTuple):
    """What a matrix multiplies the first dimensions of its input by, and what is added: enough to begin its sums."""

    weights: np.ndarray  # (terms, columns), the first rows of the matrix
    bias: np.ndarray | None  # (columns,)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProjectionBox(Box):
    """A matrix that makes queries, keys or values (or all of them at once: "qkv"), at this position."""

    makes: str  # "q", "k", "v", "qkv", "kv"
    rows: int  # size in
    columns: int  # size out
    bias: bool
    first: FirstTerms | None = None  # None where this matrix alone does not make `after` from `before`


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeadsBox(Box):
    """Attention itself: `after` are the heads' outputs, joined (heads * value_dim,)."""

    site: SiteRef
    heads: int
    key_heads: int
    head_dim: int
    weights: np.ndarray  # (heads, keys) of this position's row
    norms: np.ndarray  # (heads,) of each head's output
    off: tuple[int, ...] = ()  # heads of which nothing is written, for they or all of their attention are switched off


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OutputBox(Box):
    """The joined heads times W_O."""

    rows: int
    columns: int
    bias: bool
    first: FirstTerms | None = None
    norms: np.ndarray | None  # (heads,) of what each head writes; None where W_O is no single matrix
    off: bool = False  # nothing of it is added to the stream


class Neuron(NamedTuple):
    """One unit of a feed-forward network's hidden layer. A tuple: 32 of them are made after every arrow key."""

    number: int
    activation: float  # as the second matrix reads it: after the function, times its gate where there is one
    write_norm: float  # of activation times its column of the second matrix, and the share of its expert
    effect: float | None  # of that write on the target's logit, directly; None where there is no such sum
    expert: int | None = None  # of a mixture, which one it is of; None for a network that every position goes through


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Expert:
    """One network of a mixture of experts, and the share that the router gave it."""

    index: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeedForwardBox(Box):
    """width -> hidden -> width."""

    hidden: int
    activation: str  # "GELU", "SiLU"; "" where it could not be read
    gated: bool
    positive: int | None  # how many hidden units are above 0
    neurons: tuple[Neuron, ...]  # those with the largest write, first the largest; none where they could not be read
    experts: tuple[Expert, ...] = ()  # those that were chosen at this position, largest share first
    expert_count: int = 0
    off: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SumBox(Box):
    """The residual connection: the sum of what it reads, times `factors` where a family scales a part (Granite)."""

    factors: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModuleBox(Box):
    """A module of which no more could be read than what went in and what came out."""

    norm_before: float | None
    norm_after: float | None  # None where it gives no vector of this position


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockView(Result):
    """One block at one position. `boxes` are in the order in which they ran; the last one gives the stream after."""

    request: BlockRequest
    module: str
    placement: Placement
    parallel: bool
    before: np.ndarray  # (width,) float32, the stream as it enters
    after: np.ndarray  # (width,) as it leaves
    boxes: tuple[Box, ...]
    remainder: float  # the norm of what the boxes do not account for: rounding
    candidates: tuple[Candidate, ...]  # the likeliest next tokens at the position
    target: int | None
    target_label: str
    effect_note: str  # why no neuron has an effect on the target's logit; "" where they have
