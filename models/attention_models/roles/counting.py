"""The share of each head's attention that lies on some cells, added up over rows and texts.

For cells C(i) of query i and weights w, the score of a head is the mean over i of the sum over j in C(i) of w_ij. Only
queries count to which some cell of theirs is visible, and which see more than one key: others have no choice. A head
that attends evenly to the n keys it sees would score the mean of |C(i)| / n.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.inputs import AttentionInputs, Part


def visible_cells(x: AttentionInputs, rows: slice, keys: slice) -> Tensor:
    """(texts, heads or 1, rows, keys) bool: which keys each query sees."""
    masked = attention.masked_cells(x, Part(None, rows, keys))
    shape = (rows.stop - rows.start, keys.stop - keys.start)
    if masked is None:
        return torch.ones(len(x.query), 1, *shape, dtype=torch.bool, device=x.query.device)
    return ~masked.expand(len(x.query), -1, *shape)


@dataclass(frozen=True, slots=False, eq=False)
class Asked:
    """Cells of some rows, as weights are to be multiplied by them."""

    factors: Tensor  # (questions, texts, heads or 1, rows, keys) float32: what a weight counts; 0 where it does not
    counts: Tensor  # (questions, heads or 1) float32: queries (of relations words) that count
    even: Tensor  # (questions, heads or 1) float32: the sum of what they would score if heads attended evenly

    @classmethod
    def of(cls, cells: Tensor, visible: Tensor, real: Tensor) -> Asked:
        """Of cells (questions, texts, rows, keys), what is visible (texts, heads or 1, rows, keys), and which rows are
        no padding (texts, rows), all bool."""
        seen = visible.sum(dim=-1)  # (texts, heads or 1, rows)
        counted = (seen > 1) & real[:, None]
        hit = cells[:, :, None] & visible & counted[..., None]  # (questions, texts, heads or 1, rows, keys)
        shares = hit.sum(dim=-1) / seen.clamp(min=1)
        return cls(hit.float(), hit.any(dim=-1).sum(dim=(1, 3)).float(), shares.sum(dim=(1, 3)))

    @cached_property
    def _flat(self) -> Tensor:
        """(texts, rows * keys, questions), where all heads are masked alike."""
        return self.factors[:, :, 0].flatten(2).permute(1, 2, 0).contiguous()

    def sums(self, w: Tensor) -> Tensor:
        """Of weights (texts, heads, rows, keys): (questions, heads) float32."""
        if self.factors.shape[2] == 1:
            return torch.bmm(w.flatten(2), self._flat).sum(dim=0).mT
        return torch.einsum("bhqk,rbhqk->rh", w, self.factors)


class Tally:
    """Sums of one site, on the CPU in float64."""

    def __init__(self, questions: int, heads: int) -> None:
        self.sums = np.zeros((questions, heads))
        self.counts = np.zeros((questions, heads))
        self.even_sums = np.zeros((questions, heads))

    def add(self, asked: Asked, w: Tensor) -> None:
        sums = asked.sums(w)
        together = torch.cat([sums, *(t.expand_as(sums) for t in (asked.counts, asked.even))])  # one wait for a device
        parts = together.cpu().numpy().astype(np.float64).reshape(3, *self.sums.shape)
        self.sums += parts[0]
        self.counts += parts[1]
        self.even_sums += parts[2]

    @property
    def scores(self) -> np.ndarray:
        """(questions, heads), NaN where nothing was counted."""
        return _shares(self.sums, self.counts)

    @property
    def even(self) -> np.ndarray:
        """(questions,): the mean over heads, which mostly are masked alike."""
        return _shares(self.even_sums.sum(axis=1), self.counts.sum(axis=1))


def _shares(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    shares: np.ndarray = np.divide(sums, counts, where=counts > 0, out=np.full_like(sums, np.nan))
    return shares
