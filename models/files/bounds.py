"""Bounds on what a checkpoint's settings may say, by what its weights account for. They hold before a library reads it.

A library makes as many layers, experts or labels as a config says, one by one, however few tensors there are for them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from models.protocol.hub import Tensors

MOST_SIDE = 4096
"""Pixels of a picture's side, as a model takes it."""

_LEAST = 4096  # what is allowed whatever the weights are: sides of pictures, widths of what is no tensor
_ROOM = 8  # a number that sizes something may be so many times the largest dimension
_LENGTHS = re.compile(  # what sizes nothing, or a table that is checked as a tensor
    r"position|theta|base|length|context|sliding|window_layers|token|_id$|_ids$|_ctx$|_len$|seed|distance|chunk|seq|scal"
)
_MOST_LENGTH = 1 << 31
_MOST_DEPTH = 64
_MOST_VALUES = 1_000_000
_VALUES_A_ROW = 16  # an entry of a vocabulary has its id, and the merges that lead to it
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Accounted:
    """What weights account for."""

    tensors: int
    largest: int  # dimension of any of them

    @classmethod
    def by(cls, tensors: Tensors) -> Accounted:
        return cls(len(tensors.shapes), max((max(shape, default=0) for shape in tensors.shapes.values()), default=0))

    @property
    def most(self) -> int:
        """The largest number that may size a loop or a tensor."""
        return _ROOM * max(self.tensors, self.largest, _LEAST // _ROOM)

    @property
    def words(self) -> str:
        return f"its weights are {self.tensors:,} tensors, with no dimension above {self.largest:,}"


def out_of_bounds(settings: dict[str, Any], known: Collection[str], accounted: Accounted) -> str:
    """The first setting that no weights of these sizes can go with, as a clause; "" where there is none.

    Args:
        known: names of the settings that the model's code reads; numbers under any other name size nothing.
    """
    for name, value in _walk("", settings, 0):
        last = name.rpartition(".")[2]
        if value is _TOO_DEEP:
            return f"{name[:_SHOWN]} is nested more than {_MOST_DEPTH} levels deep"
        if isinstance(value, (list, dict)):
            if len(value) > accounted.most:
                return f"{name} has {len(value):,} entries, and {accounted.words}"
        elif last in known and abs(value) > (_MOST_LENGTH if _LENGTHS.search(last) else accounted.most):
            return f"{name} is {_shown(value)}, and {accounted.words}"
    return ""


def too_many_values(content: bytes, rows: int | None = None) -> str:
    """Why the text of a JSON file is not parsed, as a clause: it holds more values than any does; "" where it is.

    Args:
        rows: of a tokenizer, the tokens that its model knows.
    """
    most = _MOST_VALUES + _VALUES_A_ROW * (rows or 0)
    found = sum(content.count(sign) for sign in (b",", b"[", b"{"))
    return f"it holds {found:,} values, more than {most:,}" if found > most else ""


class _TooDeep:
    pass


_TOO_DEEP = _TooDeep()


def _walk(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Every table, list and number in `value`, by its place in it."""
    if depth > _MOST_DEPTH:
        yield name, _TOO_DEEP
    elif isinstance(value, dict):
        yield name or "it", value
        for key, inner in value.items():
            yield from _walk(f"{name}.{key}" if name else str(key), inner, depth + 1)
    elif isinstance(value, list):
        yield name, value
        for inner in value:
            yield from _walk(name, inner, depth + 1)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield name, value


def _shown(value: int) -> str:
    text = f"{value:,}" if abs(value) < 10**20 else json.dumps(value)
    return text if len(text) <= _SHOWN else f"a number of {len(text):,} digits"
