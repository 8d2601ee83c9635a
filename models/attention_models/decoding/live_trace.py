"""What a run with a key/value cache has read, put together as the trace of one pass.

Each step ran one token more. Its query, its row of the mask, the residual stream and the logits at its place are what a
pass over the whole text would have there, to rounding; the keys and values of all tokens stand in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attention_models.attention.inputs import AttentionInputs
from attention_models.decoding.cached_run import CachedRun
from attention_models.forward.capture import Recorder
from attention_models.forward.logits import KEPT_BYTES
from attention_models.forward.model import Encoded
from attention_models.forward.origin import Origin
from attention_models.forward.trace import Trace
from attention_models.protocol.values import is_long


@dataclass(slots=True, eq=False)
class _Rows:
    """Of one attention site: what each token read so far gave to its rows."""

    query: Tensor  # (1, heads, tokens, head_dim)
    mask: Tensor | None  # (1, heads or 1, tokens, keys), as the steps had it; None where none had any
    bias: Tensor | None  # (1, heads or 1, tokens, keys)


class LiveTrace:
    """Follows one `CachedRun` of a single sequence: `add` after each of its steps, `trace` whenever it is wanted."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.tokens = 0
        """Tokens of the decoder whose rows are here."""
        self._rows: list[_Rows] = []
        self._last: Recorder | None = None
        self._residual: dict[str, list[Tensor]] = {}  # stack: (1, tokens, width) each
        self._logits: Tensor | None = None  # (tokens, vocabulary)

    def add(self, run: CachedRun) -> None:
        """Take in what `run` read last; nothing is left here where it does not go on from the rest."""
        if not self._takes(run):
            self._forget()
            return
        recorder, said = run.recorder, run.said
        assert recorder is not None
        assert said is not None
        past = recorder.past
        if past == 0:
            self._rows = [_Rows(x.query, x.mask, x.bias) for x in recorder.inputs]
            self._residual = {stack: list(stream) for stack, stream in recorder.residual.items()}
            self._logits = said[0]
        else:
            self._rows = [
                _Rows(
                    torch.cat([rows.query[:, :, :past], x.query], dim=2),
                    _longer(rows.mask, x.mask, past, x, causal=site.stack != "cross", hidden=True),
                    _longer(rows.bias, x.bias, past, x, causal=False, hidden=False),
                )
                for site, rows, x in zip(recorder.sites, self._rows, recorder.inputs, strict=True)
            ]
            for stack, stream in recorder.residual.items():
                before = self._residual[stack]
                self._residual[stack] = [
                    torch.cat([a[:, :past], b], dim=1) for a, b in zip(before, stream, strict=True)
                ]
            assert self._logits is not None
            self._logits = torch.cat([self._logits[:past], said[0]])
        self._last, self.tokens = recorder, past + said.shape[1]

    def _takes(self, run: CachedRun) -> bool:
        recorder, said = run.recorder, run.said
        if recorder is None or said is None or len(said) != 1 or run.model.info.weights_only or not run.keeps_every_key:
            return False
        past, tokens = recorder.past, run.read.shape[1]
        if past > self.tokens or past + said.shape[1] != tokens:  # rows of tokens in between are not known
            return False
        if said.shape[-1] * tokens * said.element_size() > KEPT_BYTES:  # a whole pass makes them when they are wanted
            return False
        return not any(is_long(tokens, x.keys) or x.precomputed is not None for x in recorder.inputs)

    def trace(self, run: CachedRun, encoded: Encoded, origin: Origin) -> Trace:
        """All that was read, as `encoded` says it in tokens."""
        assert self._last is not None
        sites, inputs = list(run.encoder.sites), list(run.encoder.inputs)
        for site, rows, x in zip(self._last.sites, self._rows, self._last.inputs, strict=True):
            is_cross = site.stack == "cross"
            causal = not is_cross and rows.mask is None and self.tokens > 1
            sites.append(replace(site, queries=self.tokens, keys=x.keys))
            inputs.append(replace(x, query=rows.query, mask=rows.mask, bias=rows.bias, causal=causal))
        residual = {stack: tuple(t[0] for t in stream) for stack, stream in self._residual.items()}
        encoder = {stack: tuple(t[0] for t in stream) for stack, stream in run.encoder.residual.items()}
        return Trace(
            tokens=encoded.tokens,
            source=encoded.source,
            sites=tuple(sites),
            inputs=tuple(inputs),
            residual={**encoder, **residual},
            interventions=run.interventions,
            output_logits=self._logits,
            origin=origin,
        )


def _longer(
    before: Tensor | None, now: Tensor | None, past: int, x: AttentionInputs, *, causal: bool, hidden: bool
) -> Tensor | None:
    """The rows of a mask (`hidden`) or a bias for all tokens: those `before`, cut to `past`, and those `now`.

    Both broadcast to (1, heads, rows, keys). To the earlier rows the newer keys are hidden. A step without a mask was
    `causal`, or saw all keys.
    """
    if before is None and now is None:
        return None
    like = now if now is not None else before
    assert like is not None
    closed: float | bool = 0.0
    if hidden:
        closed = False if like.dtype == torch.bool else torch.finfo(like.dtype).min
    parts = [
        _whole(before, past, 0, x.keys, like, closed, causal),
        _whole(now, x.queries, past, x.keys, like, closed, causal),
    ]
    heads = max(part.shape[1] for part in parts)
    return torch.cat([part.expand(-1, heads, -1, -1) for part in parts], dim=2)


def _whole(
    t: Tensor | None, rows: int, first: int, keys: int, like: Tensor, closed: float | bool, causal: bool
) -> Tensor:
    """(1, heads or 1, rows, keys) of `t`, filled up with `closed`; of None what a causal mask, or none, would say."""
    if t is None:
        opened = True if like.dtype == torch.bool else 0.0
        made = torch.full((1, 1, rows, keys), opened, dtype=like.dtype, device=like.device)
        if causal:
            places = torch.arange(first, first + rows, device=like.device)[:, None]
            made = made.masked_fill(torch.arange(keys, device=like.device) > places, closed)
        return made
    t = t[:, :, :rows].expand(-1, -1, rows, -1)
    if t.shape[-1] == 1:
        return t.expand(-1, -1, -1, keys)
    missing = keys - t.shape[-1]
    if missing <= 0:
        return t[..., :keys]
    return torch.cat([t, t.new_full((*t.shape[:-1], missing), closed)], dim=-1)
