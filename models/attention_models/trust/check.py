"""Holds a run against transformers' own eager attention, layer by layer.

Eager attention holds every weight of a layer: at 4,096 tokens of GPT-2 small 0.8 GB, twice. A long text is therefore
run once more through transformers' own fused kernel, and in every layer some rows, spread over the text, are computed
by the model's own eager function: their weights are compared, and their outputs are what the next layer is given.

In half precision two runs of one model part by rounding, more so from layer to layer and with the size of the scores,
and no tolerance tells that from an error. There each layer is held by itself against the model's own eager function,
which is given the queries, keys and values that the run had in this layer. In float32 our weights must equal its own
to the 1e-5 of any run, or, of scores beyond 80, to what float32 itself rounds away. In the model's format its weights
must be off from these by no more than rounding explains, and so must the outputs that our run went on with
(`attention_models.attention.rounding`). That the next layer had what follows from them is seen too: so a run that is
right in each layer is right as a whole. It is done in float32 as well where a text is long enough for the fused kernel
and scores are so large (T5's) that its rounding adds up to more than 1e-5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from attention_models.attention import attention
from attention_models.attention.inputs import AttentionInputs, Part, texts_inputs
from attention_models.forward.adopted import PlainModel
from attention_models.forward.batches import Targets, targets_of
from attention_models.forward.capture import IMPLEMENTATION, Recorder
from attention_models.forward.class_logits import logits_of, pair_logits_of
from attention_models.forward.model import Encoded, Model
from attention_models.forward.output_weights import keep_output_weights
from attention_models.forward.run import run
from attention_models.forward.trace import Trace
from attention_models.protocol.batch import Batch
from attention_models.protocol.request import Cancelled, never
from attention_models.protocol.trust import EAGER, AloneReport
from attention_models.protocol.values import COARSE, LARGEST_WHOLE, TOLERANCE, UNIT_ROUNDOFFS, site_tokens
from attention_models.trust.layers import (
    LayerwiseCheck,
    Sampler,
    Sites,
    answering,
    largest,
    largest_of_rows,
    padding_rows,
    sampled_rows,
)

# Beyond EXACT_KEYS the fused kernel rounds in another order than eager attention does. By what of the end-to-end
# difference this may be the reason, if each layer by itself shows no other: 2e-4 was seen where scores are 140.
_ADDED_UP = 1e-3

_HIDDEN_ROUNDING = 64  # unit roundoffs by which scores part that were added in another order: 33 were seen

OWN = "torch's own attention, and its weights computed again in float64"


@dataclass(frozen=True, slots=True)
class Comparison:
    logit_difference: float  # largest |ours - eager|, relative to the largest |logit| where that exceeds 1
    weight_difference: float  # largest |ours - eager| over every weight of every head; inf where some were not seen
    tolerance: float = TOLERANCE  # of weights
    logit_tolerance: float = TOLERANCE
    rows: int = 0  # of a long text: how many queries of every head were compared; 0 where all were
    against: str = EAGER
    rounding: float | None = (
        None  # where each layer was compared by itself: the largest share of what rounding explains
    )
    end_to_end: float | None = None  # in float32: what rounding added up to, where that is more than is allowed


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
    if model.dtype_name in COARSE:
        return _compare_beside(model, encoded, trace, should_stop)
    long = any(site.is_long for site in trace.sites)
    found = (_compare_rows if long else _compare_whole)(model, encoded, trace, should_stop)
    apart = max(found.logit_difference, found.weight_difference)
    if TOLERANCE < apart <= _ADDED_UP and any(x.keys > attention.EXACT_KEYS for x in trace.inputs):
        return replace(_compare_beside(model, encoded, trace, should_stop), end_to_end=apart)
    return found


@torch.no_grad()
def compare_with_alone(
    model: Model, batch: Batch, written: Targets, trace: Trace, should_stop: Callable[[], bool] = never
) -> AloneReport:
    """Run the text of `trace`, one of `batch`, by itself, and measure how far its weights and logits are from that.

    Raises:
        Cancelled: `should_stop()` was true between two layers.
    """
    target = targets_of(batch, written)[batch.shown]
    alone = run(model, batch.prompt, target=target, should_stop=should_stop)
    apart = scores = 0.0
    for ours, theirs, site in zip(trace.inputs, alone.inputs, trace.sites, strict=True):
        queries, keys = ([i for i, t in enumerate(tokens) if not t.padding] for tokens in site_tokens(trace, site))
        rows = sampled_rows(len(queries)) if site.is_long else list(range(len(queries)))
        for head in range(site.heads):
            if should_stop():
                raise Cancelled
            mine = attention.weights(ours, Part([head], [queries[row] for row in rows]))[0, 0][:, keys]
            apart = max(apart, largest(mine - attention.weights(theirs, Part([head], rows))[0, 0]))
            if ours.precomputed is None:
                scores = max(scores, float(attention.scores(theirs, Part([head], rows)).abs().max()))
    head_of = model.info.class_head
    logits = 0.0
    if trace.has_logits:
        own = [i for i, token in enumerate(trace.tokens) if not token.padding]
        rows = sampled_rows(len(own)) if len(own) ** 2 > LARGEST_WHOLE**2 else list(range(len(own)))
        mine, theirs_ = trace.logits_at([own[row] for row in rows]), alone.logits_at(rows)
        if head_of is not None and head_of.of == "choice":  # among others its logit is one of several
            mine = mine[:, batch.shown : batch.shown + 1]
        logits = _relative(theirs_, mine)
    unit = UNIT_ROUNDOFFS.get(model.dtype_name, 0.0)
    # a score moves by twice what queries and keys do, of its size, and a weight by up to half of that
    allowed = max(TOLERANCE, _HIDDEN_ROUNDING * unit * scores)
    return AloneReport(apart, logits, None if model.dtype_name in COARSE else allowed)


def _compare_whole(model: Model, encoded: Encoded, trace: Trace, should_stop: Callable[[], bool]) -> Comparison:
    worst: dict[int, float] = {}  # largest difference at each site
    by_module: dict[str, list[int]] = {}
    for i, site in enumerate(trace.sites):
        by_module.setdefault(site.module, []).append(i)
    handles = [
        child.register_forward_hook(_weights_hook(by_module[name], trace, encoded.row, worst, should_stop))
        for child, name in model.module_names.items()
        if name in by_module
    ]
    module: Any = model.module
    try:
        module.set_attn_implementation("eager")
        out = model.called(encoded.inputs, model.forward_options)
    finally:
        module.set_attn_implementation(IMPLEMENTATION)
        for handle in handles:
            handle.remove()
    return Comparison(_logit_difference(out, trace, encoded.row), _over_sites(worst, trace))


def _compare_with_itself(model: Model, encoded: Encoded, trace: Trace) -> Comparison:
    """For weights that the model gave: its logits where it is asked for no weights, and weights given once more."""
    options = {**model.forward_options, "output_attentions": False}
    difference = _logit_difference(model.called(encoded.inputs, options), trace, encoded.row)
    again = Recorder(model.module_names, model.seq2seq)
    keep_output_weights(model, again, model.forward(encoded.inputs), len(encoded.tokens))
    weights = max(
        (
            largest(attention.weights(now) - attention.weights(x))
            for now, x in zip(texts_inputs(again.inputs, encoded.row), trace.inputs, strict=True)
        ),
        default=math.inf,
    )
    return Comparison(difference, weights, logit_tolerance=_once_more(model))


def _compare_with_torch(
    model: PlainModel, encoded: Encoded, trace: Trace, should_stop: Callable[[], bool]
) -> Comparison:
    """For a module of one's own, which has no other attention than torch's: without any of this program's functions."""
    difference = _logit_difference(SimpleNamespace(logits=model.own_logits(encoded.inputs["input_ids"])), trace)
    worst = 0.0
    rows = sampled_rows(len(trace.tokens)) if any(site.is_long for site in trace.sites) else []
    for x in trace.inputs:
        for head in range(x.heads):
            if should_stop():
                raise Cancelled
            chosen = rows or list(range(x.queries))
            ours = attention.weights(x, Part([head], chosen))[0, 0].cpu()
            worst = max(worst, largest(_weights_in_double(x, head, chosen) - ours))
    weights = worst if trace.inputs else math.inf
    # its kernel need not be ours, and some hundred roundings of independent sign add up to 20 of one
    tolerance = max(TOLERANCE, 20 * UNIT_ROUNDOFFS.get(model.dtype_name, 0.0))
    return Comparison(difference, weights, logit_tolerance=tolerance, rows=len(rows), against=OWN)


