"""Bounds on what a checkpoint's settings may say, by what its weights account for. They hold before a library reads it.

A library makes as many layers, experts or labels as a config says, one by one, however few tensors there are for them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from attention_models.protocol.hub import Tensors

MOST_SIDE = 4096
"""Pixels of a picture's side, as a model takes it."""

_LEAST = 4096  # what is allowed whatever the weights are: sides of pictures, widths of what is no tensor
_ROOM = 8  # a number that sizes something may be so many times the largest dimension
_SIZES_NOTHING = re.compile(r"theta|base|sliding|_id$|_ids$|token_index$|seed|distance|scal")
_LENGTHS = re.compile(r"position|length|context|window_layers|tokens?$|_ctx$|_len$|chunk|seq")
_MOST_LENGTH = 1 << 24  # tokens; the longest text that any model is made for has ten million
_CODES, _MOST_CODES = re.compile(r"vocab"), 1 << 14  # of pictures (BEiT): only training has a matrix of as many rows
_MOST_DEPTH = 64
MOST_VALUES = 1_000_000
"""In a table of settings."""

_LEAST_VALUES, _VALUES_A_ROW = 100_000, 16  # an entry of a vocabulary has its id, flags, and the merges that lead to it
_LEAST_BYTES, _BYTES_A_ROW = 4 << 20, 1 << 10
_HEADER_BYTES_A_ROW = 1 << 8  # of a GGUF file: a piece, its score and kind, and its merges take some fifty
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Accounted:
    """What weights account for. A tensor with a 0 in its shape takes no byte, whatever else its shape says."""

    tensors: int
    largest: int  # dimension of any of them

    @classmethod
    def by(cls, tensors: Tensors) -> Accounted:
        shapes = tensors.filled.values()
        return cls(len(shapes), max((max(shape, default=0) for shape in shapes), default=0))

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
        elif last in known and abs(value) > _most(last, accounted):
            return f"{name} is {_shown(value)}, and {accounted.words}"
    return ""


def too_many_values(content: bytes, most: int = MOST_VALUES) -> str:
    """Why the text of a JSON file is not parsed, as a clause: it holds more values than any does; "" where it is."""
    found = sum(content.count(sign) for sign in (b",", b"[", b"{"))
    return f"it holds {found:,} values, more than {most:,}" if found > most else ""


def too_large_for_vocabulary(content: bytes, accounted: Accounted) -> str:
    """Why the text of a tokenizer's file is not parsed, as a clause: no vocabulary of the model is as large."""
    rows = accounted.largest + accounted.tensors
    most = _LEAST_BYTES + _BYTES_A_ROW * rows
    if len(content) > most:
        return f"it has {len(content):,} bytes, and {accounted.words}"
    return too_many_values(content, _LEAST_VALUES + _VALUES_A_ROW * rows)


def too_long_header(length: int, accounted: Accounted) -> str:
    """Why so many bytes of a GGUF file's header are no vocabulary of its weights, as a clause; "" where they may be."""
    most = _LEAST_BYTES + _HEADER_BYTES_A_ROW * (accounted.largest + accounted.tensors)
    return f"it has {length:,} bytes, and {accounted.words}" if length > most else ""


def _most(name: str, accounted: Accounted) -> float:
    """The largest number that a setting of this name may have."""
    if _SIZES_NOTHING.search(name):
        return math.inf
    if _CODES.search(name):
        return max(_MOST_CODES, accounted.most)
    return _MOST_LENGTH if _LENGTHS.search(name) else accounted.most


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
