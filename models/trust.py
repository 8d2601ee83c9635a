"""Holds a run against transformers' own eager attention, layer by layer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from models import attention
from models.capture import IMPLEMENTATION, Recorder, never
from models.given import keep_given
from models.model import Encoded, Model
from models.requests import Cancelled
from models.trace import Trace
from models.values import TOLERANCES


@dataclass(frozen=True, slots=True)
class Comparison:
    logit_difference: float  # largest |ours - eager|, relative to the largest |logit| where that exceeds 1
    weight_difference: float  # largest |ours - eager| over every weight of every head; inf where some were not seen
    tolerance: float


@torch.no_grad()
def compare_with_eager(
    model: Model, encoded: Encoded, trace: Trace, should_stop: Callable[[], bool] = never
) -> Comparison:
    """Run the same module once more with transformers' eager attention, and measure how far `trace` is from it.

    The eager weights are compared and let go one layer at a time, so that no more than one layer's is ever held.

    Raises:
        Cancelled: `should_stop()` was true between two layers.
    """
    if model.info.weights_only:
        return _compare_with_itself(model, encoded, trace)
    worst: dict[int, float] = {}  # largest difference at each site
    by_module: dict[str, list[int]] = {}
    for i, site in enumerate(trace.sites):
        by_module.setdefault(site.module, []).append(i)
    handles = [
        child.register_forward_hook(_weights_hook(by_module[name], trace, worst, should_stop))
        for child, name in model.module_names.items()
        if name in by_module
    ]
    module: Any = model.module
    try:
        module.set_attn_implementation("eager")
        out = module(**encoded.inputs, **model.forward_options)
    finally:
        module.set_attn_implementation(IMPLEMENTATION)
        for handle in handles:
            handle.remove()
    # what was not seen is not vouched for
    weights = max(worst.values(), default=0.0) if len(worst) == len(trace.sites) else math.inf
    return Comparison(_logit_difference(out, trace), weights, _tolerance(model))


def _compare_with_itself(model: Model, encoded: Encoded, trace: Trace) -> Comparison:
    """For weights that the model gave: its logits where it is asked for no weights, and weights given once more."""
    options = {**model.forward_options, "output_attentions": False}
    difference = _logit_difference(model.module(**encoded.inputs, **options), trace)
    again = Recorder(model.module_names, model.seq2seq)
    keep_given(model, again, model.forward(encoded.inputs), len(encoded.tokens))
    weights = max(
        (
            _largest(attention.weights(now) - attention.weights(x))
            for now, x in zip(again.inputs, trace.inputs, strict=True)
        ),
        default=math.inf,
    )
    return Comparison(difference, weights, _tolerance(model))


def _tolerance(model: Model) -> float:
    return TOLERANCES[str(model.dtype).removeprefix("torch.")]


def _logit_difference(out: Any, trace: Trace) -> float:
    logits = getattr(out, "logits", None)
    if logits is None or trace.output_logits is None:
        return 0.0
    size = max(1.0, float(logits.abs().max()))
    difference = _largest(logits[0].float() - trace.output_logits.float())
    return difference / size if math.isfinite(size) else math.inf


def _weights_hook(
    sites: list[int], trace: Trace, worst: dict[int, float], should_stop: Callable[[], bool]
) -> Callable[..., None]:
    calls = iter(sites)  # a module that runs many times (ALBERT) has one site for each

    def hook(_module: nn.Module, _args: Any, out: Any) -> None:
        if should_stop():
            raise Cancelled
        site = next(calls)
        x = trace.inputs[site]
        shape = (x.heads, x.queries, x.keys)
        # from the end: T5 gives its position bias, of the same shape, before the weights
        for part in reversed(out if isinstance(out, tuple) else ()):
            if isinstance(part, Tensor) and part.dim() == 4 and part.shape[1:] == shape:
                worst[site] = max(
                    _largest(part[0, head].float() - attention.weights(x, [head])[0, 0]) for head in range(x.heads)
                )
                return

    return hook


def _largest(difference: Tensor) -> float:
    """Largest absolute value; a NaN on either side counts as infinitely far."""
    value = float(difference.abs().max())
    return math.inf if math.isnan(value) else value