def _weights_in_double(x: AttentionInputs, head: int, rows: list[int]) -> Tensor:
    """Vaswani et al. 2017, equation 1, for some rows of one head.

    (rows, keys) float64, on the CPU: not every device has it.
    """
    shape = (1, x.heads, x.queries, x.keys)
    scores = x.query[0, head, rows].cpu().double() @ x.key[0, head // x.group].cpu().double().mT * x.scale
    if x.bias is not None:
        scores += x.bias.expand(shape)[0, head, rows].cpu()
    if x.mask is not None:
        mask = x.mask.expand(shape)[0, head, rows].cpu()
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask.double()
    if x.causal:
        scores = scores.masked_fill(torch.arange(x.keys) > torch.tensor(rows)[:, None], -math.inf)
    return torch.softmax(scores, dim=-1).nan_to_num(0.0)  # a row to which nothing is visible


def _once_more(model: Model) -> float:
    """For logits of the same computation: two units in the last place, on a device that adds in no fixed order."""
    return max(TOLERANCE, 4 * UNIT_ROUNDOFFS.get(model.dtype_name, 0.0))


def _logit_difference(out: Any, trace: Trace, row: int = 0) -> float:
    """`row` is that of the text in its batch."""
    logits = logits_of(out)
    if logits is None or not trace.has_logits:
        return 0.0
    kept = trace.output_logits
    theirs, ours = logits[row], trace.logits_at(range(len(trace.tokens))) if kept is None else kept
    if len(theirs) == len(trace.tokens):
        # padding to which nothing is visible says what the kernel makes of such a row
        real = [i for i, token in enumerate(trace.tokens) if not token.padding]
        theirs, ours = theirs[real], ours[real]
    pair = pair_logits_of(out) if trace.pair_logits is not None else None
    of_pair = 0.0 if pair is None or trace.pair_logits is None else _relative(pair[row], trace.pair_logits)
    return max(_relative(theirs, ours), of_pair)


def _compare_rows(model: Model, encoded: Encoded, trace: Trace, should_stop: Callable[[], bool]) -> Comparison:
    sampler = Sampler(trace, Sites(model, trace), encoded.row, should_stop)
    rows = sampled_rows(len(trace.tokens))
    with answering(model, sampler, sampled=True):
        difference = _logit_difference_at(model, encoded, trace, rows)
    return Comparison(difference, _over_sites(sampler.worst, trace), rows=len(rows))


def _compare_beside(model: Model, encoded: Encoded, trace: Trace, should_stop: Callable[[], bool]) -> Comparison:
    """Each layer by itself, where rounding alone adds up to more than a small error would."""
    long = any(site.is_long for site in trace.sites)
    beside = LayerwiseCheck(trace, Sites(model, trace), encoded.row, should_stop, sampled=long)
    rows = sampled_rows(len(trace.tokens)) if long else []
    with answering(model, beside, sampled=long):
        if long:
            difference = _logit_difference_at(model, encoded, trace, rows)
        else:
            out = model.called(encoded.inputs, model.forward_options)
            difference = _logit_difference(out, trace, encoded.row)
    return Comparison(
        difference,
        _over_sites(beside.worst, trace),
        tolerance=beside.tolerance,
        logit_tolerance=_once_more(model),
        rows=len(rows),
        rounding=beside.rounding,
    )


def _logit_difference_at(model: Model, encoded: Encoded, trace: Trace, rows: list[int]) -> float:
    """Run the model on a long text; what it then says at `rows` beside what `trace` says there."""
    inputs = encoded.inputs
    rows = [row for row in rows if not trace.tokens[row].padding] or [trace.last]
    if model.accepts("logits_to_keep"):
        inputs = {**inputs, "logits_to_keep": torch.tensor(rows, device=model.device)}
    logits = getattr(model.forward(inputs), "logits", None)
    if logits is None or not trace.has_logits:
        return 0.0
    theirs = logits[encoded.row] if "logits_to_keep" in inputs else logits[encoded.row, rows]
    return _relative(theirs, trace.logits_at(rows))


def _over_sites(worst: dict[int, float], trace: Trace) -> float:
    """The largest difference; what was not seen is not vouched for."""
    return max(worst.values(), default=0.0) if len(worst) == len(trace.sites) else math.inf


def _weights_hook(
    sites: list[int], trace: Trace, row: int, worst: dict[int, float], should_stop: Callable[[], bool]
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
                padding = padding_rows(trace, site)
                worst[site] = max(
                    largest_of_rows(part[row, head].float() - attention.weights(x, Part([head]))[0, 0], padding)
                    for head in range(x.heads)
                )
                return

    return hook


def _relative(theirs: Tensor, ours: Tensor) -> float:
    """Largest difference of logits, relative to the largest of them where that exceeds 1."""
    size = max(1.0, float(theirs.abs().max()))
    return largest(theirs.float() - ours.float()) / size if math.isfinite(size) else math.inf
