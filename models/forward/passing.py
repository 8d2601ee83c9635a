"""A batch of texts run for its attention weights alone: each layer's are handed on as they are made, and none is kept.

Where a run that is looked at keeps queries, keys, values, residual stream and logits, this keeps nothing, so that a
thousand texts take the room of one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from models.attention import attention
from models.attention import output as mixing
from models.attention.inputs import WHOLE, AttentionInputs
from models.forward.batches import real_keys
from models.forward.capture import Recorder, recording
from models.forward.model import Encoded, Model
from models.forward.output_weights import keep_output_weights
from models.protocol.values import Site
from models.protocol.work import Cancelled, ShouldStop, never

_WHOLE = 1 << 24
"""Weights of one layer that are held at once (64 MB)."""

See = Callable[[Site, AttentionInputs, Tensor | None], None]
"""Given a site of the batch, what its weights depend on, and the weights (texts, heads, queries, keys) float32.

None in their place where they are too many to be held at once: they are made from the rest, a part at a time. Nothing
of it may be kept.
"""


class PassingRecorder(Recorder):
    """Edits as a `Recorder` does, and keeps nothing."""

    def keep(self, module: Any, x: AttentionInputs, stack: str = "") -> AttentionInputs:
        kept = super().keep(module, x, stack)
        self.inputs.clear()
        return kept

    def keep_residual(self, stack: str, before: Tensor | None, after: Tensor) -> None:
        """Nothing is kept."""


@dataclass(slots=True, eq=False)
class _Seeing(PassingRecorder):
    """Hands on what a site was given."""

    see: See = lambda _site, _x, _w: None

    def mix(self, x: AttentionInputs) -> Tensor:
        if self.should_stop():
            raise Cancelled
        site = self.sites[-1]
        if x.query.shape[0] * x.heads * x.queries * x.keys > _WHOLE:
            self.see(site, x, None)
            return mixing.output(x)
        w = attention.weights(x)
        self.see(site, x, w)
        return torch.matmul(w.to(x.value.dtype), WHOLE.take_keys(x.value, x.heads))


@torch.no_grad()
def run_passing(model: Model, encoded: Sequence[Encoded], see: See, should_stop: ShouldStop = never) -> None:
    """Run texts that share their inputs (`models.forward.batches.joined`), or one alone.

    Raises:
        Cancelled: `should_stop()` was true between two layers.
    """
    shared = encoded[0].inputs
    real = real_keys(model, shared) if len(encoded) > 1 else {}
    recorder = _Seeing(model.module_names, model.seq2seq, should_stop, real=real, see=see)
    few: dict[str, Any] = {"logits_to_keep": 1} if model.accepts("logits_to_keep") else {}
    with recording(recorder):
        out = model.forward({**shared, **few})
        if model.info.weights_only:
            keep_output_weights(model, recorder, out, len(encoded[0].tokens))
    if model.info.weights_only or model.info.textbook:  # these mix by themselves: what they gave is all here
        for site, x in zip(recorder.sites, recorder.inputs, strict=True):
            see(site, x, attention.weights(x))
