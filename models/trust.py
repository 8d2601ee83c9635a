"""Holds a run against transformers' own eager attention, layer by layer.

Eager attention holds every weight of a layer: at 4,096 tokens of GPT-2 small 0.8 GB, twice. A long text is therefore
run once more through transformers' own fused kernel, and in every layer some rows, spread over the text, are computed
by the model's own eager function: their weights are compared, and their outputs are what the next layer is given.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from models import attention
from models.adopted import PlainModel
from models.attention import AttentionInputs
from models.capture import IMPLEMENTATION, Recorder, never
from models.errors import ExplorerError
from models.given import keep_given
from models.model import Encoded, Model
from models.requests import Cancelled
from models.results import EAGER
from models.trace import Trace
from models.values import TOLERANCES

OWN = "torch's own attention, and its weights computed anew in float64"


@dataclass(frozen=True, slots=True)
class Comparison:
    logit_difference: float  # largest |ours - eager|, relative to the largest |logit| where that exceeds 1
    weight_difference: float  # largest |ours - eager| over every weight of every head; inf where some were not seen
    tolerance: float
    rows: int = 0  # of a long text: how many queries of every head were compared; 0 where all were
    against: str = EAGER


@torch.no_grad()
def compare_with_eager(
    model: Model, encoded: Encoded, trace: Trace, should_stop: Callable[[], bool] = never
) -> Comparison:
    """Run the same module once more with transformers' eager attention, and measure how far `trace` is from it.

    The eager weights are compared and let go one layer at a time, so that no more than one layer's is ever held.

    Raises:
        Cancelled: `should_stop()` was true between two layers.
    """
    if isinstance(model, PlainModel):
        return _compare_with_torch(model, encoded, trace, should_stop)
    if model.info.weights_only:
        return _compare_with_itself(model, encoded, trace)
    if any(site.is_long for site in trace.sites):
        return _compare_rows(model, encoded, trace, should_stop)
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


def _compare_with_torch(
    model: PlainModel, encoded: Encoded, trace: Trace, should_stop: Callable[[], bool]
) -> Comparison:
    """For a module of one's own, which has no other attention than torch's: without any of this program's functions."""
    difference = _logit_difference(SimpleNamespace(logits=model.own_logits(encoded.inputs["input_ids"])), trace)
    worst = 0.0
    for x in trace.inputs:
        for head in range(x.heads):
            if should_stop():
                raise Cancelled
            worst = max(worst, _largest(_weights_in_double(x, head) - attention.weights(x, [head])[0, 0].double()))
    return Comparison(difference, worst if trace.inputs else math.inf, _tolerance(model), against=OWN)


def _weights_in_double(x: AttentionInputs, head: int) -> Tensor:
    """Vaswani et al. 2017, equation 1, for one head: (queries, keys) float64."""
    scores = x.query[0, head].double() @ x.key[0, head // x.group].double().mT * x.scale
    if x.bias is not None:
        scores += x.bias.expand(1, x.heads, -1, -1)[0, head]
    if x.mask is not None:
        mask = x.mask.expand(1, x.heads, *x.mask.shape[2:])[0, head]
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask.double()
    if x.causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -math.inf)
    return torch.softmax(scores, dim=-1).nan_to_num(0.0)  # a row that may look at nothing


def _tolerance(model: Model) -> float:
    return TOLERANCES[model.dtype_name]


def _logit_difference(out: Any, trace: Trace) -> float:
    logits = getattr(out, "logits", None)
    if logits is None or not trace.has_logits:
        return 0.0
    kept = trace.output_logits
    return _relative(logits[0], trace.logits_at(range(len(trace.tokens))) if kept is None else kept)


# Rows of every head that are compared in a long text.
ROWS = 64

_SAMPLING = f"{IMPLEMENTATION}_sampling"
_active = threading.local()


