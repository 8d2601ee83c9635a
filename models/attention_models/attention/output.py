"""What attention hands on: each head's mix of values, from the weights of `attention_models.attention.attention`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.attention import masked_below
from attention_models.attention.incremental import BlockSize
from attention_models.attention.inputs import WHOLE, AttentionInputs, Part
from attention_models.attention.masks import GROUP, RowMask
from attention_models.protocol.values import is_long

# Bound here: while a borrowed module runs, the name in F is answered by `attention_models.forward.adopted`, which asks
# us.
_fused = F.scaled_dot_product_attention

# Weights held at once of a short text, a few heads at a time, and of a long one, a few rows at a time.
_CACHE_BLOCK = 1 << 19
_ROWS_BLOCK = BlockSize(1 << 21)

# Fewer rows than this do not keep the fused kernel busy.
_LEAST_ROWS = 128

Kernel = Callable[[AttentionInputs], Tensor]


def output(x: AttentionInputs) -> Tensor:
    """Each head's mix of values, (batch, heads, queries, value_dim), in the inputs' dtype."""
    return kernel_for(x)(x)


def kernel_for(x: AttentionInputs) -> Kernel:
    """How the output is computed: by the fused kernel, or from weights that are built, all at once or in parts."""
    if not needs_weights(x):
        return _fused_by_rows if isinstance(x.mask, RowMask) else _fused_whole
    batch, heads, queries, _ = x.query.shape
    keys = x.keys
    if is_long(queries, keys) and not x.wants_gradient:
        return _built_by_rows
    if heads == 1 or batch * heads * queries * keys <= _CACHE_BLOCK:
        return _built_whole
    return _built_by_head if x.wants_gradient else _built_by_heads


def needs_weights(x: AttentionInputs) -> bool:
    """Whether the fused kernel cannot do it (soft cap, sinks), is not exact where it must be, or is not trusted."""
    if x.softcap is not None or x.sinks is not None:
        return True
    if x.keys <= attention.EXACT_KEYS and x.query.dtype == torch.float32:
        return True
    return x.query.device.type in attention.UNTRUSTED


# --------------------------------------------------------------------------- from weights


def _built_whole(x: AttentionInputs) -> Tensor:
    """All weights at once, as eager attention has them."""
    return _mix(x, WHOLE)


def _built_by_head(x: AttentionInputs) -> Tensor:
    """One head at a time, each in memory of its own: a gradient needs what was computed."""
    return torch.cat([_mix(x, Part([head])) for head in range(x.heads)], dim=1)


def _built_by_heads(x: AttentionInputs) -> Tensor:
    """A few heads at a time, so that their weights stay in the cache."""
    batch, device = x.query.shape[0], x.query.device
    step = max(1, _CACHE_BLOCK // (batch * x.queries * x.keys))
    # the same room for all of them: fresh memory for each costs a tenth of the time
    scratch = torch.empty(batch, step, x.queries, x.keys, device=device)
    mixed = torch.empty(batch, x.heads, x.queries, x.value.shape[-1], device=device, dtype=x.value.dtype)
    for start in range(0, x.heads, step):
        stop = min(start + step, x.heads)
        _mix(x, Part(list(range(start, stop))), scratch[:, : stop - start], mixed[:, start:stop])
    return mixed


def _built_by_rows(x: AttentionInputs) -> Tensor:
    """Some rows of a long text at a time."""
    return _by_rows(x, _mix, x.query.shape[0] * x.heads)


def _mix(x: AttentionInputs, part: Part, scratch: Tensor | None = None, out: Tensor | None = None) -> Tensor:
    """Weights times values, (batch, heads, rows, value_dim); the weights are built in `scratch`."""
    w = attention.weights(x, part, scratch).to(x.value.dtype)
    return torch.matmul(w, part.take_keys(x.value, x.heads), out=out)


# --------------------------------------------------------------------------- by the fused kernel


def _fused_whole(x: AttentionInputs) -> Tensor:
    mask, causal = x.mask, x.causal
    if mask is not None and mask.dtype != torch.bool:
        # the lowest number only says "not here" beside a higher one: a row that holds nothing else would become a mean
        mask = mask.masked_fill(mask <= masked_below(mask), -torch.inf)
    if x.bias is not None:
        masked = attention.masked_cells(x)
        bias = x.bias if masked is None else x.bias.masked_fill(masked, -torch.inf)
        mask, causal = (bias if mask is None or mask.dtype == torch.bool else bias + mask), False
    query = x.query if x.factors is None else x.query * x.factors[:, None, None].to(x.query.dtype)
    return _fused(
        query,
        WHOLE.take_keys(x.key, x.heads),
        WHOLE.take_keys(x.value, x.heads),
        attn_mask=mask,
        is_causal=causal,
        scale=x.scale,
    )


def _fused_by_rows(x: AttentionInputs) -> Tensor:
    """Some rows at a time, so that no mask of all cells is held."""
    return _by_rows(x, _fused_part, 1)


def _fused_part(x: AttentionInputs, part: Part) -> Tensor:
    masked = attention.masked_cells(x, part)
    alone = replace(
        x,
        query=part.take_queries(x.query),
        key=part.take_keys(x.key, x.heads),
        value=part.take_keys(x.value, x.heads),
        mask=None if masked is None else ~masked,
        bias=None if x.bias is None else part.take_cells(x.bias),
        factors=None if x.factors is None else part.take_per_head(x.factors),
    )
    return _fused_whole(alone)


# --------------------------------------------------------------------------- row by row


def _by_rows(x: AttentionInputs, mix: Callable[[AttentionInputs, Part], Tensor], held: int) -> Tensor:
    """As `output`, some rows at a time with the keys visible to them: a window of w keys costs n x w, not n x n.

    `mix` gives the output of a part; it holds `held` numbers for each of its cells.
    """
    mixed = x.value.new_zeros(*x.query.shape[:3], x.value.shape[-1])
    for heads in x.mask.heads_alike() if isinstance(x.mask, RowMask) else (None,):
        for rows in _row_blocks(x, heads, held):
            keys = attention.reach(x, Part(heads, rows))
            if keys.start < keys.stop:
                mixed[:, slice(None) if heads is None else heads, rows] = mix(x, Part(heads, rows, keys))
    return mixed


def _row_blocks(x: AttentionInputs, heads: list[int] | None, held: int) -> Iterator[slice]:
    """Runs of rows, many enough to fill the kernel, so few that what they do not share costs little beside it."""
    room = _ROWS_BLOCK.on(x.query.device)
    start = 0
    while start < x.queries:
        first = attention.reach(x, Part(heads, slice(start, start + 1)))
        width = max(1, first.stop - first.start)
        step = max(_LEAST_ROWS, width // 4 // GROUP * GROUP)  # part of a group reaches as far as all of it
        while step > 1 and held * step * (width + step) > room:
            step //= 2
        yield slice(start, min(start + step, x.queries))
        start += step
