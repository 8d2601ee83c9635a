"""One cell of an attention matrix: from two tokens' vectors to one number, and on to the output."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.attention.numbers import copied
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.recurrent_model import RecurrentModel
from attention_models.forward.trace import Trace
from attention_models.protocol.ablation import describe_ablation, head_skip
from attention_models.protocol.cell import AdditiveScore, CellRequest, CellView
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Mask, Positions, applies, precedence
from attention_models.protocol.values import Candidate, Site, site_tokens
from attention_models.textbook.transformer import MultiHeadAttention
from attention_models.views.candidates import label_of, likeliest
from attention_models.views.recurrent_views import NO_STREAM, score_of
from attention_models.views.residual import logit_direction, output_weight, stream_after

# The softmax of rows of scores, taken apart into what each number of it is made of.


@dataclass(frozen=True, slots=True, eq=False)
class RowSoftmax:
    """weight = numerator / denominator, of every row. Float64: it is recomputed beside the weights, not in their place.

    Attributes:
        shift: (rows,), what is subtracted from a row before exp: its largest visible score or its sink's; NaN where
            nothing is visible and there is no sink, which is no softmax.
        numerators: (rows, keys), exp(score - shift), 0 where masked.
        sink: (rows,), the sink's exp(sink - shift): all there is of a row in which nothing is visible. None without.
        denominator: (rows,), their sum.
    """

    shift: np.ndarray
    numerators: np.ndarray
    sink: np.ndarray | None
    denominator: np.ndarray


def taken_apart(scores: np.ndarray, masked: np.ndarray, sink: float | None) -> RowSoftmax:
    """Of `scores` (rows, keys) before the mask, `masked` (rows, keys) and a head's sink, a score that no key has."""
    entering = np.where(masked, -math.inf, scores.astype(np.float64))
    largest = entering.max(axis=1, initial=-math.inf if sink is None else sink)
    shift = np.where(np.isneginf(largest), math.nan, largest)
    numerators = np.exp(entering - np.nan_to_num(shift)[:, None])
    of_sink = None if sink is None else np.exp(sink - shift)
    denominator = numerators.sum(axis=1) + (0.0 if of_sink is None else of_sink)
    return RowSoftmax(shift, numerators, of_sink, denominator)


_REPLACED = "Nothing of this cell reaches the residual stream: {skip}."


def answer(request: CellRequest, context: Context) -> CellView:
    run = context.run(request.run)
    if run.model.info.weights_only:
        raise InputError(run.model.info.weights_only)
    with run.model.adapter_as(run.trace.interventions):
        return cell_view(request, run.model, run.trace)


