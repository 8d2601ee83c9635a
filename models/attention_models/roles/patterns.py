"""Which keys each query would attend to if a head did one thing and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from attention_models.roles.token_features import TokenFeatures

Cells = Callable[[TokenFeatures, TokenFeatures, slice, slice], Tensor]
"""From the tokens of queries and keys, some rows and some keys to (texts, rows, keys) bool."""


def _places(q: TokenFeatures, rows: slice, keys: slice) -> tuple[Tensor, Tensor]:
    """(1, rows, 1) and (1, 1, keys)."""
    device = q.ids.device
    i = torch.arange(rows.start, rows.stop, device=device)[None, :, None]
    return i, torch.arange(keys.start, keys.stop, device=device)[None, None, :]


def _for_all_rows(found: Tensor, rows: slice) -> Tensor:
    """(texts, keys) as (texts, rows, keys)."""
    return found[:, None, :].expand(-1, rows.stop - rows.start, -1)


def _previous(q: TokenFeatures, k: TokenFeatures, rows: slice, keys: slice) -> Tensor:
    i, j = _places(q, rows, keys)
    return (j == i - 1).expand(len(q.ids), -1, -1)


def _self(q: TokenFeatures, k: TokenFeatures, rows: slice, keys: slice) -> Tensor:
    i, j = _places(q, rows, keys)
    return (j == i).expand(len(q.ids), -1, -1)


def _first(q: TokenFeatures, k: TokenFeatures, rows: slice, keys: slice) -> Tensor:
    j = torch.arange(keys.start, keys.stop, device=k.ids.device)
    return _for_all_rows(j == k.first[:, None], rows)


def _special(q: TokenFeatures, k: TokenFeatures, rows: slice, keys: slice) -> Tensor:
    return _for_all_rows(k.marks[:, keys], rows)


def _rare(q: TokenFeatures, k: TokenFeatures, rows: slice, keys: slice) -> Tensor:
    return _for_all_rows(k.rare[:, keys], rows)


def _copy(q: TokenFeatures, k: TokenFeatures, rows: slice, keys: slice) -> Tensor:
    i, j = _places(q, rows, keys)
    return (q.ids[:, rows, None] == k.ids[:, None, keys]) & (j < i)


def _induction(q: TokenFeatures, k: TokenFeatures, rows: slice, keys: slice) -> Tensor:
    i, j = _places(q, rows, keys)
    return (q.ids[:, rows, None] == k.ids_before[:, None, keys]) & (j < i)


def _next(q: TokenFeatures, k: TokenFeatures, rows: slice, keys: slice) -> Tensor:
    wanted = q.next_words[:, rows, None]
    return (wanted == k.words[:, None, keys]) & (wanted >= 0)


CELLS: dict[str, Cells] = {
    "previous": _previous,
    "self": _self,
    "first": _first,
    "special": _special,
    "copy": _copy,
    "induction": _induction,
    "next": _next,
    "rare": _rare,
}
"""By the names of `attention_models.protocol.roles.PATTERNS`."""
