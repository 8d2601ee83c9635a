"""Attention of one head as matrices (Vaswani et al. 2017, equation 1): softmax(Q K^T / sqrt(d_k)) V, step by step."""

from __future__ import annotations

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
from attention_models.protocol.errors import InputError
from attention_models.protocol.matrices import WINDOW, MatricesRequest, MatricesView
from attention_models.protocol.values import read_only
from attention_models.views.cell import is_rotated, taken_apart

NO_PRODUCT = "A recurrent model scores one pair after the other: there is no product of two matrices. See Cell."


def answer(request: MatricesRequest, context: Context) -> MatricesView:
    run = context.run(request.run)
    if run.model.info.weights_only:
        raise InputError(run.model.info.weights_only)
    if isinstance(run.model, RecurrentModel):
        raise InputError(NO_PRODUCT)
    return matrices_view(request, run.model, run.trace)


@torch.no_grad()
def matrices_view(request: MatricesRequest, model: Model, trace: Trace) -> MatricesView:
    """Every step from Q and K of one head to its output, of as many tokens as the request's window holds.

    Raises:
        IndexError: no such site, head, query or key.
    """
    site = trace.sites[trace.index(request.site)]
    x = trace.at(request.site, request.head)
    if not (0 <= request.first_query < x.queries and 0 <= request.first_key < x.keys):
        raise IndexError(f"There is no cell ({request.first_query}, {request.first_key}): {x.queries} x {x.keys}.")
    rows = slice(request.first_query, min(request.first_query + WINDOW, x.queries))
    keys = slice(request.first_key, min(request.first_key + WINDOW, x.keys))
    head, key_head = request.head, request.head // x.group
    wide, part = Part([head], rows), Part([head], rows, keys)
    q, k = x.query[0, head, rows].float(), x.key[0, key_head].float()  # (rows, head_dim), (all keys, head_dim)
    v = x.value[0, key_head].float()  # (all keys, value_dim)
    scores = attention.scores(x, wide)[0, 0]  # (rows, all keys)
    masked = _masked(x, wide, scores)
    weights = attention.weights(x, wide)[0, 0]  # (rows, all keys)
    outside = weights.clone()
    outside[:, keys] = 0
    softmax = taken_apart(copied(scores), copied(masked), None if x.sinks is None else float(x.sinks[head]))
    here = copied(masked[:, keys])
    bias = attention.score_bias(x, part)
    return MatricesView(
        request=request,
        q=copied(q),
        k=copied(k[keys]),
        v=copied(v[keys]),
        raw=copied(q @ k[keys].mT),
        scale=x.scale,
        factor=1.0 if x.factors is None else float(x.factors[head]),
        bias=None if bias is None else copied(bias[0, 0].expand(here.shape)),
        softcap=x.softcap,
        scores=copied(scores[:, keys]),
        masked=here if here.any() else None,
        shift=read_only(softmax.shift.astype(np.float32)),
        denominator=read_only(softmax.denominator.astype(np.float32)),
        sink=None if softmax.sink is None else read_only(softmax.sink.astype(np.float32)),
        weights=copied(weights[:, keys]),
        outside_weight=copied(outside.sum(dim=-1)),
        outside_output=copied(outside @ v),
        output=copied(weights @ v),
        queries=x.queries,
        keys=x.keys,
        rotated=is_rotated(model, trace, site),
        key_head=key_head,
        key_group=tuple(range(key_head * x.group, (key_head + 1) * x.group)),
    )


def _masked(x: AttentionInputs, part: Part, scores: Tensor) -> Tensor:
    """(rows, keys) bool."""
    masked = attention.masked_cells(x, part)
    return torch.zeros_like(scores, dtype=torch.bool) if masked is None else masked[0, 0].expand(scores.shape)