@torch.no_grad()
def cell_view(request: CellRequest, model: Model, trace: Trace) -> CellView:
    """Every step from q and k of one head to the weight, the write and its direct effect: `attention_models.attention`.

    Raises:
        IndexError: no such site, head, query or key, or a target that is not in the vocabulary.
    """
    site = trace.sites[trace.index(request.site)]
    x = trace.inputs[trace.index(request.site)]
    head, query, key = request.head, request.query, request.key
    if not (0 <= head < x.heads and 0 <= query < x.queries and 0 <= key < x.keys):
        raise IndexError(f"There is no cell ({query}, {key}) of head {head}: the map is {x.queries} x {x.keys}.")
    key_head = head // x.group
    q = x.query[0, head, query].float()  # (head_dim,)
    keys = x.key[0, key_head].float()  # (keys, head_dim)
    values = x.value[0, key_head].float()  # (keys, value_dim)
    row_raw = copied(keys @ q)
    row_scores = copied(attention.scores(x, Part([head], [query]))[0, 0, 0])
    weights = attention.weights(x, Part([head], [query]))[0, 0, 0]  # (keys,)
    of_row = attention.masked_cells(x, Part([head], [query]))
    masked = np.zeros(x.keys, bool) if of_row is None else copied(of_row[0, 0, 0].expand(x.keys))
    sink = None if x.sinks is None else float(x.sinks[head])
    softmax = taken_apart(row_scores[None], masked[None], sink)
    mixed = weights[key] * values[key]
    head_output = weights @ values
    skip = head_skip(trace.interventions, site.ref, head, model.info.predicting_stack)
    is_off = skip is not None
    write = _written(model, trace, site, head, mixed * (not is_off))
    head_write = _written(model, trace, site, head, head_output * (not is_off))
    candidates = _candidates(model, trace, site, query)
    target = request.target if request.target is not None else candidates[0].id if candidates else None
    logit, direction = None, None
    note = "The output projection of this layer was not found."
    if write is not None:
        direction, note = logit_direction(model, trace, site.stack, query, target)
    if skip is not None:
        direction, note = None, _REPLACED.format(skip=describe_ablation(skip))
    if target is not None and trace.has_logits:
        logit = float(trace.logits_at([query])[0, target])
    factor = 1.0 if x.factors is None else float(x.factors[head])
    raw = float(row_raw[key])
    view = CellView(
        request=request,
        q=copied(q),
        k=copied(keys[key]),
        rotated=is_rotated(model, trace, site),
        products=copied(q * keys[key]),
        raw=raw,
        scale=x.scale,
        factor=factor,
        scaled=raw * x.scale * factor,
        bias=_bias(x, head, query, key),
        softcap=x.softcap,
        score=float(row_scores[key]),
        masked=bool(masked[key]),
        reason=mask_reason(trace, site, head, query, key, bool(masked[key]), _is_chunked(model, site)),
        row_raw=row_raw,
        row_scores=row_scores,
        row_masked=masked,
        row_weights=copied(weights),
        shift=None if math.isnan(softmax.shift[0]) else float(softmax.shift[0]),
        numerator=float(softmax.numerators[0, key]),
        sink=None if softmax.sink is None else float(softmax.sink[0]),
        denominator=float(softmax.denominator[0]),
        weight=float(weights[key]),
        value=copied(values[key]),
        value_norm=float(values[key].norm()),
        mixed=copied(mixed),
        mixed_norm=float(mixed.norm()),
        head_output=copied(head_output),
        head_output_norm=float(head_output.norm()),
        key_head=key_head,
        key_group=tuple(range(key_head * x.group, (key_head + 1) * x.group)),
        write=None if write is None else copied(write),
        write_norm=None if write is None else float(write.norm()),
        head_write_norm=None if head_write is None else float(head_write.norm()),
        stream_norm=_stream_norm(model, trace, site, query),
        candidates=candidates,
        target=target,
        target_label=label_of(model, trace, target),
        logit=logit,
        effect=None if direction is None or write is None else float(write @ direction),
        head_effect=None if direction is None or head_write is None else float(head_write @ direction),
        effect_note=note,
    )
    if isinstance(model, RecurrentModel):
        return _recurrent(view, model, trace)
    module = model.module.get_submodule(site.module)
    return (
        _additive(view, x, module) if isinstance(module, MultiHeadAttention) and module.additive is not None else view
    )


def _additive(view: CellView, x: AttentionInputs, module: MultiHeadAttention) -> CellView:
    """The same cell of a head whose score is v . tanh(q + k), which attention is handed as a bias."""
    assert module.additive is not None
    v = module.additive.weight[view.request.head].float()
    tanh = torch.tanh(torch.tensor(view.q + view.k, device=v.device))  # (head_dim,)
    bias = attention.score_bias(x, Part([view.request.head], [view.request.query]))
    row = np.zeros_like(view.row_raw) if bias is None else copied(bias[0, 0, 0].expand(x.keys))
    raw = float((v * tanh).sum())
    return replace(
        view,
        products=copied(v * tanh),
        raw=raw,
        scale=1.0,
        factor=1.0,
        scaled=raw,
        bias=None,
        row_raw=row,
        additive=AdditiveScore(copied(tanh), copied(v)),
    )


