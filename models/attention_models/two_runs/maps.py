"""Two heads and their difference, over the places in which their tokens are aligned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from attention_models.attention.inputs import AttentionInputs
from attention_models.attention.pooling import squares
from attention_models.protocol.arrays import read_only
from attention_models.protocol.two_runs import AlignedMaps
from attention_models.protocol.values import Tile, is_long, top_level
from attention_models.protocol.work import Cancelled, ShouldStop, never
from attention_models.two_runs.axes import Axes
from attention_models.two_runs.merging import PlacesOf, place_masked, place_weights

# Weights of a run held at once.
_BLOCK = 1 << 20

_Side = tuple[AttentionInputs, int, PlacesOf, PlacesOf]


def aligned_maps(
    a: tuple[AttentionInputs, int],
    b: tuple[AttentionInputs, int],
    axes: Axes,
    tile: Tile | None = None,
    should_stop: ShouldStop = never,
) -> AlignedMaps:
    """The weights of two heads, (what they depend on, head) each.

    Args:
        tile: the part that is wanted of a long map; ignored where it is not long.

    Raises:
        IndexError: the map has no such tile.
        Cancelled: `should_stop()` was true between two blocks.
    """
    down, across = len(axes[0]), len(axes[1])
    long = is_long(down, across)
    if not long:
        tile, rows, columns, cell = None, slice(0, down), slice(0, across), 1
    else:
        tile = tile or Tile(top_level(down, across), 0, 0)
        rows, columns, cell = tile.rows(down), tile.columns(across), tile.cell
        if min(tile.level, tile.row, tile.column) < 0 or rows.start >= rows.stop or columns.start >= columns.stop:
            raise IndexError(f"There is no {tile} in a map of {down} x {across} places.")
    step = max(cell, _BLOCK // across // cell * cell)
    sides = [(*a, PlacesOf(axes[0], "a"), PlacesOf(axes[1], "a")), (*b, PlacesOf(axes[0], "b"), PlacesOf(axes[1], "b"))]
    parts = []
    for first in range(rows.start, rows.stop, step):
        if should_stop():
            raise Cancelled
        parts.append(_block(sides, first, min(first + step, rows.stop), columns, cell))
    found = [read_only(np.concatenate(arrays)) for arrays in zip(*parts, strict=True)]
    difference = found[2]
    size = np.abs(np.where(np.isnan(difference), 0.0, difference))
    at = divmod(int(size.argmax()), size.shape[1])
    largest = float(size[at])
    place = (rows.start + at[0] * cell, columns.start + at[1] * cell)
    return AlignedMaps(
        a=found[0],
        b=found[1],
        difference=difference,
        masked_a=found[3],
        masked_b=found[4],
        largest=largest,
        largest_at=place if largest > 0 else None,
        tile=tile,
        cell=cell,
    )


@torch.no_grad()
def _block(sides: Sequence[_Side], first: int, end: int, columns: slice, cell: int) -> tuple[np.ndarray, ...]:
    """Both, their difference, and what is masked of either, of the query places from `first` to before `end`."""
    weights, masked = [], []
    for x, head, queries, keys in sides:
        there = (queries.counts[first:end, None] > 0) & (keys.counts[columns] > 0)
        w = place_weights(x, [head], queries, keys, first, end)[0].cpu()[:, columns]
        weights.append(torch.where(there, w, torch.nan))
        masked.append(place_masked(x, head, queries, keys, first, end)[:, columns] | ~there)
    difference = weights[0] - weights[1]
    if cell > 1:
        high, low = _largest(difference, cell), -_largest(-difference, cell)
        difference = torch.where(high.abs() >= low.abs(), high, low)
        weights = [_largest(w, cell) for w in weights]
        masked = [squares((~m).float()[None], cell, "max")[0] == 0 for m in masked]
    gone = [torch.isnan(w) for w in weights]
    hidden = [m & ~g for m, g in zip(masked, gone, strict=True)]
    return tuple(t.numpy() for t in (*weights, difference, *hidden))


def _largest(t: Tensor, cell: int) -> Tensor:
    """The largest number of each square; NaN of one that has none."""
    found = squares(torch.where(torch.isnan(t), -torch.inf, t)[None], cell, "max")[0]
    return torch.where(found == -torch.inf, torch.nan, found)
