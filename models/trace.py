"""What one run left behind, and every number that can be read from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from models import attention
from models.attention import AttentionInputs, PooledHeads, Pooling, Rows
from models.capture import never
from models.interventions import Intervention
from models.requests import Cancelled
from models.values import Site, SiteRef, Token

if TYPE_CHECKING:
    from models.capture import Recorder
    from models.model import Encoded, Model

SiteLike = Site | SiteRef | int | tuple[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Atlas:
    images: np.ndarray  # (sites, heads, rows, columns) float32, NaN where a site has fewer heads or tokens
    mean: np.ndarray  # (sites, rows, columns) float32
    row_error: float
    cell: int


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """One forward pass: tokens, sites, queries, keys, values, residual stream and logits.

    No weight is kept. Whatever is asked for is computed from the kept queries and keys: at 1,024 tokens of GPT-2
    small these take 108 MB, where all weights would take 576 MB.
    """

    tokens: tuple[Token, ...]  # of the stack that predicts
    source: tuple[Token, ...]  # of the encoder, in an encoder-decoder model; else empty
    sites: tuple[Site, ...]  # in the order in which they ran
    inputs: tuple[AttentionInputs, ...]  # one a site
    residual: dict[str, tuple[Tensor, ...]]  # stack: (embedding, after each block), each (tokens, width)
    interventions: tuple[Intervention, ...]  # what was changed in this run
    output_logits: Tensor | None  # (tokens, vocabulary) in the model's dtype; None for a model without them

    @classmethod
    def of(cls, model: Model, encoded: Encoded, recorder: Recorder, out: Any) -> Trace:
        logits = getattr(out, "logits", None)
        return cls(
            tokens=encoded.tokens,
            source=encoded.source,
            sites=tuple(recorder.sites),
            inputs=tuple(recorder.inputs),
            residual={stack: tuple(t[0] for t in stream) for stack, stream in recorder.residual.items()},
            interventions=recorder.interventions,
            output_logits=logits[0] if logits is not None else None,
        )

    @property
    def logits(self) -> np.ndarray:
        """(tokens, vocabulary) float32: what the model says at each position, before the softmax.

        Raises:
            ValueError: the model gives no logits (an encoder without a head).
        """
        if self.output_logits is None:
            raise ValueError("This model has no output head, so it gives no logits.")
        return _numpy(self.output_logits)

    def scores(self, site: SiteLike, head: int, rows: Rows = None) -> np.ndarray:
        """What enters the softmax before the mask: scaled, biased, soft-capped. (rows, keys) float32.

        Args:
            site: a `Site` of this trace, its index, or (stack, layer).
            head: counts from 0.
            rows: the queries wanted, as a slice or a list; all of them if None.

        Raises:
            IndexError: no such site or head.
        """
        x = self._inputs(site, head)
        return _numpy(attention.scores(x, [head], rows)[0, 0])

    def weights(self, site: SiteLike, head: int, rows: Rows = None) -> np.ndarray:
        """Attention weights, (rows, keys) float32: each row sums to 1, masked cells are exactly 0.

        Arguments and errors as in `scores`. Vaswani et al. 2017, equation 1, before the product with V.
        """
        x = self._inputs(site, head)
        return _numpy(attention.weights(x, [head], rows)[0, 0])

    def masked(self, site: SiteLike, head: int, rows: Rows = None) -> np.ndarray | None:
        """(rows, keys) bool, True where the key may not be looked at; None where every key may be."""
        x = self._inputs(site, head)
        shut = attention.blocked(x, [head], rows)
        if shut is None:
            return None
        count = x.queries if rows is None else torch.arange(x.queries)[rows].numel()
        array: np.ndarray = shut[0, 0].expand(count, x.keys).cpu().numpy()
        return array if array.any() else None

    def pooled(self, site: SiteLike, head: int, size: int, how: Pooling = "max") -> np.ndarray:
        """One head's weights in at most `size` x `size` pixels: (rows, columns) float32.

        Each pixel is the largest (or the mean) of a square of cells; all squares but the last ones have the same
        side, ceil(tokens / size). Where the weights fit into `size` they come as they are.
        """
        x = self._inputs(site, head)
        return _numpy(self._pooled(x, size, [head], how).images[0])

    def atlas(self, size: int, how: Pooling = "max") -> np.ndarray:
        """Every head of the model, pooled: (sites, heads, rows, columns) float32.

        Where sites differ in heads or tokens the array has room for the largest; what a site lacks is NaN.
        """
        return self.atlas_view(size, how).images

    def atlas_view(self, size: int, how: Pooling = "max", should_stop: Callable[[], bool] = never) -> Atlas:
        """`atlas` with the mean over heads and the rows' largest deviation from 1.

        Raises:
            Cancelled: `should_stop()` was true between two sites.
        """
        parts = []
        for x in self.inputs:
            if should_stop():
                raise Cancelled
            parts.append(self._pooled(x, size, None, how))
        heads, rows, columns = (max((part.images.shape[d] for part in parts), default=0) for d in range(3))
        images = np.full((len(parts), heads, rows, columns), np.nan, np.float32)
        mean = np.full((len(parts), rows, columns), np.nan, np.float32)
        for i, part in enumerate(parts):
            h, r, c = part.images.shape
            images[i, :h, :r, :c] = _numpy(part.images)
            mean[i, :r, :c] = _numpy(part.mean)
        row_error = max((part.row_error for part in parts), default=0.0)
        return Atlas(images, mean, row_error, max((part.cell for part in parts), default=1))

    def index(self, site: SiteLike) -> int:
        """The place of `site` in `sites`. Raises IndexError where there is none."""
        if isinstance(site, int):
            if -len(self.sites) <= site < len(self.sites):
                return site % len(self.sites)
        else:
            ref = SiteRef(*site) if isinstance(site, tuple) else site.ref if isinstance(site, Site) else site
            for i, candidate in enumerate(self.sites):
                if candidate.ref == ref:
                    return i
        raise IndexError(f"This run has no attention site {site}; it has {len(self.sites)} sites.")

    @property
    def nbytes(self) -> int:
        """Bytes of every tensor kept, shared ones counted once."""
        kept: dict[int, int] = {}
        for x in self.inputs:
            for t in (x.query, x.key, x.value, x.mask, x.bias, x.sinks, x.given):
                if t is not None:
                    kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        for t in (*(t for stream in self.residual.values() for t in stream), self.output_logits):
            if t is not None:
                kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return sum(kept.values())

    def _inputs(self, site: SiteLike, head: int) -> AttentionInputs:
        x = self.inputs[self.index(site)]
        if not 0 <= head < x.heads:
            raise IndexError(f"Head {head} does not exist: this layer has heads 0 to {x.heads - 1}.")
        return x

    @staticmethod
    @torch.no_grad()
    def _pooled(x: AttentionInputs, size: int, heads: list[int] | None, how: Pooling) -> PooledHeads:
        if size < 1:
            raise ValueError(f"A picture of {size} pixels has no room for any weight; ask for 1 or more.")
        return attention.pooled(x, size, heads, how)


def _numpy(t: Tensor) -> np.ndarray:
    array: np.ndarray = t.detach().float().cpu().numpy()
    return array