def _recurrent(view: CellView, model: RecurrentModel, trace: Trace) -> CellView:
    """The same cell with its score's own arithmetic, where no product of a query and a key made it."""
    parts, row = score_of(model, trace, view.request.query, view.request.key)
    raw = float(row[view.request.key])
    return replace(
        view,
        q=parts.state,
        k=parts.key,
        products=parts.products,
        raw=raw,
        scaled=raw,
        bias=parts.gaussian,
        row_raw=row,
        reason="outside of the window" if view.masked else "",
        effect_note=NO_STREAM,
        recurrent=parts,
    )


def _is_chunked(model: Model, site: Site) -> bool:
    """Whether a token of this layer sees its own chunk of the text only (Llama 4)."""
    kinds = getattr(model.config, "layer_types", None) or ()
    return site.layer < len(kinds) and kinds[site.layer] == "chunked_attention"


def mask_reason(trace: Trace, site: Site, head: int, query: int, key: int, masked: bool, chunked: bool = False) -> str:
    """Why a cell is masked, or what opened one that comes later in a model that looks back only; else ""."""
    later = (site.causal or site.stack == "decoder") and key > query
    masks = [item for item in trace.interventions if isinstance(item, Mask) and applies(item, site)]
    for item in sorted((item for item in masks if item.head in (None, head)), key=precedence)[::-1]:
        if item.paints:
            painted = next((c for c in reversed(item.cells or ()) if c[:2] == (query, key)), None)
            if painted is not None:
                return "opened by hand" if painted[2] else "painted over by hand"
        elif item.replaces:
            if masked:
                return f"mask “{item.label}”"
            return f"opened by the mask “{item.label}”" if later else ""
        elif masked and not item.allows(query, key, site.keys - _padded_at_end(trace, site)):
            return f"mask “{item.label}”"
    if not masked:
        return ""
    if later:
        return "causal: it comes later"
    return "it lies in a chunk before this one" if chunked else "sliding window: it is too far away"


def _padded_at_end(trace: Trace, site: Site) -> int:
    """How many of the keys fill the text up to the length of its batch, behind its end."""
    keys = site_tokens(trace, site)[1]
    return next((i for i, token in enumerate(reversed(keys)) if not token.padding), 0)


def is_rotated(model: Model, trace: Trace, site: Site) -> bool:
    """Whether q and k of this site were turned by their positions (RoPE: Su et al. 2021) before they met."""
    positions_off = any(isinstance(item, Positions) and item.mode == "off" for item in trace.interventions)
    if site.stack == "cross" or positions_off:
        return False
    if not getattr(model.module.get_submodule(site.module), "use_rope", True):  # some layers of SmolLM 3, Llama 4
        return False
    return any("Rotary" in type(module).__name__ for module in model.module_names)


def _candidates(model: Model, trace: Trace, site: Site, query: int) -> tuple[Candidate, ...]:
    """What a write at `query` may change the logit of: next tokens or classes."""
    says = model.info.class_head is not None or model.info.family in ("causal", "seq2seq", "vision")
    return likeliest(model, trace, site.stack, query) if says else ()


def _written(model: Model, trace: Trace, site: Site, head: int, mixed: Tensor) -> Tensor | None:
    weight = output_weight(model, trace, site, head)
    if weight is None or weight.shape[0] != mixed.shape[0]:
        return None
    return (mixed @ weight.float().to(mixed.device)).cpu()


def _bias(x: AttentionInputs, head: int, query: int, key: int) -> float | None:
    bias = attention.score_bias(x, Part([head], [query]))
    if bias is None:
        return None
    row = bias[0, 0, 0]  # (keys or 1,)
    return float(row[key if len(row) > 1 else 0])


def _stream_norm(model: Model, trace: Trace, site: Site, query: int) -> float | None:
    """The length of the residual stream at the query after the site's block."""
    stack = site.ref.block.stack
    if site.layer + 1 >= len(trace.residual.get(stack, ())):
        return None
    return float(stream_after(model, trace, stack, site.layer)[query].float().norm())
