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

from attention_models.attention import attention
from attention_models.attention import output as mixing
from attention_models.attention.inputs import WHOLE, AttentionInputs
from attention_models.forward.batches import real_keys
from attention_models.forward.capture import PassingRecorder
from attention_models.forward.intervened import intervened
from attention_models.forward.model import Encoded, Model
from attention_models.forward.output_weights import check_edits, keep_output_weights
from attention_models.protocol.interventions import Intervention, check
from attention_models.protocol.request import Cancelled, ShouldStop, never
from attention_models.protocol.values import Site

_WHOLE = 1 << 24
"""Weights of one layer that are held at once (64 MB)."""

See = Callable[[Site, AttentionInputs, Tensor | None], None]
"""Given a site of the batch, what its weights depend on, and the weights (texts, heads, queries, keys) float32.

None in their place where they are too many to be held at once: they are made from the rest, a part at a time. Nothing
of it may be kept.
"""


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
            return self._edited(site, x, mixing.output(x))
        w = attention.weights(x)
        self.see(site, x, w)
        return self._edited(site, x, torch.matmul(w.to(x.value.dtype), WHOLE.take_keys(x.value, x.heads)))

    def _edited(self, site: Site, x: AttentionInputs, out: Tensor) -> Tensor:
        for edit in self.mix_edits:
            out = edit(site, x, out)
        return out


@torch.no_grad()
def run_passing(
    model: Model,
    encoded: Sequence[Encoded],
    see: See,
    should_stop: ShouldStop = never,
    interventions: tuple[Intervention, ...] = (),
) -> None:
    """Run texts that share their inputs (`attention_models.forward.batches.joined`), or one alone.

    Raises:
        InputError: an intervention does not fit the model or these texts.
        ValueError: one is of a layer or head that there is not, or cannot be made in this model.
        Cancelled: `should_stop()` was true between two layers.
    """
    shared = encoded[0].inputs
    real = real_keys(model, shared) if len(encoded) > 1 else {}
    check_edits(model, interventions)
    recorder = _Seeing(model.module_names, model.seq2seq, should_stop, interventions, real=real, see=see)
    few: dict[str, Any] = {"logits_to_keep": 1} if model.accepts("logits_to_keep") else {}
    with intervened(model, shared, recorder) as inputs:
        out = model.forward({**inputs, **few})
        if model.info.weights_only:
            keep_output_weights(model, recorder, out, len(encoded[0].tokens))
    check(interventions, recorder.sites)
    if model.info.weights_only or model.info.textbook:  # these mix by themselves: what they gave is all here
        for site, x in zip(recorder.sites, recorder.inputs, strict=True):
            see(site, x, attention.weights(x))
