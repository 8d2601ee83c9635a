"""One cell of an attention matrix: from two tokens' vectors to one number, and on to the output."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from models import attention
from models.interventions import Mask, applies
from models.model import Model
from models.predictions import predict
from models.requests import CellRequest, CellView, Site
from models.residual import direct_effect, output_weight
from models.trace import Trace


@torch.no_grad()
def cell_view(request: CellRequest, model: Model, trace: Trace) -> CellView:
    """Every step from q and k of one head to the weight, the write and its direct effect. See `models.attention`.

    Raises:
        IndexError: no such site, head, query or key.
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
    row_raw = keys @ q  # (keys,)
    row_scores = attention.scores(x, [head], [query])[0, 0, 0]
    row_weights = attention.weights(x, [head], [query])[0, 0, 0]
    shut = attention.blocked(x, [head], [query])
    row_masked = torch.zeros(x.keys, dtype=torch.bool) if shut is None else shut[0, 0, 0].expand(x.keys)
    open_scores = row_scores.masked_fill(row_masked, -torch.inf)
    largest = open_scores.max()
    numerators = torch.zeros_like(open_scores) if bool(row_masked.all()) else torch.exp(open_scores - largest)
    sink = 0.0 if x.sinks is None else float(torch.exp(x.sinks[head].float() - largest))
    mixed = row_weights[key] * values[key]
    head_output = row_weights @ values
    target = request.target
    if target is None and trace.output_logits is not None and site.stack != "encoder":
        target = predict(model, trace, [query], top=1)[0].candidates[0].id
    write = _written(model, site, head, mixed)
    head_write = _written(model, site, head, head_output)
    effect, head_effect, note = None, None, ""
    if write is None or head_write is None:
        note = "The output projection of this layer was not found."
    elif target is None:
        note = "There is no next token here that the write could change."
    else:
        effect, note = direct_effect(model, trace, site, query, write, target)
        head_effect, _ = direct_effect(model, trace, site, query, head_write, target)
    factor = 1.0 if x.factors is None else float(x.factors[head])
    raw = float(row_raw[key])
    return CellView(
        request=request,
        run=request.run,
        site=request.site,
        head=head,
        query=query,
        key=key,
        q=_plain(q),
        k=_plain(keys[key]),
        products=_plain(q * keys[key]),
        raw=raw,
        scale=x.scale,
        factor=factor,
        scaled=raw * x.scale * factor,
        bias=_bias(x, head, query, key),
        softcap=x.softcap,
        score=float(row_scores[key]),
        masked=bool(row_masked[key]),
        reason=mask_reason(trace, site, head, query, key, bool(row_masked[key])),
        row_raw=_plain(row_raw),
        row_scores=_plain(row_scores),
        row_masked=_plain(row_masked),
        row_weights=_plain(row_weights),
        numerator=float(numerators[key]),
        denominator=float(numerators.sum()) + sink,
        weight=float(row_weights[key]),
        value=_plain(values[key]),
        mixed=_plain(mixed),
        head_output=_plain(head_output),
        key_head=key_head,
        key_group=tuple(range(key_head * x.group, (key_head + 1) * x.group)),
        write=None if write is None else _plain(write),
        write_norm=None if write is None else float(write.norm()),
        head_write_norm=None if head_write is None else float(head_write.norm()),
        stream_norm=_stream_norm(trace, site, query),
        target=target,
        target_label="" if target is None else model.piece_label(target),
        effect=effect,
        head_effect=head_effect,
        effect_note=note,
    )


def mask_reason(trace: Trace, site: Site, head: int, query: int, key: int, masked: bool) -> str:
    """Why a cell is masked, or why it is open although the model as trained would not have it so; else ""."""
    masks = [item for item in trace.interventions if isinstance(item, Mask) and applies(item, site)]
    for item in reversed([item for item in masks if item.head in (None, head)]):
        if item.kind == "painted":
            painted = next((c for c in reversed(item.cells or ()) if c[:2] == (query, key)), None)
            if painted is not None:
                return "opened by hand" if painted[2] else "painted over"
            continue
        if item.kind == "trained":
            break
        if masked:
            return f"mask: {item.kind}" + (f" {item.window}" if item.window is not None else "")
        return f"mask: {item.kind}" if site.causal and key > query else ""
    if not masked:
        return ""
    if site.causal and key > query:
        return "causal: it comes later"
    return "sliding window: it is too far back" if site.causal else "padding: it is no part of the text"


def _written(model: Model, site: Site, head: int, mixed: Tensor) -> Tensor | None:
    weight = output_weight(model, site, head)
    return None if weight is None or weight.shape[0] != mixed.shape[0] else mixed @ weight.float()


def _bias(x: attention.AttentionInputs, head: int, query: int, key: int) -> float | None:
    total = None
    if x.bias is not None:
        total = float(x.bias.expand(-1, x.heads, x.queries, x.keys)[0, head, query, key])
    if x.mask is not None and x.mask.dtype != torch.bool:
        added = float(attention.added_bias(x).expand(-1, x.heads, x.queries, x.keys)[0, head, query, key])
        total = added if total is None and added else total if total is None else total + added
    return total


def _stream_norm(trace: Trace, site: Site, query: int) -> float | None:
    """The length of the residual stream at the query after the site's block."""
    stream = trace.residual.get("decoder" if site.stack == "cross" else site.stack)
    after = site.layer + 1
    return None if stream is None or after >= len(stream) else float(stream[after][query].float().norm())


def _plain(t: Tensor) -> np.ndarray:
    array: np.ndarray = t.detach().cpu().numpy().copy()
    array.flags.writeable = False
    return array
