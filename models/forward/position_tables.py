"""Tables of positions: the modules that give each position its vector, and what their numbers say."""

from __future__ import annotations

import re
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from torch import Tensor, nn

from models.files.devices import weight_of
from models.forward.model import Model
from models.protocol.arrays import read_only
from models.textbook import waves

LARGEST_IMAGE = 512  # rows of a table that are compared with each other; beyond, every second (third, ...) one

_NAME = re.compile(r"(^|\.)(wpe|position_embeddings?|embed_positions|pos_embed(dings)?)$")
_LAYOUTS: tuple[tuple[waves.Layout, str], ...] = (
    ("interleaved", "a sine and a cosine in turn"),
    ("halves", "all sines in the first half of the dimensions, all cosines in the second"),
)


def position_tables(model: Model) -> dict[str, nn.Module]:
    """The modules that give each position its vector, by name: learned or sinusoidal. Empty for RoPE, T5 and none."""
    return {
        name: module
        for module, name in model.module_names.items()
        if _NAME.search(name) and _weight(module) is not None
    }


def table_rows(table: nn.Module) -> Tensor:
    """The vectors that a table can give, from the one of a text's first token on: (positions, width)."""
    weight = _weight(table)
    assert weight is not None
    return weight[first_id(table) + int(getattr(table, "offset", 0)) :]


def first_id(table: nn.Module) -> int:
    """The position id of a text's first token: RoBERTa and its kin begin after the id of their padding."""
    padding = getattr(table, "padding_idx", None)
    # where the module adds an offset of its own it is asked for 0
    return padding + 1 if isinstance(padding, int) and not hasattr(table, "offset") else 0


def _weight(module: nn.Module) -> Tensor | None:
    for name in ("weight", "weights"):  # fairseq's sinusoids are a buffer, in the plural
        weight = getattr(module, name, None)
        if isinstance(weight, Tensor) and weight.dim() == 2:
            return weight_of(module, name)
    return None


class TableNumbers(NamedTuple):
    """What is drawn of a table, read-only."""

    table: np.ndarray  # (positions, width) float32
    alike: np.ndarray  # (rows, rows) float32: cosine between every `step`th two rows
    step: int
    components: np.ndarray  # (3, positions) float32
    shares: np.ndarray  # (3,) float32


_known: WeakKeyDictionary[nn.Module, TableNumbers] = WeakKeyDictionary()


def numbers_of(table: nn.Module) -> TableNumbers:
    """Worked out once a table."""
    if table not in _known:
        rows = table_rows(table).detach().float().cpu().numpy().copy()
        step = -(-len(rows) // LARGEST_IMAGE)
        components, shares = waves.principal_components(rows)
        alike = waves.cosines(rows[::step])
        found = (part.astype(np.float32) for part in (rows, alike, components, shares))
        table_, alike_, components_, shares_ = (read_only(part) for part in found)
        _known[table] = TableNumbers(table_, alike_, step, components_, shares_)
    return _known[table]


def wave_layout(rows: np.ndarray, table: nn.Module) -> str | None:
    """How the waves lie in the dimensions, None for a table that is no waves. Judged by the numbers."""
    for layout, words in _LAYOUTS:
        if np.abs(rows - waves.sinusoidal(len(rows), rows.shape[1], layout=layout)).max() < 1e-3:
            return words
    return "in an order of this family's own" if "Sinusoidal" in type(table).__name__ else None
