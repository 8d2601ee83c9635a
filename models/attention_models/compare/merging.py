"""Weights between tokens as weights between the places that they are aligned in.

Of several tokens in a place, weights from them are averaged and weights to them summed, as of words elsewhere. A place
of one token keeps its very numbers.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.protocol.two_runs import AlignedAxis

Side = Literal["a", "b"]


class PlacesOf:
    """The tokens of one run in the places of an axis."""

    def __init__(self, axis: AlignedAxis, side: Side) -> None:
        spans = [getattr(place, side) for place in axis.places]
        self.first = torch.tensor([first for first, _ in spans])  # (places,)
        self.end = torch.tensor([end for _, end in spans])  # (places,) behind the last
        self.counts = self.end - self.first  # (places,) tokens in each; 0 where this run has none
        self.of_token = torch.repeat_interleave(torch.arange(len(spans)), self.counts)  # (tokens,)

    def tokens(self, first: int, end: int) -> slice:
        """Those of the places from `first` to before `end`: neighbours, as places are in order."""
        return slice(int(self.first[first]), int(self.end[end - 1]))


def place_weights(
    x: AttentionInputs, heads: list[int] | None, queries: PlacesOf, keys: PlacesOf, first: int, end: int
) -> Tensor:
    """Weights of the query places from `first` to before `end` for all key places: (heads, places, key places) float32.

    0 where this run has no tokens.
    """
    count = x.heads if heads is None else len(heads)
    rows = queries.tokens(first, end)
    if rows.start == rows.stop:
        return torch.zeros(count, end - first, len(keys.counts), device=x.query.device)
    w = attention.weights(x, Part(heads, rows))[0].float()  # (heads, rows, keys)
    return mean_rows(summed_keys(w, keys), queries.of_token[rows] - first, end - first)


def summed_keys(w: Tensor, keys: PlacesOf) -> Tensor:
    """(..., keys) to (..., key places)."""
    out = w.new_zeros(*w.shape[:-1], len(keys.counts))
    return out.index_add_(-1, keys.of_token.to(w.device), w)


def mean_rows(w: Tensor, place: Tensor, places: int) -> Tensor:
    """(heads, rows, key places) to (heads, places, key places); `place` (rows,) says of each row which it is of."""
    counts = torch.bincount(place, minlength=places).clamp(min=1).to(w.device, w.dtype)
    summed = w.new_zeros(w.shape[0], places, w.shape[2]).index_add_(1, place.to(w.device), w)
    return summed / counts[:, None]


def place_masked(x: AttentionInputs, head: int, queries: PlacesOf, keys: PlacesOf, first: int, end: int) -> Tensor:
    """Whether every token of a place is masked for all those of the other, (places, key places) bool.

    False where this run has no tokens.
    """
    out = torch.zeros(end - first, len(keys.counts), dtype=torch.bool)
    rows = queries.tokens(first, end)
    if rows.start == rows.stop:
        return out
    masked = attention.masked_cells(x, Part([head], rows))
    if masked is None:
        return out
    seen = (~masked).expand(1, 1, rows.stop - rows.start, x.keys)[0].float().cpu()
    there = (queries.counts[first:end, None] > 0) & (keys.counts > 0)
    merged = mean_rows(summed_keys(seen, keys), queries.of_token[rows] - first, end - first)[0]
    return (merged == 0) & there
