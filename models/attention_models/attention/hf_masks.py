"""transformers' description of a mask, a function of places, made into a mask that takes no room in a long text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from transformers.masking_utils import causal_mask_function, sdpa_mask

from attention_models.attention.masks import MaskFunction, Places, RowMask, count, places
from attention_models.protocol.values import is_long


class _Asked(Exception):
    """The function of a mask was called, so a mask is needed."""


def _ask(*_: Any) -> Tensor:
    raise _Asked


def mask_where_looked_at(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | Tensor = 0,
    kv_offset: int = 0,
    mask_function: Callable[..., Any] = causal_mask_function,
    attention_mask: Tensor | None = None,
    use_vmap: bool = False,
    device: torch.device | str = "cpu",
    **options: Any,
) -> Tensor | None:
    """As transformers' `sdpa_mask`, whose blocks a long text's `RowMask` asks for; none for a plain causal layer.

    Where there is none, the module's `is_causal` says whether it looks ahead.
    """
    place = (q_length, kv_length, q_offset, kv_offset)
    if not is_long(q_length, kv_length) or isinstance(q_offset, Tensor):
        given = {"attention_mask": attention_mask, "use_vmap": use_vmap, "device": device, **options}
        return sdpa_mask(batch_size, *place, mask_function, **given)  # type: ignore[arg-type]
    if attention_mask is not None and attention_mask.shape[-1] >= kv_length + kv_offset and bool(attention_mask.all()):
        attention_mask = None  # hides nothing
    given = {"attention_mask": attention_mask, "device": device, **options}
    try:
        return sdpa_mask(batch_size, *place, _ask, **given)  # type: ignore[arg-type]
    except _Asked:
        given |= {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False, "use_vmap": use_vmap}

    def cells(rows: Places, keys: slice) -> Tensor:
        first, function = q_offset, mask_function
        if isinstance(rows, slice):
            first += rows.start
        else:
            chosen = places(rows, torch.device(device), q_offset)
            first, function = 0, lambda b, h, q, k: mask_function(b, h, chosen[q], k)
        made = sdpa_mask(
            batch_size, count(rows), keys.stop - keys.start, first, kv_offset + keys.start, function, **given
        )
        assert made is not None
        return made

    kept = () if attention_mask is None else (attention_mask,)
    return RowMask([MaskFunction(cells, q_length, kv_length, torch.device(device), kept)], batch=batch_size)
