"""The arithmetic of one cell, from query and key to a logit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from attention_models.protocol.request import HeadOfRunRequest, Lane, Result
from attention_models.protocol.values import Candidate

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRequest(HeadOfRunRequest):
    """One cell's arithmetic, from q and k to the logit of token `target`. Answered by `CellView`.

    `target` is a vocabulary id, or None for the likeliest next token at `query`.
    """

    lane: ClassVar[Lane] = Lane("view:cell")
    activity: ClassVar[str] = "computing the arithmetic of the cell"
    answered_by: ClassVar[str] = "attention_models.views.cell:answer"
    printed_by: ClassVar[str] = "attention_models.scripts.cell:write"
    query: int
    key: int
    target: int | None = None


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


@dataclass(frozen=True, slots=True, eq=False)
class AdditiveScore:
    """How a head scored a key by v . tanh(q + k), and not by a product. Arrays are (head_dim,) float32."""

    tanh: np.ndarray  # tanh(q + k)
    v: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellView(Result):
    """How one score came about, became a weight, and what that weight did. Arrays are float32."""

    request: CellRequest
    q: np.ndarray  # (head_dim,) the query vector, as it enters the product
    k: np.ndarray  # (head_dim,) the key vector
    rotated: bool  # q and k were turned by their positions on the way here (RoPE)
    products: np.ndarray  # (head_dim,) q * k; v * tanh(q + k) of additive scores
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
    shift: float | None  # the row's largest score (or its sink's), subtracted from all; None where there is neither
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
    additive: AdditiveScore | None = None  # where no product of q and k made the score
    recurrent: RecurrentScore | None = None  # of a recurrent model: q and k are then its `state` and `key`