@dataclass(slots=True, eq=False)
class _Sampler:
    """Compares some rows of each layer while a pass runs."""

    trace: Trace
    should_stop: Callable[[], bool]
    by_module: dict[str, list[int]]  # the sites of a module, in the order in which it runs
    names: Mapping[nn.Module, str]
    worst: dict[int, float] = field(default_factory=dict)

    def rows(self, queries: int) -> list[int]:
        return sorted({round(i * (queries - 1) / (ROWS - 1)) for i in range(ROWS)})

    def attend(
        self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **options: Any
    ) -> tuple[Tensor, None]:
        if self.should_stop():
            raise Cancelled
        eager: Any = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
        # what the fused kernel cannot do is done by the eager function too, some rows at a time
        fuses = all(options.get(name) is None for name in ("softcap", "s_aux", "position_bias"))
        if eager is None:
            raise ExplorerError("This model has no eager attention of its own to compare a long text with.")
        queries = query.shape[2]
        rows = self.rows(queries)
        if fuses:
            output = sdpa_attention_forward(module, query, key, value, mask, **options)[0]  # (1, queries, heads, dim)
        else:
            blocks = [list(range(i, min(i + ROWS, queries))) for i in range(0, queries, ROWS)]
            output = torch.cat([_some(eager, module, query, key, value, mask, b, options)[0] for b in blocks], dim=1)
        part, weights = _some(eager, module, query, key, value, mask, rows, options)
        site = self.by_module[self.names[module]].pop(0)
        x = self.trace.inputs[site]
        self.worst[site] = max(
            _largest(weights[0, head].float() - attention.weights(x, [head], rows)[0, 0]) for head in range(x.heads)
        )
        if fuses:
            output[:, rows] = part.to(output.dtype)
        return output, None


def _some(
    eager: Any,
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    rows: list[int],
    options: dict[str, Any],
) -> tuple[Tensor, Tensor]:
    """Output (1, rows, heads, value_dim) and weights (1, heads, rows, keys) of some queries, by a model's own code."""
    if mask is None:
        later = torch.arange(key.shape[2], device=query.device) > torch.tensor(rows, device=query.device)[:, None]
        is_causal = options.get("is_causal")
        is_causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
        allowed = ~later[None, None] if is_causal else torch.ones_like(later)[None, None]
    else:
        allowed = mask if mask.shape[2] == 1 else mask[:, :, rows]
    if allowed.dtype == torch.bool:
        lowest = torch.finfo(query.dtype).min
        allowed = torch.zeros(allowed.shape, dtype=query.dtype, device=query.device).masked_fill(~allowed, lowest)
    bias = options.get("position_bias")
    if bias is not None and bias.shape[2] != 1:
        options = {**options, "position_bias": bias[:, :, rows]}
    output, weights = eager(module, query[:, :, rows], key, value, allowed, **options)
    return output, weights


def _sampling_forward(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    sampler: _Sampler = _active.sampler
    return sampler.attend(module, query, key, value, attention_mask, **options)


AttentionInterface.register(_SAMPLING, _sampling_forward)
AttentionMaskInterface.register(_SAMPLING, sdpa_mask)


def _compare_rows(model: Model, encoded: Encoded, trace: Trace, should_stop: Callable[[], bool]) -> Comparison:
    by_module: dict[str, list[int]] = {}
    for i, site in enumerate(trace.sites):
        by_module.setdefault(site.module, []).append(i)
    sampler = _Sampler(trace, should_stop, by_module, model.module_names)
    rows = sampler.rows(len(trace.tokens))
    inputs = encoded.inputs
    if model.accepts("logits_to_keep"):
        inputs = {**inputs, "logits_to_keep": torch.tensor(rows, device=model.device)}
    module: Any = model.module
    _active.sampler = sampler
    try:
        module.set_attn_implementation(_SAMPLING)
        out = model.forward(inputs)
    finally:
        module.set_attn_implementation(IMPLEMENTATION)
        _active.sampler = None
    logits = getattr(out, "logits", None)
    difference = 0.0
    if logits is not None and trace.has_logits:
        theirs = logits[0] if "logits_to_keep" in inputs else logits[0, rows]
        difference = _relative(theirs, trace.logits_at(rows))
    weights = max(sampler.worst.values(), default=0.0) if len(sampler.worst) == len(trace.sites) else math.inf
    return Comparison(difference, weights, _tolerance(model), len(rows))


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


def _relative(theirs: Tensor, ours: Tensor) -> float:
    """Largest difference of logits, relative to the largest of them where that exceeds 1."""
    size = max(1.0, float(theirs.abs().max()))
    return _largest(theirs.float() - ours.float()) / size if math.isfinite(size) else math.inf


def _largest(difference: Tensor) -> float:
    """Largest absolute value; a NaN on either side counts as infinitely far."""
    value = float(difference.abs().max())
    return math.inf if math.isnan(value) else value
