"""What the weights of an attention depend on, and the parts of it that are computed on their own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attention_models.attention.masks import RowMask

Rows = slice | list[int] | None


@dataclass(frozen=True, slots=True, eq=False)
class AttentionInputs:
    """Everything that the weights of one attention module depend on, as the module passed it on.

    Queries and keys carry whatever the model did to them before (rotation, normalisation).
    """

    query: Tensor  # (batch, heads, queries, head_dim)
    key: Tensor  # (batch, key_heads, keys, head_dim); heads is a multiple of key_heads
    value: Tensor  # (batch, key_heads, keys, value_dim)
    scale: float
    causal: bool = False  # no mask tensor, but query i attends to keys up to its own place only
    # broadcasts to (batch, heads, queries, keys): bool, True is visible; or added. Of a long text a RowMask.
    mask: Tensor | None = None
    bias: Tensor | None = None  # broadcasts to (batch, heads, queries, keys), added to the scaled scores
    softcap: float | None = None
    sinks: Tensor | None = None  # (heads,): a score that takes its share of each row and gives no value
    factors: Tensor | None = None  # (heads,): what an intervention multiplies each head's scale by
    # (batch, heads, queries, keys): weights that the model itself gives, where it shows nothing of what made them
    precomputed: Tensor | None = None

    @property
    def heads(self) -> int:
        return self.query.shape[1]

    @property
    def queries(self) -> int:
        return self.query.shape[2]

    @property
    def keys(self) -> int:
        return self.key.shape[2]

    @property
    def group(self) -> int:
        """Query heads that share one key/value head (1 unless grouped-query: Ainslie et al. 2023)."""
        return self.query.shape[1] // self.key.shape[1]

    @property
    def wants_gradient(self) -> bool:
        """Whether somebody may ask for the gradient of what is computed from it."""
        if not torch.is_grad_enabled():
            return False
        tensors = (self.query, self.key, self.value, self.bias, self.mask, self.sinks)
        return any(t is not None and t.requires_grad for t in tensors)


def texts_inputs(every: Iterable[AttentionInputs], text: int) -> list[AttentionInputs]:
    """Of one text of a batch, batch 1, for each of some sites: views of the same tensors.

    Sites that share a mask go on to share it.
    """
    masks: dict[int, Tensor | None] = {}

    def of(t: Tensor | None) -> Tensor | None:
        return t if t is None or t.shape[0] == 1 else t[text : text + 1]

    found = []
    for x in every:
        if id(x.mask) not in masks:
            masks[id(x.mask)] = x.mask.of_text(text) if isinstance(x.mask, RowMask) else of(x.mask)
        row = slice(text, text + 1)
        found.append(
            replace(
                x,
                query=x.query[row],
                key=x.key[row],
                value=x.value[row],
                mask=masks[id(x.mask)],
                bias=of(x.bias),
                precomputed=of(x.precomputed),
            )
        )
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some heads, rows (queries) and keys of an attention; None stands for all of them."""

    heads: list[int] | None = None
    rows: Rows = None
    keys: slice | None = None

    def take_cells(self, t: Tensor) -> Tensor:
        """Of a tensor that broadcasts to (batch, heads, queries, keys); a dimension of size 1 stays as it is."""
        if isinstance(t, RowMask):
            return t.block(self.heads, self.rows, self.keys)
        t = self.take_queries(t)
        return t if self.keys is None or t.shape[3] == 1 else t[..., self.keys]

    def take_queries(self, t: Tensor) -> Tensor:
        """(batch, heads, queries, dim) to (batch, heads, rows, dim); a dimension of size 1 stays as it is."""
        if self.heads is not None:
            t = _take_heads(t, self.heads)
        return t if self.rows is None or t.shape[2] == 1 else t[:, :, self.rows]

    def take_keys(self, t: Tensor, heads: int) -> Tensor:
        """Keys or values, (batch, key_heads, keys, dim), one for each query head: (batch, heads, keys, dim)."""
        if self.keys is not None:
            t = t[:, :, self.keys]
        group = heads // t.shape[1]
        if self.heads is not None:
            return _take_heads(t, [head // group for head in self.heads])
        return t if group == 1 else t.repeat_interleave(group, dim=1)

    def take_per_head(self, t: Tensor) -> Tensor:
        """Of one number a head, (heads,)."""
        return t if self.heads is None else t[self.heads]


WHOLE = Part()


def _take_heads(t: Tensor, heads: list[int]) -> Tensor:
    if t.shape[1] == 1:
        return t
    consecutive = heads == list(range(heads[0], heads[0] + len(heads)))
    return t[:, heads[0] : heads[0] + len(heads)] if consecutive else t[:, heads]  # a slice is a view, a list a copy
