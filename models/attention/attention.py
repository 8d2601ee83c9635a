"""The one attention function: every attention weight of the program comes from here.

For one head, with query q_i, key k_j, value v_j (row vectors):

    score    s_ij = scale * q_i . k_j          scale = 1/sqrt(d_k): Vaswani et al. 2017, equation 1
             s_ij + b_ij                       a position bias: Raffel et al. 2020 (T5), section 2.1
             c * tanh(s_ij / c)                a soft cap: Gemma Team 2024 (Gemma 2), section 2
    weight   w_ij = exp(s_ij) / Z_i            over the keys j that the mask lets i look at, else exactly 0
             Z_i = sum_j exp(s_ij) [+ exp(sink)]
    output   o_i = sum_j w_ij v_j

Any part of the weights is computed from the kept inputs when somebody looks at it. Outputs (`models.attention.output`)
of up to `EXACT_KEYS` keys are computed in the order of transformers' eager attention and equal it bit for bit; longer
ones go through torch's fused kernel, which never builds the weights and agrees to rounding (but on devices in
`UNTRUSTED`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from models.attention.masks import RowMask, settled

Rows = slice | list[int] | None

# Beyond this many keys building the weights costs more than the fused kernel (measured: 1.05 at 512, 1.3 at 1,024).
EXACT_KEYS = 512

# Devices whose fused kernel is not used: in half precision that of MPS lets a causal query look at later keys, and says
# nothing of it (pytorch issues 195910, 174861, pull requests 169222, 184180). What is shown must be what was computed.
UNTRUSTED = frozenset({"mps"})


@dataclass(frozen=True, slots=True, eq=False)
class AttentionInputs:
    """Everything that the weights of one attention module depend on, as the module passed it on.

    Queries and keys carry whatever the model did to them before (rotation, normalisation).
    """

    query: Tensor  # (batch, heads, queries, head_dim)
    key: Tensor  # (batch, key_heads, keys, head_dim); heads is a multiple of key_heads
    value: Tensor  # (batch, key_heads, keys, value_dim)
    scale: float
    causal: bool = False  # no mask tensor, but query i may only look at keys up to its own place
    # broadcasts to (batch, heads, queries, keys): bool, True may be looked at; or added. Of a long text a RowMask.
    mask: Tensor | None = None
    bias: Tensor | None = None  # broadcasts to (batch, heads, queries, keys), added to the scaled scores
    softcap: float | None = None
    sinks: Tensor | None = None  # (heads,): a score that takes its share of each row and gives no value
    factors: Tensor | None = None  # (heads,): what an intervention multiplies each head's scale by
    given: Tensor | None = None  # (batch, heads, queries, keys): weights of a model that shows nothing else of them

    @property
    def heads(self) -> int:
        return self.query.shape[1]

    @property
    def queries(self) -> int:
        return self.query.shape[2]

    @property
    def keys(self) -> int:
        return self.key.shape[2]

    @property
    def group(self) -> int:
        """Query heads that share one key/value head (1 unless grouped-query: Ainslie et al. 2023)."""
        return self.query.shape[1] // self.key.shape[1]


def scores(
    x: AttentionInputs,
    heads: list[int] | None = None,
    rows: Rows = None,
    out: Tensor | None = None,
    keys: slice | None = None,
) -> Tensor:
    """What enters the softmax, before the mask: scaled, biased, soft-capped. (batch, heads, rows, keys) float32."""
    if x.given is not None:
        raise ValueError("This model gives its weights alone: the scores that they were made of are not seen.")
    s = _products(x, heads, rows, out, keys)
    if x.bias is not None:
        s += take(x.bias, heads, rows, keys)
    if x.softcap is not None:
        s = s.div_(x.softcap).tanh_() * x.softcap  # a new tensor: tanh's gradient needs its own result
    if x.mask is not None and x.mask.dtype != torch.bool:
        s += added_bias(x, heads, rows, keys)
    return s


def _products(
    x: AttentionInputs, heads: list[int] | None, rows: Rows, out: Tensor | None, keys: slice | None
) -> Tensor:
    """scale * q_i . k_j, (batch, heads, rows, keys) float32."""
    query = take(x.query, heads, rows).float()  # (batch, heads, rows, head_dim)
    plain = x.keys <= EXACT_KEYS or x.factors is not None or query.requires_grad or x.key.requires_grad
    if plain or (out is not None and not out.is_contiguous()):
        return _unscaled(x, heads, rows, out, keys).mul_(x.scale if x.factors is None else _scales(x, heads))
    # A long text is read and written at the speed of memory. The product scales as it goes, and query heads that share
    # a key are rows of one product, so that no key is copied.
    key = x.key if heads is None else shared(x.key, x, heads)
    key = (key if keys is None else key[:, :, keys]).float().flatten(0, 1)  # (batch * key heads, keys, head_dim)
    s = torch.empty(*query.shape[:3], key.shape[1], device=query.device) if out is None else out
    product = s.view(len(key), -1, key.shape[1])
    torch.baddbmm(product, query.reshape(len(key), -1, key.shape[2]), key.mT, beta=0, alpha=x.scale, out=product)
    return s


def _unscaled(
    x: AttentionInputs, heads: list[int] | None, rows: Rows, out: Tensor | None, keys: slice | None
) -> Tensor:
    """q_i . k_j, (batch, heads, rows, keys) float32."""
    key = shared(x.key, x, heads)
    key = key if keys is None else key[:, :, keys]
    return torch.matmul(take(x.query, heads, rows).float(), key.float().mT, out=out)


def added_bias(
    x: AttentionInputs, heads: list[int] | None = None, rows: Rows = None, keys: slice | None = None
) -> Tensor:
    """What an added mask says beside its "not here": 0 in most models, the slopes of ALiBi in some."""
    assert x.mask is not None
    added = take(x.mask, heads, rows, keys)
    return added.masked_fill(added <= masked_below(x.mask), 0.0)


def masked_cells(
    x: AttentionInputs, heads: list[int] | None = None, rows: Rows = None, keys: slice | None = None
) -> Tensor | None:
    """Which keys each query may not look at: bool, broadcasts to (batch, heads, rows, keys); None where all may be."""
    if x.given is not None:
        shut = take(x.given, heads, rows, keys) == 0  # exactly: such a model says no more of what may not be looked at
        return shut if bool(shut.any()) else None
    if isinstance(x.mask, RowMask) and _always_open(x, x.mask, heads, rows, keys) == range(x.keys)[keys or slice(None)]:
        return None
    if x.mask is not None:
        mask = take(x.mask, heads, rows, keys)
        return ~mask if mask.dtype == torch.bool else mask <= masked_below(mask)
    if x.causal:
        return _is_later(x, rows, keys)[None, None]
    return None


def reach(x: AttentionInputs, heads: list[int] | None, rows: slice) -> slice:
    """The shortest run of keys outside of which nothing may be looked at from `rows` (with a start and a stop).

    What lies outside costs nothing: the future of a causal layer, and what a sliding window leaves behind.
    """
    if x.given is not None:
        return slice(0, x.keys)
    if x.mask is None:
        return slice(0, min(x.keys, rows.stop) if x.causal else x.keys)
    if isinstance(x.mask, RowMask):
        return x.mask.reach(heads, rows)
    shut = masked_cells(x, heads, rows)
    assert shut is not None
    seen = (~shut).flatten(0, -2).any(dim=0)  # (keys or 1,)
    places = torch.nonzero(seen.cpu())[:, 0]  # brought over once: each number asked of a device is a wait for it
    if not len(places):
        return slice(0, 0)
    return slice(int(places[0]), int(places[-1]) + 1) if len(seen) == x.keys else slice(0, x.keys)


def masked_scores(
    x: AttentionInputs,
    heads: list[int] | None = None,
    rows: Rows = None,
    out: Tensor | None = None,
    keys: slice | None = None,
) -> tuple[Tensor, Tensor | None]:
    """As `scores`, with -inf where the key may not be looked at.

    And what a mask shuts, as in `masked_cells`; None too where every row is known to look at something.
    """
    if x.keys <= EXACT_KEYS and _is_causal_alone(x):
        # one pass over what the cache holds: the product is rounded as by itself, since 0 or -inf is added to it
        s = _unscaled(x, heads, rows, out, keys)
        return torch.add(_future(x, rows, keys), s, alpha=x.scale, out=None if s.requires_grad else s), None
    s = scores(x, heads, rows, out, keys)
    if isinstance(x.mask, RowMask) and (inner := _always_open(x, x.mask, heads, rows, keys)):
        # what all rows may look at is not touched, only what lies to its sides
        outer = range(x.keys)[keys or slice(None)]
        for side in (slice(outer.start, inner.start), slice(inner.stop, outer.stop)):
            shut = masked_cells(x, heads, rows, side) if side.start < side.stop else None
            if shut is not None:
                s[..., side.start - outer.start : side.stop - outer.start].masked_fill_(shut, -torch.inf)
        return s, None
    shut = masked_cells(x, heads, rows, keys) if x.mask is not None else None
    if shut is not None:
        s.masked_fill_(shut, -torch.inf)
    elif x.causal:
        _hide_future(s, x, rows, keys)
    return s, shut


def _always_open(x: AttentionInputs, mask: RowMask, heads: list[int] | None, rows: Rows, keys: slice | None) -> range:
    """A run of `keys` that all of `rows` may look at, as far as one is known; empty for rows that are listed."""
    listed, wanted = settled(rows, x.queries), range(x.keys)[keys or slice(None)]
    run = slice(0, 0) if isinstance(listed, list) else mask.open_run(heads, listed)
    return range(max(wanted.start, run.start), min(wanted.stop, run.stop))


def weights(
    x: AttentionInputs,
    heads: list[int] | None = None,
    rows: Rows = None,
    out: Tensor | None = None,
    keys: slice | None = None,
) -> Tensor:
    """Attention weights, (batch, heads, rows, keys) float32: rows sum to 1 (less a sink's share), masked cells are 0.

    A row that may look at nothing is all 0, as in torch's fused kernel. `out` is room to compute in. `keys` leaves out
    keys that may not be looked at from any of `rows` (see `reach`).
    """
    if x.given is not None:
        return take(x.given, heads, rows, keys).float()
    s, shut = masked_scores(x, heads, rows, out, keys)
    if x.sinks is not None:
        sink = x.sinks.float() if heads is None else x.sinks[heads].float()
        s = torch.cat([s, sink[None, :, None, None].expand(*s.shape[:-1], 1)], dim=-1)
    # in place where no gradient is wanted: a second buffer costs the forward pass a tenth
    own = s.requires_grad or s.device.type in UNTRUSTED
    w = torch.softmax(s, dim=-1) if own else torch.softmax(s, dim=-1, out=s)
    if x.sinks is not None:
        w = w[..., :-1]
    if shut is not None:
        nothing = shut.all(dim=-1, keepdim=True)
        w = w.masked_fill(nothing, 0.0) if w.requires_grad else w.masked_fill_(nothing, 0.0)
    return w


def take(t: Tensor, heads: list[int] | None, rows: Rows, keys: slice | None = None) -> Tensor:
    """Heads (dim 1), rows (dim 2) and keys (dim 3) of `t`; a dimension of size 1 is broadcast, so left as it is."""
    if isinstance(t, RowMask):
        return t.block(heads, rows, keys)
    if heads is not None and t.shape[1] != 1:
        run = heads == list(range(heads[0], heads[0] + len(heads)))
        t = t[:, heads[0] : heads[0] + len(heads)] if run else t[:, heads]  # a slice is a view, a list a copy
    if rows is not None and t.shape[2] != 1:
        t = t[:, :, rows]
    if keys is not None and t.shape[3] != 1:
        t = t[..., keys]
    return t


def shared(t: Tensor, x: AttentionInputs, heads: list[int] | None) -> Tensor:
    """Keys or values, one for each query head: (batch, heads, keys, dim)."""
    if heads is not None:
        return take(t, [head // x.group for head in heads], None)
    return t if x.group == 1 else t.repeat_interleave(x.group, dim=1)


def _is_causal_alone(x: AttentionInputs) -> bool:
    """Whether scale and future are all that is done to a product before the softmax."""
    return x.causal and all(part is None for part in (x.mask, x.bias, x.softcap, x.factors, x.given))


def _hide_future(s: Tensor, x: AttentionInputs, rows: Rows, keys: slice | None) -> None:
    """-inf in causal scores (batch, heads, rows, keys) beyond each query's own place.

    As torch's kernel has it, the first query sees the first key only.
    """
    if x.keys <= EXACT_KEYS:  # in the cache; one run of memory
        s += _future(x, rows, keys)
        return
    wanted = range(x.keys) if keys is None else range(x.keys)[keys]
    first = range(x.queries)[rows].start if isinstance(rows, slice) else 0
    later = slice(max(wanted.start, first + 1), wanted.stop)  # what some row may not look at: the past is not touched
    if later.start < later.stop:
        s[..., later.start - wanted.start :].masked_fill_(_is_later(x, rows, later), -torch.inf)


def _is_later(x: AttentionInputs, rows: Rows, keys: slice | None = None) -> Tensor:
    """(rows, keys) bool: which keys lie in the future of each query of a causal layer."""
    device = x.query.device
    i = torch.arange(x.queries, device=device)[slice(None) if rows is None else rows]
    return torch.arange(x.keys, device=device)[slice(None) if keys is None else keys] > i[:, None]


def _future(x: AttentionInputs, rows: Rows, keys: slice | None) -> Tensor:
    """Added to causal scores of a short text, (rows, keys): 0 up to the query's own place, -inf beyond."""
    table = _future_table(x.queries, x.keys, x.query.device)
    return table[slice(None) if rows is None else rows][:, slice(None) if keys is None else keys]


@lru_cache(maxsize=2)
def _future_table(queries: int, keys: int, device: torch.device) -> Tensor:
    """Kept, since every layer of a forward pass adds the same."""
    return torch.full((queries, keys), -torch.inf, device=device).triu_(1)


def _scales(x: AttentionInputs, heads: list[int] | None) -> Tensor:
    assert x.factors is not None
    factors = x.factors if heads is None else x.factors[heads]
    return (x.scale * factors)[:, None, None]  # (heads, 1, 1)


def masked_below(mask: Tensor) -> float:
    """Added masks say "not here" by the dtype's lowest number (or -inf); half of it parts it from any bias."""
    return torch.finfo(mask.dtype).min / 2
