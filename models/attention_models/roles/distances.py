"""How attention goes with distance: its mean at each, and how much of a map distance alone explains."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from attention_models.protocol.values import SeenPicture


class ClassedCells:
    """The cells of some rows that count, and the class of each: the same for all layers that are masked alike."""

    def __init__(self, visible: Tensor, real: Tensor, classes: Tensor) -> None:
        """What is visible (texts, heads or 1, rows, keys), which rows are no padding (texts, rows), and the class of
        each cell from 0, (rows, keys) long; cells of class -1 are left out."""
        seen = visible.any(dim=1)  # (texts, rows, keys)
        counted = ((seen.sum(dim=-1) > 1) & real)[..., None]
        self.factors = (seen & counted & (classes >= 0)).float()  # (texts, rows, keys)
        self.places = classes.flatten().clamp(min=0).cpu()
        most = int(self.places.max()) + 1
        of_each = self.factors.sum(dim=0).flatten().double().cpu()
        self.counts = torch.zeros(most, dtype=torch.double).index_add_(0, self.places, of_each).numpy()  # (classes,)


class ByDistance:
    """Weights of one site, added up by their distance class; only rows that see more than one key count.

    With v the visible cells of class d(v), the share of the map that distance explains is

        R^2 = 1 - sum_v (w_v - mean of class d(v))^2 / sum_v (w_v - mean of all)^2

    which is 1 for a head whose weights depend on distance alone, and 0 for one with which distance has nothing to do.
    """

    def __init__(self, heads: int, classes: int = 1, explains: bool = True) -> None:
        """Without `explains` there are means alone, and no `explained`."""
        self._explains = explains
        self.sums = np.zeros((heads, classes))
        self.counts = np.zeros(classes)
        self.squares = np.zeros(heads)

    def add(self, w: Tensor, cells: ClassedCells) -> None:
        """Weights of some rows, (texts, heads, rows, keys)."""
        heads, classes = w.shape[1], len(cells.counts)
        kept = w * cells.factors[:, None]
        if self._explains:
            self.squares += torch.einsum("bhqk,bhqk->h", kept, w).double().cpu().numpy()
        if classes > len(self.counts):
            more = classes - len(self.counts)
            self.sums, self.counts = np.pad(self.sums, ((0, 0), (0, more))), np.pad(self.counts, (0, more))
        summed = kept.sum(dim=0).flatten(1).double().cpu()  # (heads, rows * keys)
        sums = torch.zeros(heads, classes, dtype=torch.double).index_add_(1, cells.places, summed)
        self.sums[:, :classes] += sums.numpy()
        self.counts[:classes] += cells.counts

    @property
    def means(self) -> np.ndarray:
        """(heads, classes) float64, NaN of a class without cells."""
        there = self.counts > 0
        return np.divide(self.sums, self.counts, where=there, out=np.full_like(self.sums, np.nan))

    @property
    def explained(self) -> np.ndarray:
        """(heads,) R^2; NaN where the map is as even as can be, or there is none."""
        there = self.counts > 0
        cells = self.counts.sum()
        if not cells:
            return np.full(len(self.sums), np.nan)
        whole = self.sums.sum(axis=1) ** 2 / cells
        between = (self.sums[:, there] ** 2 / self.counts[there]).sum(axis=1) - whole
        total = self.squares - whole
        flat = total <= 1e-12 * np.maximum(self.squares, 1e-300)
        return np.where(flat, np.nan, np.clip(between / np.where(flat, 1.0, total), 0.0, 1.0))


def offsets(rows: slice, keys: slice, device: torch.device) -> Tensor:
    """Of each cell query - key as a class: 0, 1, 2 stand for 0, 1, -1, and so on. (rows, keys) long."""
    back = torch.arange(rows.start, rows.stop, device=device)[:, None] - torch.arange(
        keys.start, keys.stop, device=device
    )
    return torch.where(back > 0, 2 * back - 1, -2 * back)


def offset_of(place: int) -> int:
    """query - key of a class of `offsets`."""
    return (place + 1) // 2 if place % 2 else -place // 2


def patch_offsets(picture: SeenPicture, count: int, device: torch.device) -> Tensor:
    """As `offsets` in two dimensions: (tokens, tokens) long, -1 where one is no patch."""
    classes = torch.full((count, count), -1, dtype=torch.long, device=device)
    rows, columns, first = picture.rows, picture.columns, picture.first
    place = torch.arange(rows * columns, device=device)
    down, right = place // columns, place % columns
    apart_down = down[:, None] - down + rows - 1
    apart_right = right[:, None] - right + columns - 1
    last = first + rows * columns
    classes[first:last, first:last] = apart_down * (2 * columns - 1) + apart_right
    return classes
