"""The one attention function: every attention weight of the program comes from here.

For one head, with query q_i, key k_j, value v_j (row vectors):

    score    s_ij = scale * q_i . k_j          scale = 1/sqrt(d_k): Vaswani et al. 2017, equation 1
             s_ij + b_ij                       a position bias: Raffel et al. 2020 (T5), section 2.1
             c * tanh(s_ij / c)                a soft cap: Gemma Team 2024 (Gemma 2), section 2
    weight   w_ij = exp(s_ij) / Z_i            over the keys j that the mask leaves visible to i, else exactly 0
             Z_i = sum_j exp(s_ij) [+ exp(sink)]
    output   o_i = sum_j w_ij v_j

Any part of the weights is computed from the kept inputs when somebody looks at it. Outputs
(`attention_models.attention.output`) of up to `EXACT_KEYS` keys are computed in the order of transformers' eager
attention and equal it bit for bit; longer ones go through torch's fused kernel, which never builds the weights and
agrees to rounding (but on devices in `UNTRUSTED`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from attention_models.attention.inputs import WHOLE, AttentionInputs, Part, Rows
from attention_models.attention.masks import RowMask, resolve_rows

# Beyond this many keys building the weights costs more than the fused kernel (measured: 1.05 at 512, 1.3 at 1,024).
EXACT_KEYS = 512

# Devices whose fused kernel is not used: in half precision that of MPS lets a causal query attend to later keys, and
# says nothing of it (pytorch issues 195910, 174861, pull requests 169222, 184180). What is shown must be what was
# computed.
UNTRUSTED = frozenset({"mps"})


def weights(x: AttentionInputs, part: Part = WHOLE, out: Tensor | None = None) -> Tensor:
    """Attention weights, (batch, heads, rows, keys) float32: rows sum to 1 (less a sink's share), masked cells are 0.

    A row to which nothing is visible is all 0, as in torch's fused kernel.

    Args:
        part: its keys may leave out only what is masked for all of its rows (see `reach`).
        out: room to compute in, of the shape of the result.
    """
    if x.precomputed is not None:
        return part.take_cells(x.precomputed).float()
    s, masked = masked_scores(x, part, out)
    if x.sinks is not None:
        sink = part.take_per_head(x.sinks).float()
        s = torch.cat([s, sink[None, :, None, None].expand(*s.shape[:-1], 1)], dim=-1)
    w = _softmax(s)
    if x.sinks is not None:
        w = w[..., :-1]
    if masked is not None:
        nothing = masked.all(dim=-1, keepdim=True)
        w = w.masked_fill(nothing, 0.0) if w.requires_grad else w.masked_fill_(nothing, 0.0)
    return w


def sink_shares(x: AttentionInputs, part: Part = WHOLE) -> Tensor:
    """What the sink takes of each row, exp(sink) / Z: (batch, heads, rows) float32.

    Raises:
        ValueError: these heads have no sinks.
    """
    if x.sinks is None:
        raise ValueError("This layer has no sinks: its rows sum to 1.")
    s, _ = masked_scores(x, part)
    sink = part.take_per_head(x.sinks).float()[None, :, None]
    return torch.exp(sink - torch.logaddexp(torch.logsumexp(s, dim=-1), sink))


def _softmax(s: Tensor) -> Tensor:
    """In place where no gradient is wanted: a second buffer costs the forward pass a tenth."""
    if s.requires_grad or s.device.type in UNTRUSTED:
        return torch.softmax(s, dim=-1)
    return torch.softmax(s, dim=-1, out=s)


# --------------------------------------------------------------------------- scores


def scores(x: AttentionInputs, part: Part = WHOLE, out: Tensor | None = None) -> Tensor:
    """What enters the softmax, before the mask: scaled, biased, soft-capped. (batch, heads, rows, keys) float32.

    Raises:
        ValueError: the model gives its weights alone.
    """
    if x.precomputed is not None:
        raise ValueError("This model gives its weights alone: the scores that they were made of are not seen.")
    s = _product_for(x, out)(x, part, out)
    if x.bias is not None:
        s += part.take_cells(x.bias)
    if x.softcap is not None:
        s = s.div_(x.softcap).tanh_() * x.softcap  # a new tensor: tanh's gradient needs its own result
    if x.mask is not None and x.mask.dtype != torch.bool:
        s += added_bias(x, part)
    return s


def _product_for(x: AttentionInputs, out: Tensor | None) -> Callable[[AttentionInputs, Part, Tensor | None], Tensor]:
    """Which way of computing scale * q_i . k_j: as eager attention does, or the one that is faster for long texts."""
    if x.keys <= EXACT_KEYS or x.factors is not None:
        return _scaled_product
    if x.query.requires_grad or x.key.requires_grad or (out is not None and not out.is_contiguous()):
        return _scaled_product
    return _fused_product


def _scaled_product(x: AttentionInputs, part: Part, out: Tensor | None) -> Tensor:
    """(q_i . k_j) * scale, (batch, heads, rows, keys) float32."""
    scale = x.scale if x.factors is None else x.scale * part.take_per_head(x.factors)[:, None, None]  # (heads, 1, 1)
    return _product(x, part, out).mul_(scale)


def _product(x: AttentionInputs, part: Part, out: Tensor | None) -> Tensor:
    """q_i . k_j, (batch, heads, rows, keys) float32."""
    query, key = part.take_queries(x.query), part.take_keys(x.key, x.heads)
    return torch.matmul(query.float(), key.float().mT, out=out)


def _fused_product(x: AttentionInputs, part: Part, out: Tensor | None) -> Tensor:
    """As `_scaled_product`, for a long text, which is read and written at the speed of memory.

    The product scales as it goes, and query heads that share a key are rows of one product, so that no key is copied.
    """
    query = part.take_queries(x.query).float()  # (batch, heads, rows, head_dim)
    key = x.key if part.heads is None else part.take_keys(x.key, x.heads)
    if part.heads is None and part.keys is not None:
        key = key[:, :, part.keys]
    key = key.float().flatten(0, 1)  # (batch * key heads, keys, head_dim)
    s = torch.empty(*query.shape[:3], key.shape[1], device=query.device) if out is None else out
    product = s.view(len(key), -1, key.shape[1])
    torch.baddbmm(product, query.reshape(len(key), -1, key.shape[2]), key.mT, beta=0, alpha=x.scale, out=product)
    return s


def added_bias(x: AttentionInputs, part: Part = WHOLE) -> Tensor:
    """What an added mask says beside its "not here": 0 in most models, the slopes of ALiBi in some."""
    assert x.mask is not None
    added = part.take_cells(x.mask)
    return added.masked_fill(added <= masked_below(x.mask), 0.0)


def score_bias(x: AttentionInputs, part: Part = WHOLE) -> Tensor | None:
    """What is added to the scores for two positions: a bias of its own (T5), or one within the mask (ALiBi).

    Float32, broadcasts to (batch, heads, rows, keys); None where nothing is added.
    """
    added = [] if x.bias is None else [part.take_cells(x.bias)]
    if x.mask is not None and x.mask.dtype != torch.bool:
        added.append(added_bias(x, part))
    added = [t.float() for t in added if bool(t.any())]  # T5 hands its cross-attention a bias of zeros
    return sum(added[1:], added[0]) if added else None


# --------------------------------------------------------------------------- masks


def masked_cells(x: AttentionInputs, part: Part = WHOLE) -> Tensor | None:
    """Which keys are masked for each query: bool, broadcasts to (batch, heads, rows, keys); None where none is."""
    if x.precomputed is not None:
        masked = part.take_cells(x.precomputed) == 0  # exactly: such a model says no more of its mask
        return masked if bool(masked.any()) else None
    if isinstance(x.mask, RowMask) and _visible_to_all(x, part) == _keys_of(x, part):
        return None
    if x.mask is not None:
        mask = part.take_cells(x.mask)
        return ~mask if mask.dtype == torch.bool else mask <= masked_below(mask)
    return _is_later(x, part.rows, part.keys)[None, None] if x.causal else None


def reach(x: AttentionInputs, part: Part) -> slice:
    """The shortest run of keys outside of which nothing is visible to the rows of `part`, a slice, from any key.

    What lies outside costs nothing: the future of a causal layer, and what a sliding window leaves behind.
    """
    rows = part.rows
    assert isinstance(rows, slice)
    if x.precomputed is not None:
        return slice(0, x.keys)
    if x.mask is None:
        return slice(0, min(x.keys, rows.stop) if x.causal else x.keys)
    if isinstance(x.mask, RowMask):
        return x.mask.reach(part.heads, rows)
    masked = masked_cells(x, Part(part.heads, rows))
    assert masked is not None
    visible = (~masked).flatten(0, -2).any(dim=0)  # (keys or 1,)
    places = torch.nonzero(visible.cpu())[:, 0]  # brought over once: each number asked of a device is a wait for it
    if not len(places):
        return slice(0, 0)
    return slice(int(places[0]), int(places[-1]) + 1) if len(visible) == x.keys else slice(0, x.keys)


def masked_scores(x: AttentionInputs, part: Part = WHOLE, out: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
    """As `scores`, with -inf in masked cells, and these cells as in `masked_cells`.

    None in their place also where each row is known to have a visible key.
    """
    if x.keys <= EXACT_KEYS and _is_causal_alone(x):
        # one pass over what the cache holds: the product is rounded as by itself, since 0 or -inf is added to it
        s = _product(x, part, out)
        return torch.add(_future(x, part), s, alpha=x.scale, out=None if s.requires_grad else s), None
    s = scores(x, part, out)
    if isinstance(x.mask, RowMask) and (inner := _visible_to_all(x, part)):
        _mask_beside(s, inner, x, part)
        return s, None
    if x.mask is None:
        if x.causal:
            _mask_future(s, x, part)
        return s, None
    masked = masked_cells(x, part)
    if masked is not None:
        s.masked_fill_(masked, -torch.inf)
    return s, masked


def _is_causal_alone(x: AttentionInputs) -> bool:
    """Whether scale and future are all that is done to a product before the softmax."""
    if not x.causal or x.mask is not None or x.bias is not None:
        return False
    return x.softcap is None and x.factors is None and x.precomputed is None


def _keys_of(x: AttentionInputs, part: Part) -> range:
    return range(x.keys)[part.keys or slice(None)]


def _visible_to_all(x: AttentionInputs, part: Part) -> range:
    """A run of the keys that are visible to all rows, as far as one is known; empty for rows that are listed."""
    assert isinstance(x.mask, RowMask)
    rows, keys = resolve_rows(part.rows, x.queries), _keys_of(x, part)
    run = slice(0, 0) if isinstance(rows, list) else x.mask.open_run(part.heads, rows)
    return range(max(keys.start, run.start), min(keys.stop, run.stop))


def _mask_beside(s: Tensor, inner: range, x: AttentionInputs, part: Part) -> None:
    """-inf in masked cells to the sides of the keys `inner`, which are visible to all rows and not touched."""
    outer = _keys_of(x, part)
    for side in (slice(outer.start, inner.start), slice(inner.stop, outer.stop)):
        masked = masked_cells(x, Part(part.heads, part.rows, side)) if side.start < side.stop else None
        if masked is not None:
            s[..., side.start - outer.start : side.stop - outer.start].masked_fill_(masked, -torch.inf)


def _mask_future(s: Tensor, x: AttentionInputs, part: Part) -> None:
    """-inf in causal scores (batch, heads, rows, keys) beyond each query's own place.

    As torch's kernel has it, the first query sees the first key only.
    """
    if x.keys <= EXACT_KEYS:  # in the cache; one run of memory
        s += _future(x, part)
        return
    keys = _keys_of(x, part)
    first = range(x.queries)[part.rows].start if isinstance(part.rows, slice) else 0
    later = slice(max(keys.start, first + 1), keys.stop)  # what is masked for some row: the past is not touched
    if later.start < later.stop:
        s[..., later.start - keys.start :].masked_fill_(_is_later(x, part.rows, later), -torch.inf)


def _is_later(x: AttentionInputs, rows: Rows, keys: slice | None) -> Tensor:
    """(rows, keys) bool: which keys lie in the future of each query of a causal layer."""
    device = x.query.device
    i = torch.arange(x.queries, device=device)[slice(None) if rows is None else rows]
    return torch.arange(x.keys, device=device)[slice(None) if keys is None else keys] > i[:, None]


def _future(x: AttentionInputs, part: Part) -> Tensor:
    """Added to causal scores of a short text, (rows, keys): 0 up to the query's own place, -inf beyond."""
    table = _future_table(x.queries, x.keys, x.query.device)
    if part.rows is not None:
        table = table[part.rows]
    return table if part.keys is None else table[:, part.keys]


@lru_cache(maxsize=2)
def _future_table(queries: int, keys: int, device: torch.device) -> Tensor:
    """Kept, since every layer of a forward pass adds the same."""
    return torch.full((queries, keys), -torch.inf, device=device).triu_(1)


def masked_below(mask: Tensor) -> float:
    """Added masks say "not here" by the dtype's lowest number (or -inf); half of it parts it from any bias."""
    return torch.finfo(mask.dtype).min / 2
