"""A batch as it goes through a model's layers: weights a few rows at a time, and what layers have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.protocol.values import Site
from attention_models.protocol.work import Cancelled, ShouldStop

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
