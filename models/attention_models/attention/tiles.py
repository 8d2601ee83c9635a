"""One head's weights as a map of tiles, each computed when it is looked at.

At level L a pixel pools 2^L x 2^L weights and a tile has `TILE` x `TILE` pixels. The softmax of a row runs over all of
its keys, a tile holds some of them: so each row's largest score m_i and the sum Z_i of exp(s_ij - m_i) are computed
once, streamed over blocks of rows, and kept (two floats a row). Any weight is then exp(s_ij - m_i) / Z_i: the softmax
of whole rows to float32's rounding, about 1e-6 for scores of 10 (`attention_models.attention.rounding`). With rows
scaled, each is divided by the largest weight of its row, which needs no Z_i.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.incremental import BlockSize
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.attention.pooling import pool_axis, squares
from attention_models.protocol.request import Cancelled, never
from attention_models.protocol.values import Pooling, Tile

# Scores held at once.
_BLOCK = BlockSize(1 << 20)


class HeadTiles:
    """The map of one head, and what its tiles share: each row's largest score and sum."""

    def __init__(self, x: AttentionInputs, head: int) -> None:
        self._x, self._head = x, head
        device = x.query.device
        self._peak = torch.zeros(x.queries, device=device)  # m, a sink's score left out
        self._total = torch.zeros(x.queries, device=device)  # Z; 0 where it is not known yet
        self._known = np.zeros(x.queries, bool)

    @property
    def queries(self) -> int:
        return self._x.queries

    @property
    def nbytes(self) -> int:
        return self._peak.nbytes + self._total.nbytes

    def work(self, tile: Tile) -> int:
        """How many scores a tile takes at most, for whoever shares out time."""
        rows, keys = tile.rows(self._x.queries), tile.columns(self._x.keys)
        size: int = max(0, rows.stop - rows.start) * max(0, keys.stop - keys.start)
        return size

    @torch.no_grad()
    def tile(
        self, tile: Tile, how: Pooling = "max", should_stop: Callable[[], bool] = never, scale_rows: bool = False
    ) -> np.ndarray:
        """The pixels of `tile`, (down, across) float32, at most TILE x TILE; NaN where a whole square is masked.

        `scale_rows` divides every weight by the largest of its row.

        Raises:
            IndexError: the map has no such tile.
            Cancelled: `should_stop()` was true between two blocks of rows.
        """
        x = self._x
        if min(tile.level, tile.row, tile.column) < 0 or not self.work(tile):
            raise IndexError(f"There is no {tile} in a map of {x.queries} x {x.keys} weights.")
        rows, keys, cell = tile.rows(x.queries), tile.columns(x.keys), tile.cell
        shape = (-(-(rows.stop - rows.start) // cell), -(-(keys.stop - keys.start) // cell))
        image = torch.full(shape, torch.nan, device=x.query.device)
        step = max(cell, _BLOCK.on(x.query.device) // x.keys // cell * cell)
        for start in range(rows.start, rows.stop, step):
            if should_stop():
                raise Cancelled
            block = slice(start, min(start + step, rows.stop))
            reach = attention.reach(x, Part([self._head], block))
            # whole squares from the first visible key to the last, within the tile
            first = max(keys.start, reach.start // cell * cell)
            last = min(keys.stop, -(-reach.stop // cell) * cell)
            if first < last:
                picture = self._squares(block, slice(first, last), cell, how, reach, scale_rows)
                top, left = (start - rows.start) // cell, (first - keys.start) // cell
                image[top : top + picture.shape[0], left : left + picture.shape[1]] = picture
        array: np.ndarray = image.cpu().numpy()
        return array

    def sinks(self, rows: slice) -> np.ndarray | None:
        """What the sink takes of some rows, (rows,) float32; NaN of one whose weights were not asked for yet.

        None where there are no sinks.
        """
        x = self._x
        if x.sinks is None:
            return None
        shares = torch.exp(x.sinks[self._head].float() - self._peak[rows]) / self._total[rows]
        array: np.ndarray = shares.cpu().numpy()
        array[~self._known[rows]] = np.nan
        return array

    def _squares(self, rows: slice, keys: slice, cell: int, how: Pooling, reach: slice, scale_rows: bool) -> Tensor:
        """(down, across) of the weights of some rows and keys, NaN where a square is masked."""
        if self._x.precomputed is not None:
            return self._precomputed_squares(rows, keys, cell, how, scale_rows)
        x, known = self._x, bool(self._known[rows].all())
        wanted = keys if known else slice(min(reach.start, keys.start), max(reach.stop, keys.stop))
        s = attention.masked_scores(x, Part([self._head], rows, wanted))[0][0, 0]  # (rows, wanted keys)
        part = s[:, keys.start - wanted.start : keys.stop - wanted.start]  # (rows, keys)
        # The exponential grows with its argument, so the largest weight of some keys is that of their largest score:
        # what is read and written is few, where exp() of every score would be many.
        largest = None if how == "mean" and x.mask is None else pool_axis(part, 1, cell, "max")  # (rows, across)
        hidden = self._hidden(largest, rows, keys, cell)
        if not known:
            peak = s.amax(dim=-1)
            # a row to which nothing is visible: all 0, not 0/0
            self._peak[rows] = torch.where(peak == -torch.inf, 0.0, peak)
        peak = self._peak[rows, None]
        if not known or how == "mean":
            s.sub_(peak).exp_()
        if not known:
            self._keep_total(rows, s.sum(dim=-1))
        if how == "max":
            assert largest is not None
            w = largest.sub_(peak).exp_()
        else:
            w = pool_axis(part, 1, cell, "mean")
        if not scale_rows:
            w = w / self._total[rows, None]
        picture = pool_axis(w, 0, cell, how)
        return picture if hidden is None else picture.masked_fill(hidden, torch.nan)

    def _keep_total(self, rows: slice, total: Tensor) -> None:
        """total: (rows,) sums of exp(s - m)."""
        x = self._x
        if x.sinks is not None:
            total = total + torch.exp(x.sinks[self._head].float() - self._peak[rows])
        self._total[rows] = torch.where(total == 0, 1.0, total)
        self._known[rows] = True

    def _hidden(self, largest: Tensor | None, rows: slice, keys: slice, cell: int) -> Tensor | None:
        """(down, across) bool: squares that are masked as a whole, None where none is.

        largest: (rows, across), of the masked scores of each row; asked for where there is a mask.
        """
        if self._x.mask is not None:
            assert largest is not None
            return pool_axis(largest, 0, cell, "max") == -torch.inf
        if not self._x.causal or keys.stop <= rows.start + 1:
            return None
        device = self._x.query.device
        last_rows = torch.arange(rows.start, rows.stop, cell, device=device).add_(cell).clamp_(max=rows.stop) - 1
        first_keys = torch.arange(keys.start, keys.stop, cell, device=device)
        return first_keys > last_rows[:, None]

    def _precomputed_squares(self, rows: slice, keys: slice, cell: int, how: Pooling, scale_rows: bool) -> Tensor:
        """Of a model that gives its weights alone: a weight of exactly 0 is all that it says of its mask."""
        w = attention.weights(self._x, Part([self._head], rows))[0, 0]
        if scale_rows:
            w = w / w.amax(dim=-1, keepdim=True).clamp(min=torch.finfo(w.dtype).tiny)
        w = w[:, keys]
        hidden = squares(w[None], cell, "max")[0] == 0
        return squares(w[None], cell, how)[0].masked_fill(hidden, torch.nan)
