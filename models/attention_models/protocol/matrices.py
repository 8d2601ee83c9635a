"""Attention of one head as matrices: from Q and K to the scores, the weights and the output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from attention_models.protocol.request import HeadOfRunRequest, Lane, Result

if TYPE_CHECKING:
    import numpy as np

WINDOW = 64
"""Queries and keys that are shown at once, at most."""


def window_start(selected: int, count: int) -> int:
    """The first of the `WINDOW` tokens about `selected`, of `count`: it stays while the selection moves a little."""
    return max(0, min(count - WINDOW, selected // (WINDOW // 2) * (WINDOW // 2) - WINDOW // 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class MatricesRequest(HeadOfRunRequest):
    """Queries from `first_query` on and keys from `first_key` on, `WINDOW` at most. Answered by `MatricesView`."""

    lane: ClassVar[Lane] = Lane("view:matrices")
    activity: ClassVar[str] = "computing the matrices of the head"
    answered_by: ClassVar[str] = "attention_models.views.matrices:answer"
    first_query: int = 0
    first_key: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatricesView(Result):
    """One head's attention, step by step. Arrays are float32 but for masks.

    Of a long text a window: what keys outside of it take of the weights, and add to the output, is in `outside_weight`
    and `outside_output`, so that `weights @ v + outside_output` is `output` there too.
    """

    request: MatricesRequest
    q: np.ndarray  # (rows, head_dim) as they enter the product
    k: np.ndarray  # (keys, head_dim)
    v: np.ndarray  # (keys, value_dim)
    raw: np.ndarray  # (rows, keys) q . k
    scale: float  # as trained
    factor: float  # what interventions multiply it by, 1 without
    bias: np.ndarray | None  # (rows, keys) added for two positions; None for a model without
    softcap: float | None
    scores: np.ndarray  # (rows, keys) scaled, biased, soft-capped: what enters the softmax where nothing is masked
    masked: np.ndarray | None  # (rows, keys) bool; None where none is
    shift: (
        np.ndarray
    )  # (rows,) what is subtracted before exp: the largest score or the sink's; NaN where there is neither
    denominator: np.ndarray  # (rows,) the sum of exp(score - shift), of every key and the sink
    sink: np.ndarray | None  # (rows,) the sink's part of that sum; None for a model without
    weights: np.ndarray  # (rows, keys)
    outside_weight: np.ndarray  # (rows,) what keys outside of the window take of each row; 0 where there are none
    outside_output: np.ndarray  # (rows, value_dim) and what they add to its output
    output: np.ndarray  # (rows, value_dim)
    queries: int  # of the whole text
    keys: int
    rotated: bool  # q and k were turned by their positions (RoPE)
    key_head: int  # the key/value head that this query head shares
    key_group: tuple[int, ...]  # the query heads that share it

    @property
    def is_window(self) -> bool:
        """Whether there are more queries or keys than are here."""
        return self.raw.shape != (self.queries, self.keys)
