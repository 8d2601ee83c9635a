"""How transformers is led to read a GGUF file: once, quickly, and without drawing."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from typing import Any

import numpy as np

from attention_models.files.collecting import deferred
from attention_models.files.extras import is_installed


@contextmanager
def reading_once() -> Iterator[None]:
    """Let transformers share one reader of a GGUF file, a quick one, and one table of its tensors' names.

    It makes a new reader for the config, the tokenizer and the weights, each of which takes seconds over a large
    vocabulary, and a new table for each of a model's modules.
    """
    if not is_installed("gguf"):
        yield
        return
    import gguf
    from transformers import modeling_gguf_pytorch_utils as unpacking

    if not isinstance(vars(gguf)["GGUFReader"], type):  # within another block of this: one reader serves both
        yield
        return
    with deferred(), ExitStack() as stack:
        for names, name, other in (
            (vars(gguf), "GGUFReader", cache(quick(gguf.GGUFReader))),
            (vars(gguf), "get_tensor_name_map", cache(gguf.get_tensor_name_map)),
            (vars(unpacking), "_gguf_parse_value", _parsed(vars(unpacking)["_gguf_parse_value"])),
        ):
            stack.callback(names.__setitem__, name, names[name])  # the reader is gone before the collector runs again
            names[name] = other
        yield


def quick(reader: type[Any]) -> type[Any]:
    """gguf's reader, which reads an array in one piece: gguf makes several numpy arrays of each of its entries.

    What it gives for an entry is no array, but the value itself.
    """

    class QuickReader(reader):
        def _get_field_parts(self, orig_offs: int, raw_type: int) -> tuple[int, list[Any], list[int], list[Any]]:
            kind = gguf_kind(raw_type)
            if kind != gguf_kind.ARRAY or self.byte_order != "I":
                found: tuple[int, list[Any], list[int], list[Any]] = super()._get_field_parts(orig_offs, raw_type)
                return found
            start = orig_offs + _ARRAY_HEAD.size
            of, count = _ARRAY_HEAD.unpack(self.data[orig_offs:start].tobytes())
            if gguf_kind(of) == gguf_kind.STRING:
                entries, size = _texts(memoryview(self.data)[start:], count)
            else:
                number = np.dtype(self.gguf_scalar_to_np[gguf_kind(of)])
                size = count * number.itemsize
                entries = self.data[start : start + size].view(number).tolist()
            types = [kind, gguf_kind(of)] if count else [kind]
            return _ARRAY_HEAD.size + size, entries, list(range(count)), types

    from gguf import GGUFValueType as gguf_kind

    return QuickReader


_ARRAY_HEAD = struct.Struct("<IQ")  # what is in it, and how many
_LENGTH = struct.Struct("<Q")


def _texts(data: memoryview, count: int) -> tuple[list[str], int]:
    """So many texts, each behind its length, and how many bytes they take."""
    texts, place = [], 0
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(data, place)
        place += 8
        texts.append(str(data[place : place + length], "utf-8"))
        place += length
    return texts, place


def _parsed(parse: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """transformers' own parser of an entry, which is not asked where the entry is a value already."""

    def parsed(value: Any, kind: Any) -> Any:
        return value if isinstance(value, (str, int, float)) else parse(value, kind)

    return parsed


@contextmanager
def quiet_unpacking() -> Iterator[None]:
    """Keep transformers from drawing a progress bar: a windowed build has no standard error to draw it on."""
    from transformers import modeling_gguf_pytorch_utils as unpacking

    names = vars(unpacking)
    drawn = names["tqdm"]
    names["tqdm"] = partial(drawn, disable=True)
    try:
        yield
    finally:
        names["tqdm"] = drawn
