"""Applies interventions to what an attention module was given. The attention function itself stays the one it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from models import attention
from models.attention import AttentionInputs
from models.interventions import Intervention, Mask, Positions, Scale, applies, precedence
from models.values import Site


def edited(x: AttentionInputs, site: Site, interventions: Sequence[Intervention], past: int = 0) -> AttentionInputs:
    """`x` with the interventions that apply at `site`; `x` itself where none does.

    `past` is the place of the first query, which is not 0 where the tokens before it are in a cache.
    """
    for item in interventions:
        if isinstance(item, Positions):
            if item.mode == "off" and x.bias is not None:
                x = replace(x, bias=None)  # a learned bias by distance is a sense of order too
        elif not applies(item, site) or (item.head is not None and item.head >= x.heads):
            continue
        elif isinstance(item, Scale):
            x = replace(x, factors=_factors(x, item))
    masks = [item for item in interventions if isinstance(item, Mask) and applies(item, site)]
    first_key = past + x.queries - x.keys if past and site.stack == "decoder" else 0  # a sliding window has forgotten
    return _masked(x, masks, past, first_key) if masks else x


def _factors(x: AttentionInputs, item: Scale) -> Tensor:
    factors = torch.ones(x.heads, device=x.query.device) if x.factors is None else x.factors.clone()
    if item.head is None:
        factors *= item.factor
    else:
        factors[item.head] *= item.factor
    return factors  # (heads,)


def _masked(x: AttentionInputs, masks: list[Mask], past: int, first_key: int) -> AttentionInputs:
    shape = (x.heads, x.queries, x.keys)
    trained = attention.blocked(x)
    if trained is None:
        trained = torch.zeros(1, 1, 1, 1, dtype=torch.bool, device=x.query.device)
    shut = trained[0].expand(-1, *shape[1:])  # (heads or 1, queries, keys)
    for item in sorted(masks, key=precedence):
        if item.head is None:
            shut = _shut(item, shut, x, past, first_key)
        elif item.head < x.heads:
            shut = shut.expand(shape).clone()
            shut[item.head] = _shut(item, shut[item.head][None], x, past, first_key)[0]
    x = replace(x, bias=_with_added(x), causal=False)
    return replace(x, mask=~shut[None])  # (1, heads or 1, queries, keys)


def _shut(item: Mask, now: Tensor, x: AttentionInputs, past: int, first_key: int) -> Tensor:
    """Which cells are blocked under `item`, (heads or 1, queries, keys); `now` is the mask that it builds on."""
    q = torch.arange(past, past + x.queries, device=now.device)[:, None]  # (queries, 1)
    k = torch.arange(first_key, first_key + x.keys, device=now.device)[None]  # (1, keys)
    n = item.window or 0
    match item.kind:
        case "trained":
            return now
        case "none" | "full":
            return torch.zeros_like(now)
        case "causal":
            return (k > q).expand(now.shape)
        case "prefix":
            return ((k > q) & (k >= n)).expand(now.shape)
        case "padding":
            return now | (k >= x.keys - n)
        case "window":
            return now | ((q - k).abs() >= n)
        case "blocks":
            return now | (q // n != k // n)
        case "painted":
            return _painted(item, now, past, first_key)


def _painted(item: Mask, now: Tensor, past: int, first_key: int) -> Tensor:
    shut = now.clone()
    # of a cell named twice the last counts; those painted on a longer text are not here
    here = {(q - past, k - first_key): allow for q, k, allow in item.cells or ()}
    rows, columns = now.shape[1:]
    cells = {(q, k): allow for (q, k), allow in here.items() if 0 <= q < rows and 0 <= k < columns}
    if cells:
        at = torch.tensor(list(cells), device=now.device)  # (cells, 2)
        shut[:, at[:, 0], at[:, 1]] = ~torch.tensor(list(cells.values()), device=now.device)
    return shut


def _with_added(x: AttentionInputs) -> Tensor | None:
    """The position bias, with what an added mask carries beside its "not here": ALiBi puts its slopes there."""
    if x.mask is None or x.mask.dtype == torch.bool:
        return x.bias
    added = attention.added_bias(x)
    return added if x.bias is None else x.bias + added
