"""Applies interventions to what an attention module was given. The attention function itself stays the one it is."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.attention.masks import MaskFunction, Places, RowMask, places
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.interventions import (
    Adapter,
    Intervention,
    Mask,
    Positions,
    Scale,
    applies,
    effective_masks,
)
from attention_models.protocol.values import Site, is_long

MaskFunctions = dict[tuple[Hashable, ...], MaskFunction]
"""By what they were made of: layers that are masked alike share one, whose cells are evaluated once."""


def edited(
    x: AttentionInputs,
    site: Site,
    interventions: Sequence[Intervention],
    past: int = 0,
    functions: MaskFunctions | None = None,
    real: Tensor | None = None,
) -> AttentionInputs:
    """`x` with the interventions that apply at `site`; `x` itself where none does.

    `past` is the place of the first query, which is not 0 where the tokens before it are in a cache. `functions`
    are those that other sites of the same run left behind. `real`, (batch, keys) bool, is False of padding, which
    stays masked whatever mask takes the place of the trained one.
    """
    for item in interventions:
        if isinstance(item, Positions):
            if item.mode == "off" and x.bias is not None:
                x = replace(x, bias=None)  # a learned bias by distance is a sense of order too
        elif isinstance(item, (Adapter, Ablation)):
            continue  # they change weights of the model, and what is made of attention's output
        elif not applies(item, site) or (item.head is not None and item.head >= x.heads):
            continue
        elif isinstance(item, Scale):
            x = replace(x, factors=_factors(x, item))
    masks = [item for item in interventions if isinstance(item, Mask) and applies(item, site)]
    first_key = past + x.queries - x.keys if past and site.stack == "decoder" else 0  # a sliding window has forgotten
    return _masked(x, masks, past, first_key, {} if functions is None else functions, real) if masks else x


def _factors(x: AttentionInputs, item: Scale) -> Tensor:
    factors = torch.ones(x.heads, device=x.query.device) if x.factors is None else x.factors.clone()
    if item.head is None:
        factors *= item.factor
    else:
        factors[item.head] *= item.factor
    return factors  # (heads,)


def _masked(
    x: AttentionInputs, masks: list[Mask], past: int, first_key: int, made: MaskFunctions, real: Tensor | None
) -> AttentionInputs:
    per_head = x.mask is not None and x.mask.shape[1] != 1
    # the number is of a tensor that the function keeps alive, so that it stays one's own
    trained = (id(x.mask), x.causal, x.queries, x.keys, x.query.device, past, first_key, id(real))
    functions: list[MaskFunction] = []  # heads that are masked alike share one
    of_head = []
    for head in range(x.heads):
        chain = tuple(effective_masks(item for item in masks if item.head in (None, head)))
        key = (*trained, chain, head if per_head else None)
        if key not in made:
            made[key] = _mask_function(x, head, chain, past, first_key, real)
        if made[key] not in functions:
            functions.append(made[key])
        of_head.append(functions.index(made[key]))
    batch = 1 if x.mask is None and real is None else x.query.shape[0]
    mask = RowMask(functions, of_head if len(functions) > 1 else (0,), batch)
    held = mask if is_long(x.queries, x.keys) else mask.block()
    return replace(x, bias=_with_added(x), causal=False, mask=held)  # (batch or 1, heads or 1, queries, keys)


def _mask_function(
    x: AttentionInputs, head: int, chain: Sequence[Mask], past: int, first_key: int, real: Tensor | None
) -> MaskFunction:
    """What `chain` makes of one head's trained mask."""
    device = x.query.device
    batch = 1 if x.mask is None and real is None else x.query.shape[0]
    ends = x.keys if real is None else _ends(real)

    def cells(rows: Places, keys: slice) -> Tensor:
        q = places(rows, device, past)[:, None]  # (rows, 1)
        k = places(keys, device, first_key)[None]  # (1, keys)
        if isinstance(x.mask, RowMask):  # without the table of what it reaches, which nobody needs any more
            visible = x.mask.block([head], rows, keys)[:, 0]
        else:
            masked = attention.masked_cells(x, Part([head], rows, keys))
            visible = torch.ones((), dtype=torch.bool, device=device) if masked is None else ~masked[:, 0]
        shape = (batch, len(q), k.shape[1])
        for item in chain:
            if item.paints:
                visible = _painted(item, visible.expand(shape), rows, past, first_key + keys.start)
            else:
                allowed = torch.as_tensor(item.allows(q, k, ends), device=device)  # broadcasts to (rows, keys)
                if item.replaces and real is not None:
                    visible = real[:, None, keys] & allowed
                else:
                    visible = allowed if item.replaces else visible & allowed
        return visible.expand(shape)[:, None]

    return MaskFunction(cells, x.queries, x.keys, device, tuple(t for t in (x.mask, real) if t is not None))


def _ends(real: Tensor) -> Tensor:
    """How far each text of a batch goes: the keys up to its last one that is no padding, (batch, 1, 1)."""
    places = torch.arange(1, real.shape[1] + 1, device=real.device)
    return (real * places).amax(dim=1)[:, None, None]


def _painted(item: Mask, visible: Tensor, rows: Places, past: int, first_key: int) -> Tensor:
    """`visible`, (batch, rows, keys) from the key at place `first_key` on, with the cells of `item` as painted."""
    listed = rows if isinstance(rows, list) else range(rows.start, rows.stop)
    here: dict[int, list[int]] = {}
    for i, row in enumerate(listed):
        here.setdefault(past + row, []).append(i)
    # of a cell named twice the last counts; those painted on a longer text are not here
    cells = {(i, key - first_key): allow for query, key, allow in item.cells or () for i in here.get(query, ())}
    cells = {(i, column): allow for (i, column), allow in cells.items() if 0 <= column < visible.shape[2]}
    painted = visible.clone()
    if cells:
        at = torch.tensor(list(cells), device=visible.device)  # (cells, 2)
        painted[:, at[:, 0], at[:, 1]] = torch.tensor(list(cells.values()), device=visible.device)
    return painted


def _with_added(x: AttentionInputs) -> Tensor | None:
    """The position bias, with what an added mask carries beside its "not here": ALiBi puts its slopes there."""
    if x.mask is None or x.mask.dtype == torch.bool:
        return x.bias
    added = attention.added_bias(x)
    return added if x.bias is None else x.bias + added
