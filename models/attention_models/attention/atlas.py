"""All heads of a run as small pictures, made piece by piece: the first can be looked at while the last are computed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from attention_models.attention.incremental import IncrementalWork
from attention_models.attention.inputs import AttentionInputs
from attention_models.attention.masks import RowMask
from attention_models.attention.numbers import to_numpy
from attention_models.attention.pooling import PooledHeads, stream
from attention_models.attention.row_sums import RowReport
from attention_models.protocol.values import Pooling


@dataclass(frozen=True, slots=True, eq=False)
class Atlas:
    images: np.ndarray  # (sites, heads, rows, columns) float32, NaN where a site has fewer heads or tokens
    mean: np.ndarray  # (sites, rows, columns) float32
    masked: np.ndarray  # (sites, heads or 1, rows, columns) bool: no cell of the square is visible; of what is computed
    rows: RowReport  # of what was computed
    cell: int
    done: float = 1.0  # the share of all weights that was computed; what is not there yet is NaN


class IncrementalAtlas(IncrementalWork):
    """The atlas of some sites. `advance` computes more of it, `picture` shows how far it is."""

    def __init__(
        self,
        inputs: Sequence[AttentionInputs],
        size: int,
        how: Pooling = "max",
        padding: Sequence[Collection[int]] = (),
    ) -> None:
        """`padding` are the queries of each site that fill up a text; none of any where it is empty."""
        if size < 1:
            raise ValueError(f"A picture of {size} pixels has no room for any weight; ask for 1 or more.")
        cells = [max(1, -(-max(x.queries, x.keys) // size)) for x in inputs]
        heads = max((x.heads for x in inputs), default=0)
        down = max((-(-x.queries // cell) for x, cell in zip(inputs, cells, strict=True)), default=0)
        across = max((-(-x.keys // cell) for x, cell in zip(inputs, cells, strict=True)), default=0)
        self._images = np.full((len(inputs), heads, down, across), np.nan, np.float32)
        self._mean = np.full((len(inputs), down, across), np.nan, np.float32)
        self._masked = np.zeros((len(inputs), 1, down, across), bool)
        self._cell = max(cells, default=1)
        self._rows: dict[int, RowReport] = {}  # by site
        self._begun: tuple[int, PooledHeads] | None = None  # the site that is computed, and how far it is
        self._inputs, self._size, self._how, self._padding = inputs, size, how, padding
        super().__init__(sum(_work(x) for x in inputs))
        self._ended = not inputs

    @property
    def done(self) -> float:
        """The share that is computed, 1 at the end."""
        return 1.0 if self._ended else self._did / self.work

    def picture(self) -> Atlas:
        """A copy of what is there. Waits for the device."""
        self._fetch()
        rows = sum(self._rows.values(), RowReport())
        masked = self._masked.copy()
        return Atlas(self._images.copy(), self._mean.copy(), masked, rows, self._cell, self.done)

    def _run(self) -> Iterator[int]:
        for i, x in enumerate(self._inputs):
            rows = 0
            for part in stream(x, self._size, None, self._how):
                self._begun = i, part
                yield _work(x, rows, part.rows)
                rows = part.rows
            self._fetch()
            self._begun = None

    def _fetch(self) -> None:
        """Copy from the device what is done of the site that was begun: once a picture, not after every block."""
        if self._begun is None:
            return
        i, part = self._begun
        heads, _, across = part.images.shape
        self._images[i, :heads, : part.whole, :across] = to_numpy(part.images[:, : part.whole])
        self._mean[i, : part.whole, :across] = to_numpy(part.mean[: part.whole])
        visible = part.visible[:, : part.whole].cpu().numpy()
        if len(visible) > self._masked.shape[1]:  # heads with masks of their own: a bit for each of their squares
            self._masked = np.repeat(self._masked, self._images.shape[1], axis=1)
        own = len(visible) if len(visible) > 1 else self._masked.shape[1]
        self._masked[i, :own, : part.whole, :across] = ~visible
        self._rows[i] = part.sums.report(i, self._padding[i] if self._padding else ())


def _work(x: AttentionInputs, first: int = 0, last: int | None = None) -> int:
    """How many weights some rows have, those that a causal layer or a window hides left out."""
    last = x.queries if last is None else last
    if isinstance(x.mask, RowMask):
        return max(last - first, x.mask.work(first, last, x.heads))
    keys = (first + last) // 2 if x.causal and x.mask is None else x.keys
    return x.heads * (last - first) * min(x.keys, max(1, keys))
