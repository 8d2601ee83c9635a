"""Many weights in few pixels: squares of a head's weights pooled to one number each, streamed over blocks of rows.

A pixel is the largest or the mean of a square of `cell` x `cell` weights, the last ones of what is left. Softmax runs
over whole rows, so a block is some rows with every key visible to them; what a mask hides from all of a block's
rows is not computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.incremental import BlockSize
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.attention.row_sums import RowSums
from attention_models.protocol.values import Pooling

# Weights held at once: 32 MB of float32, what a processor's last cache holds (64 MB took a third longer).
_BLOCK = BlockSize(1 << 23)


@dataclass(slots=True, eq=False)
class PooledHeads:
    """The pictures of some heads of one site; complete when `rows` is `queries`."""

    images: Tensor  # (heads, rows, columns) float32
    mean: Tensor  # (rows, columns): the mean over heads, pooled likewise
    visible: Tensor  # (heads or 1, rows, columns) bool: squares with a visible cell; 1 where all heads are masked alike
    sums: RowSums  # of the rows so far
    cell: int  # each pixel pools cell x cell weights
    queries: int
    rows: int = 0  # queries done

    @property
    def whole(self) -> int:
        """How many rows of squares are complete: one whose last queries are yet to come is not."""
        return self.images.shape[1] if self.rows == self.queries else self.rows // self.cell


def pooled(x: AttentionInputs, size: int, heads: list[int] | None = None, how: Pooling = "max") -> PooledHeads:
    """The weights of `heads` (of batch row 0) in at most `size` x `size` pixels.

    Raises:
        ValueError: `size` has no room for a pixel.
    """
    *_, whole = stream(x, size, heads, how)
    return whole


@torch.no_grad()
def stream(
    x: AttentionInputs, size: int, heads: list[int] | None = None, how: Pooling = "max"
) -> Iterator[PooledHeads]:
    """As `pooled`, handing out the same unfinished pictures after each block of rows; 0 where none are done yet.

    Never holds more than a block of rows beside them.
    """
    if size < 1:
        raise ValueError(f"A picture of {size} pixels has no room for any weight; ask for 1 or more.")
    count, cell = len(heads) if heads is not None else x.heads, max(1, -(-max(x.queries, x.keys) // size))
    down, across = -(-x.queries // cell), -(-x.keys // cell)
    picture = PooledHeads(
        images=torch.zeros(count, down, across, device=x.query.device),
        mean=torch.zeros(down, across, device=x.query.device),
        visible=torch.zeros(1, down, across, dtype=torch.bool, device=x.query.device),
        sums=RowSums(x, heads),
        cell=cell,
        queries=x.queries,
    )
    for rows in _row_blocks(x, count, cell):
        keys = attention.reach(x, Part(heads, rows))
        # whole squares only: a square's first columns may lie before the first visible key
        keys = slice(keys.start // cell * cell, keys.stop)
        if keys.start < keys.stop:
            w = attention.weights(x, Part(heads, rows, keys))[0]  # (heads, rows, keys)
            picture.sums.add(rows, keys, w)
            for part, into in ((w, picture.images), (w.mean(dim=0, keepdim=True), picture.mean[None])):
                _add(into, part, rows, keys, x, cell, how)
            _mark_visible(picture, x, heads, rows, keys)
        else:
            picture.sums.add_empty(rows)
        picture.rows = rows.stop
        yield picture


def _mark_visible(picture: PooledHeads, x: AttentionInputs, heads: list[int] | None, rows: slice, keys: slice) -> None:
    """Mark the squares of `rows` and `keys` in which a cell is visible. By the mask: a weight may round to 0."""
    cell = picture.cell
    down = slice(rows.start // cell, -(-rows.stop // cell))
    across = slice(keys.start // cell, -(-keys.stop // cell))
    if x.causal and x.mask is None and x.precomputed is None:
        device = x.query.device
        last_rows = torch.arange(down.start + 1, down.stop + 1, device=device).mul_(cell).clamp_(max=rows.stop) - 1
        first_keys = torch.arange(across.start, across.stop, device=device).mul_(cell)
        seen = (first_keys <= last_rows[:, None])[None]
    else:
        masked = attention.masked_cells(x, Part(heads, rows, keys))
        if masked is None:
            picture.visible[:, down, across] = True
            return
        cells = ~masked[0].expand(-1, rows.stop - rows.start, keys.stop - keys.start)
        seen = squares(cells, cell, "max")
    if len(seen) > len(picture.visible):
        picture.visible = picture.visible.repeat(len(seen), 1, 1)
    picture.visible[:, down, across] |= seen


def _row_blocks(x: AttentionInputs, heads: int, cell: int) -> Iterator[slice]:
    """Runs of rows, each of whole squares, or within one where the weights of a square's rows are too many."""
    fitting = max(1, _BLOCK.on(x.query.device) // max(1, heads * x.keys))
    whole = max(1, fitting // cell) * cell
    part = whole if fitting >= cell else -(-cell // -(-cell // fitting))  # of a square's rows, in equal parts
    for first in range(0, x.queries, whole):
        last = min(first + whole, x.queries)
        for start in range(first, last, part):
            yield slice(start, min(start + part, last))


def _add(into: Tensor, w: Tensor, rows: slice, keys: slice, x: AttentionInputs, cell: int, how: Pooling) -> None:
    """Pool `w` (heads, rows, keys) into its place in `into` (heads, down, across), zero where nothing came yet."""
    place = into[
        :, rows.start // cell : -(-rows.stop // cell), keys.start // cell : -(-keys.stop // cell)
    ]  # a view, written through
    if how == "max":
        torch.maximum(place, squares(w, cell, "max"), out=place)
        return
    sums = sum_axis(sum_axis(w, 1, cell), 2, cell)
    high = _lengths(x.queries, cell, rows, w.device)
    wide = _lengths(x.keys, cell, keys, w.device)
    place += sums / (high[:, None] * wide)


def _lengths(count: int, cell: int, part: slice, device: torch.device) -> Tensor:
    """How many cells of an axis of `count` each square of `part` has: `cell`, but for the last."""
    starts = torch.arange(part.start // cell, -(-part.stop // cell), device=device) * cell
    return (count - starts).clamp(max=cell).float()


def squares(w: Tensor, cell: int, how: Pooling) -> Tensor:
    """(heads, rows, keys) pooled over squares that begin at its first row and key: (heads, down, across)."""
    if cell == 1:
        return w
    # rows first: they are whole lines in memory, and few are left for the slower axis
    return pool_axis(pool_axis(w, 1, cell, how), 2, cell, how)


def pool_axis(t: Tensor, dim: int, cell: int, how: Pooling) -> Tensor:
    """Runs of `cell` along an axis as one number each, the last one of what is left. Always a tensor of its own."""
    whole = t.shape[dim] // cell * cell
    parts = []
    if whole:
        runs = t.narrow(dim, 0, whole).unflatten(dim, (-1, cell))
        parts.append(runs.amax(dim + 1) if how == "max" else runs.mean(dim + 1))
    if whole < t.shape[dim]:
        rest = t.narrow(dim, whole, t.shape[dim] - whole)
        parts.append(rest.amax(dim, keepdim=True) if how == "max" else rest.mean(dim, keepdim=True))
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim)


def sum_axis(t: Tensor, dim: int, cell: int) -> Tensor:
    """Sums of runs of `cell` along an axis, the last one of what is left."""
    whole = t.shape[dim] // cell * cell
    parts = [t.narrow(dim, 0, whole).unflatten(dim, (-1, cell)).sum(dim + 1)] if whole else []
    if whole < t.shape[dim]:
        parts.append(t.narrow(dim, whole, t.shape[dim] - whole).sum(dim, keepdim=True))
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim)
