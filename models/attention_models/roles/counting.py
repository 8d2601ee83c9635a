"""A batch as it goes through a model's layers: weights a few rows at a time, and what layers have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.protocol.request import Cancelled, ShouldStop
from attention_models.protocol.values import SeenPicture, Site

# The share of each head's attention that lies on some cells, added up over rows and texts.
# For cells C(i) of query i and weights w, the score of a head is the mean over i of the sum over j in C(i) of w_ij.
# Only queries count to which some cell of theirs is visible, and which see more than one key: others have no choice. A
# head that attends evenly to the n keys it sees would score the mean of |C(i)| / n.


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


# How attention goes with distance: its mean at each, and how much of a map distance alone explains.


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


_WEIGHTS = 1 << 22  # of a layer that are held at once beside what is made of them

T = TypeVar("T")


def weights_of_rows(x: AttentionInputs, w: Tensor | None, should_stop: ShouldStop) -> Iterator[tuple[slice, Tensor]]:
    """Rows of `x`, a few at a time, and their weights (texts, heads, rows, keys), of `w` where that is not None.

    Raises:
        Cancelled: `should_stop()` was true between two of these.
    """
    step = max(1, _WEIGHTS // (x.query.shape[0] * x.heads * x.keys))
    for start in range(0, x.queries, step):
        if should_stop():
            raise Cancelled
        rows = slice(start, min(start + step, x.queries))
        yield rows, attention.weights(x, Part(None, rows)) if w is None else w[:, :, rows]


class OfMask(Generic[T]):
    """What is the same for every layer of a batch that is masked alike."""

    def __init__(self) -> None:
        # the mask is held, so that no other comes to have its id
        self._made: dict[tuple[str, int, bool], tuple[Tensor | None, T]] = {}

    def get_or_compute(self, site: Site, x: AttentionInputs, make: Callable[[], T]) -> T:
        """What was made for a layer that is masked as `site`, made where there was none."""
        key = (site.stack, id(x.mask), x.causal)
        if key not in self._made:
            self._made[key] = x.mask, make()
        return self._made[key][1]

    def of_rows(self, site: Site, x: AttentionInputs, rows: slice, make: Callable[[], T]) -> T:
        """As `get_or_compute`, for some rows: kept if they are all rows and the mask is not read off the weights."""
        return self.get_or_compute(site, x, make) if rows == slice(0, x.queries) and x.precomputed is None else make()

    def clear(self) -> None:
        """Another batch is run."""
        self._made.clear()
