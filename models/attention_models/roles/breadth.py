"""How evenly attention is spread: the entropy of rows, as a share of the most that it could be."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


class Breadth:
    """The mean over rows of H(row) / log2(keys it sees), 0 where all is on one key and 1 where all is even.

    H is in bits, of what the keys get (a sink's share is left out). Rows that see one key do not count.
    """

    def __init__(self, heads: int) -> None:
        self._shares, self._rows = np.zeros(heads), np.zeros(heads)

    def add(self, w: Tensor, visible: Tensor, real: Tensor) -> None:
        """Weights (texts, heads, rows, keys), what is visible (texts, heads or 1, rows, keys), and (texts, rows)."""
        seen = visible.sum(dim=-1)
        counted = ((seen > 1) & real[:, None]).expand(w.shape[:3]).float()  # (texts, heads, rows)
        total = w.sum(dim=-1).clamp(min=torch.finfo(w.dtype).tiny)
        entropy = torch.log(total) - torch.xlogy(w, w).sum(dim=-1) / total  # nats
        share = entropy / torch.log(seen.clamp(min=2).float())
        sums = torch.stack([(share * counted).sum(dim=(0, 2)), counted.sum(dim=(0, 2))]).double().cpu().numpy()
        self._shares += sums[0]
        self._rows += sums[1]

    @property
    def scores(self) -> np.ndarray:
        """(heads,) float64, NaN where no row was counted."""
        return np.divide(self._shares, self._rows, where=self._rows > 0, out=np.full_like(self._shares, np.nan))

    @property
    def rows(self) -> int:
        """How many rows of a head were counted."""
        return int(self._rows.max(initial=0))
