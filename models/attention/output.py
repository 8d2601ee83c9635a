"""What attention hands on: each head's mix of values, from the weights of `models.attention.attention`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from models.attention import attention
from models.attention.attention import AttentionInputs, masked_below, shared, take
from models.attention.masks import GROUP, RowMask
from models.protocol.values import is_long

# Bound here: while a borrowed module runs, the name in F is answered by `models.forward.adopted`, which asks us.
_fused = F.scaled_dot_product_attention

# Weights or cells of a mask held at once while mixing values: what a processor's cache takes of a short text's and of
# a long one's; more on a device, where each block costs launches.
_CACHE_BLOCK = 1 << 19
_ROWS_BLOCK = 1 << 21
_DEVICE_BLOCK = 1 << 26

# Fewer rows than this do not keep the fused kernel busy.
_LEAST_ROWS = 128


def output(x: AttentionInputs) -> Tensor:
    """Each head's mix of values, (batch, heads, queries, value_dim), in the inputs' dtype."""
    needs_weights = x.softcap is not None or x.sinks is not None  # the fused kernel can do neither
    exact = x.keys <= attention.EXACT_KEYS and x.query.dtype == torch.float32
    if needs_weights or exact or x.query.device.type in attention.UNTRUSTED:
        return _mixed(x)
    return _by_rows(x, _fused_part, 1) if isinstance(x.mask, RowMask) else _fused_mix(x)


def _fused_mix(x: AttentionInputs) -> Tensor:
    """As `output`, by torch's fused kernel."""
    mask, causal = x.mask, x.causal
    if mask is not None and mask.dtype != torch.bool:
        # the lowest number only says "not here" beside a higher one: a row that holds nothing else would become a mean
        mask = mask.masked_fill(mask <= masked_below(mask), -torch.inf)
    if x.bias is not None:
        shut = attention.masked_cells(x)
        bias = x.bias if shut is None else x.bias.masked_fill(shut, -torch.inf)
        mask, causal = (bias if mask is None or mask.dtype == torch.bool else bias + mask), False
    query = x.query if x.factors is None else x.query * x.factors[:, None, None].to(x.query.dtype)
    return _fused(
        query,
        shared(x.key, x, None),
        shared(x.value, x, None),
        attn_mask=mask,
        is_causal=causal,
        scale=x.scale,
    )


def _mixed(x: AttentionInputs) -> Tensor:
    """Weights times values, a few heads at a time so that their weights stay in the cache; of a long text some rows."""
    if is_long(x.queries, x.keys) and not _wants_gradient(x):
        return _by_rows(x, _mix_part, x.query.shape[0] * x.heads)
    step = max(1, _CACHE_BLOCK // (x.query.shape[0] * x.queries * x.keys))
    if step >= x.heads:
        return _mix(x, None)
    if _wants_gradient(x):
        return torch.cat([_mix(x, [head]) for head in range(x.heads)], dim=1)
    # the same room for all of them: fresh memory for each costs a tenth of the time
    batch, device = x.query.shape[0], x.query.device
    scratch = torch.empty(batch, step, x.queries, x.keys, device=device)
    mixed = torch.empty(batch, x.heads, x.queries, x.value.shape[-1], device=device, dtype=x.value.dtype)
    for start in range(0, x.heads, step):
        stop = min(start + step, x.heads)
        _mix(x, list(range(start, stop)), scratch[:, : stop - start], mixed[:, start:stop])
    return mixed


def _by_rows(
    x: AttentionInputs, mix: Callable[[AttentionInputs, list[int] | None, slice, slice], Tensor], held: int
) -> Tensor:
    """As `output`, some rows at a time with the keys that they may look at: a window of w keys costs n x w, not n x n.

    `mix` gives some heads' and rows' output from some keys; it holds `held` numbers for each of these cells.
    """
    mixed = x.value.new_zeros(*x.query.shape[:3], x.value.shape[-1])
    for heads in x.mask.heads_alike() if isinstance(x.mask, RowMask) else (None,):
        for rows in _row_blocks(x, heads, held):
            keys = attention.reach(x, heads, rows)
            if keys.start < keys.stop:
                mixed[:, slice(None) if heads is None else heads, rows] = mix(x, heads, rows, keys)
    return mixed


def _row_blocks(x: AttentionInputs, heads: list[int] | None, held: int) -> Iterator[slice]:
    """Runs of rows, many enough to fill the kernel, so few that what they do not share costs little beside it."""
    room = _ROWS_BLOCK if x.query.device.type == "cpu" else _DEVICE_BLOCK
    start = 0
    while start < x.queries:
        first = attention.reach(x, heads, slice(start, start + 1))
        width = max(1, first.stop - first.start)
        step = max(_LEAST_ROWS, width // 4 // GROUP * GROUP)  # part of a group reaches as far as all of it
        while step > 1 and held * step * (width + step) > room:
            step //= 2
        yield slice(start, min(start + step, x.queries))
        start += step


def _mix_part(x: AttentionInputs, heads: list[int] | None, rows: slice, keys: slice) -> Tensor:
    return attention.weights(x, heads, rows, keys=keys).to(x.value.dtype) @ shared(x.value[:, :, keys], x, heads)


def _fused_part(x: AttentionInputs, heads: list[int] | None, rows: slice, keys: slice) -> Tensor:
    shut = attention.masked_cells(x, heads, rows, keys)
    chosen = slice(None) if heads is None else heads
    part = replace(
        x,
        query=take(x.query, heads, rows),
        key=shared(x.key[:, :, keys], x, heads),
        value=shared(x.value[:, :, keys], x, heads),
        mask=None if shut is None else ~shut,
        bias=None if x.bias is None else take(x.bias, heads, rows, keys),
        factors=None if x.factors is None else x.factors[chosen],
    )
    return _fused_mix(part)


def _mix(
    x: AttentionInputs, heads: list[int] | None, scratch: Tensor | None = None, out: Tensor | None = None
) -> Tensor:
    w = attention.weights(x, heads, out=scratch).to(x.value.dtype)
    return torch.matmul(w, shared(x.value, x, heads), out=out)


def _wants_gradient(x: AttentionInputs) -> bool:
    parts = (x.query, x.key, x.value, x.bias, x.mask, x.sinks)
    return torch.is_grad_enabled() and any(part is not None and part.requires_grad for part in parts)
