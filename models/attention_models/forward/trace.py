"""What one run left behind, and every number that can be read from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.atlas import Atlas, IncrementalAtlas
from attention_models.attention.inputs import AttentionInputs, Part, Rows, texts_inputs
from attention_models.attention.masks import held
from attention_models.attention.numbers import to_numpy
from attention_models.attention.pooling import pooled
from attention_models.forward.class_logits import pair_logits_of
from attention_models.forward.logits import LaterLogits
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.request import never
from attention_models.protocol.values import Pooling, SeenPicture, Site, SiteRef, Token

if TYPE_CHECKING:
    from attention_models.forward.capture import Recorder
    from attention_models.forward.model import Encoded
    from attention_models.forward.origin import Origin

_LOGIT_ROWS = 256  # positions whose logits are held at once

SiteLike = Site | SiteRef | int | tuple[str, int]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trace:
    """One forward pass: tokens, sites, queries, keys, values, residual stream and logits.

    No weight is kept. Whatever is asked for is computed from the kept queries and keys: at 1,024 tokens of GPT-2
    small these take 108 MB, where all weights would take 576 MB. Of a long text no logits are kept either.
    """

    tokens: tuple[Token, ...]  # of the stack that predicts
    source: tuple[Token, ...]  # of the encoder, in an encoder-decoder model; else empty
    sites: tuple[Site, ...]  # in the order in which they ran
    inputs: tuple[AttentionInputs, ...]  # one a site
    residual: dict[str, tuple[Tensor, ...]]  # stack: (embedding, after each block), each (tokens, width)
    interventions: tuple[Intervention, ...]  # what was changed in this run
    output_logits: Tensor | None  # (tokens, vocabulary) in the model's dtype; None where there are none to keep
    later_logits: LaterLogits | None = None  # of a long text: what makes them where they are looked at
    picture: SeenPicture | None = None  # what a vision model looked at
    origin: Origin | None = None  # which checkpoint and input it is of
    last_hidden: Tensor | None = None  # (tokens, width) of a model without an output head: what it gives
    pair_logits: Tensor | None = None  # (2,) of a second head, which says something of two texts together

    @classmethod
    def of(
        cls,
        encoded: Encoded,
        recorder: Recorder,
        out: Any,
        later: LaterLogits | None = None,
        origin: Origin | None = None,
    ) -> Trace:
        """Of a batch, that of the text `encoded`: nothing is copied."""
        logits = getattr(out, "logits", None) if later is None else None
        states = getattr(out, "last_hidden_state", None) if logits is None and later is None else None
        batch, row = next(iter(encoded.inputs.values())).shape[0], encoded.row
        return cls(
            tokens=encoded.tokens,
            source=encoded.source,
            sites=tuple(recorder.sites),
            inputs=tuple(recorder.inputs if batch == 1 else texts_inputs(recorder.inputs, row)),
            residual={stack: tuple(t[row] for t in stream) for stack, stream in recorder.residual.items()},
            interventions=recorder.interventions,
            output_logits=logits[row] if logits is not None else None,
            later_logits=later if later is None or batch == 1 else later.of_text(row),
            picture=encoded.picture,
            origin=origin,
            last_hidden=None if states is None else states[row],
            pair_logits=_pair_logits(encoded, out),
        )

    def __repr__(self) -> str:
        """Whose run it is, and what it holds: what stands in it would take pages."""
        name = "" if self.origin is None else f"{self.origin.info.name}: "
        read = f"{len(self.source):,} tokens read, " if self.source else ""
        counts = f"{read}{len(self.tokens):,} tokens, {len(self.sites)} attention sites"
        return f"<Trace of {name}{counts}, {'with' if self.has_logits else 'no'} logits>"

    @property
    def last(self) -> int:
        """The position of the last token that is no padding: where a model goes on."""
        return max((i for i, token in enumerate(self.tokens) if not token.padding), default=len(self.tokens) - 1)

    @property
    def has_logits(self) -> bool:
        """Whether the model says a token at each position: not where it is an encoder without a head."""
        return self.output_logits is not None or self.later_logits is not None

    def logits_at(self, rows: Sequence[int]) -> Tensor:
        """What the model says at some positions, before the softmax: (rows, vocabulary), in the model's dtype.

        Raises:
            ValueError: the model gives no logits.
        """
        if self.later_logits is not None:
            return self.later_logits.at(list(rows))
        if self.output_logits is None:
            raise ValueError(
                "This model has no output head, so it gives no logits. What it gives at each token is `last_hidden`."
            )
        return self.output_logits[list(rows)]

    def logit_blocks(self) -> Iterator[tuple[list[int], Tensor]]:
        """Every position's logits, some positions at a time: 64 MB of float32 for a vocabulary of 50,000."""
        for start in range(0, len(self.tokens), _LOGIT_ROWS):
            rows = list(range(start, min(start + _LOGIT_ROWS, len(self.tokens))))
            yield rows, self.logits_at(rows)

    @property
    def logits(self) -> np.ndarray:
        """(tokens, vocabulary) float32: what the model says at each position, before the softmax.

        Raises:
            ValueError: the model gives no logits (an encoder without a head).
        """
        return to_numpy(self.logits_at(range(len(self.tokens))) if self.output_logits is None else self.output_logits)

    def scores(self, site: SiteLike, head: int, rows: Rows = None) -> np.ndarray:
        """What enters the softmax before the mask: scaled, biased, soft-capped. (rows, keys) float32.

        Args:
            site: a `Site` of this trace, its index, or (stack, layer).
            head: counts from 0.
            rows: the queries wanted, as a slice or a list; all of them if None.

        Raises:
            IndexError: no such site or head.
        """
        x = self.at(site, head)
        return to_numpy(attention.scores(x, Part([head], rows))[0, 0])

    def weights(self, site: SiteLike, head: int, rows: Rows = None) -> np.ndarray:
        """Attention weights, (rows, keys) float32: each row sums to 1, masked cells are exactly 0.

        Arguments and errors as in `scores`. Vaswani et al. 2017, equation 1, before the product with V.
        """
        x = self.at(site, head)
        return to_numpy(attention.weights(x, Part([head], rows))[0, 0])

    def masked(self, site: SiteLike, head: int, rows: Rows = None) -> np.ndarray | None:
        """(rows, keys) bool, True where the key is masked; None where none is."""
        x = self.at(site, head)
        masked = attention.masked_cells(x, Part([head], rows))
        if masked is None:
            return None
        count = x.queries if rows is None else torch.arange(x.queries)[rows].numel()
        array: np.ndarray = masked[0, 0].expand(count, x.keys).cpu().numpy()
        return array if array.any() else None

    def pooled(self, site: SiteLike, head: int, size: int, how: Pooling = "max") -> np.ndarray:
        """One head's weights in at most `size` x `size` pixels: (rows, columns) float32.

        Each pixel is the largest (or the mean) of a square of cells; all squares but the last ones have the same
        side, ceil(tokens / size). Where the weights fit into `size` they come as they are.
        """
        x = self.at(site, head)
        return to_numpy(pooled(x, size, [head], how).images[0])

    def atlas(self, size: int, how: Pooling = "max") -> np.ndarray:
        """Every head of the model, pooled: (sites, heads, rows, columns) float32.

        Where sites differ in heads or tokens the array has room for the largest; what a site lacks is NaN.
        """
        return self.atlas_view(size, how).images

    def atlas_view(self, size: int, how: Pooling = "max", should_stop: Callable[[], bool] = never) -> Atlas:
        """`atlas` with the mean over heads and the rows' largest deviation from 1.

        Raises:
            Cancelled: `should_stop()` was true between two blocks of rows.
        """
        parts = IncrementalAtlas(self.inputs, size, how)
        parts.advance(should_stop=should_stop)
        return parts.picture()

    def at(self, site: SiteLike, head: int) -> AttentionInputs:
        """What the weights of `head` depend on. Raises IndexError where there is no such site or head."""
        x = self.inputs[self.index(site)]
        if not 0 <= head < x.heads:
            raise IndexError(f"Head {head} does not exist: this layer has heads 0 to {x.heads - 1}.")
        return x

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
        last = None if self.later_logits is None else self.later_logits.hidden
        given = (self.output_logits, last, self.last_hidden)
        tensors = [*(t for stream in self.residual.values() for t in stream), *given]
        for x in self.inputs:
            tensors += [x.query, x.key, x.value, x.bias, x.sinks, x.precomputed, *held(x.mask)]
        storages = (t.untyped_storage() for t in tensors if t is not None)
        return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


def _pair_logits(encoded: Encoded, out: Any) -> Tensor | None:
    """What is said of two texts together; of one text alone it would mean nothing."""
    logits = pair_logits_of(out)
    has_two = any(token.segment == 1 for token in encoded.tokens)
    return logits[encoded.row] if logits is not None and has_two else None
