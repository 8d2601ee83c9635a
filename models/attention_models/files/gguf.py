"""GGUF files: the header, read within bounds before anything relies on it. transformers reads the weights.

The layout is that of version 2 and 3 of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from attention_models.files.extras import GGUF, install_command, is_installed, lacking
from attention_models.files.safe_files import open_regular
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.hub import Tensors

# What the names of GGUF files say, as far as their makers agree: how many bits a weight has, and which are parts.


SUFFIX = ".gguf"
FEWEST_BITS = 4
"""Below these a small model loses much of what it learned."""

_PART = re.compile(r"-\d{5}-of-\d{5}\.gguf$", re.IGNORECASE)
_BITS = re.compile(r"(?<![a-z0-9])(?:(?:i?q|mxfp|nvfp|tq)(\d)(?![a-z0-9])|(?:bf|fp?)(16|32))(?![0-9])", re.IGNORECASE)
_BESIDE = re.compile(r"(?:^|[-._/])(?:mmproj|imatrix)(?:$|[-._])", re.IGNORECASE)


def is_named_gguf(name: str) -> bool:
    return name.lower().endswith(SUFFIX) and name.rsplit("/", 1)[-1].lower() != SUFFIX


def is_part(name: str) -> bool:
    """Whether the file is one of several that make a model ("-00001-of-00003.gguf")."""
    return _PART.search(name) is not None


def bits_of(name: str) -> int | None:
    """Bits of a weight: 4 for "tiny-Q4_K_M.gguf", 16 for "tiny-bf16.gguf"; None where the name does not say."""
    found = _BITS.findall(name.rsplit("/", 1)[-1])
    return int(found[-1][0] or found[-1][1]) if found else None


def suggested(files: Iterable[tuple[str, int]]) -> str:
    """Of names and sizes, the smallest file of at least `FEWEST_BITS`, or the only one; "" where names do not tell."""
    models = [(size, name) for name, size in files if not _BESIDE.search(name)]
    if len(models) == 1:
        return models[0][1]
    return min(((size, name) for size, name in models if (bits_of(name) or 0) >= FEWEST_BITS), default=(0, ""))[1]


_HEADER_BYTES = 200 << 20  # the vocabulary stands in it
_MOST_SETTINGS = 1 << 12  # a file has some fifty
_MOST_TENSORS = 1 << 16
_MOST_TEXT = 1 << 20
_MOST_DIMENSIONS = 8
_MOST_IN_ARRAY = 1 << 21  # the largest vocabularies have a quarter of a million pieces, and half a million merges
_MOST_TEXTS = _MOST_IN_ARRAY  # of all arrays: each is walked over
_STRING, _ARRAY = 8, 9
_LENGTH = struct.Struct("<Q")
_NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """`settings` holds the scalars and the texts. Arrays (the vocabulary, for one) are checked and left out.

    `texts` says how many there are in each array of texts.
    """

    settings: dict[str, Any]
    tensors: Tensors
    length: int  # bytes before the weights
    texts: dict[str, int]

    @property
    def is_part(self) -> bool:
        """Whether it describes one of several files that make a model."""
        count = self.settings.get("split.count")
        return isinstance(count, int) and count > 1

    @property
    def architecture(self) -> str:
        return str(self.settings.get("general.architecture", ""))

    @property
    def layers(self) -> int:
        """Layers of which the file holds a tensor (blk.3.attn_q.weight), counted to the last of them."""
        found = (re.match(r"blk\.(\d{1,9})\.", name) for name in self.tensors.shapes)
        return max((int(match[1]) + 1 for match in found if match is not None), default=0)


def is_gguf(path: Path) -> bool:
    return is_named_gguf(path.name) and path.is_file()


def parts_only(title: str) -> CheckpointError:
    return CheckpointError(
        f"{title}: the model is split into several GGUF files (-00001-of-00003 and so on), which cannot be opened. "
        "Put them together with llama.cpp's llama-gguf-split --merge, or choose one that is a single file."
    )


def missing_packages() -> str:
    """A sentence where what opens GGUF files is not installed; "" where it is."""
    missing = lacking(GGUF)
    if not missing:
        return ""
    return (
        f"GGUF files need {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed. "
        f"Install {'it' if len(missing) == 1 else 'them'} with: {install_command(missing)}"
    )


def read_gguf(path: Path) -> GgufHeader:
    """What the header of the file at `path` says.

    Raises:
        CheckpointError: no GGUF file, one of a version or byte order that is not read, or a damaged one.
    """
    try:
        with open_regular(path) as stream:
            return read_header(stream, path.name, path.stat().st_size)
    except OSError as cause:
        raise _damaged(path.name, cause) from cause


def read_header(stream: Readable, name: str, size: int) -> GgufHeader:
    """What the header says of a file of `size` bytes; `stream` is at its first byte, and only the header is read.

    Raises:
        CheckpointError: as `read_gguf`.
    """
    try:
        return _header(name, _Reader(stream, min(size, _HEADER_BYTES)), size)
    except (EOFError, ValueError, struct.error) as cause:
        raise _damaged(name, cause) from cause


def _damaged(name: str, cause: Exception) -> CheckpointError:
    return CheckpointError(f"{name} is damaged or was not fetched whole: {cause}. Fetch it again.")


def _header(name: str, reader: _Reader, size: int) -> GgufHeader:
    if reader.take(4) != b"GGUF":
        raise CheckpointError(f"{name} is no GGUF file, whatever its name says.")
    version = reader.number("<I")
    if version not in (2, 3):
        raise CheckpointError(
            f"{name} is a GGUF file of version {version}, or for machines of another byte order; only versions 2 "
            "and 3 in the usual order are read. Convert it again."
        )
    tensors, settings = reader.count("<Q", _MOST_TENSORS), reader.count("<Q", _MOST_SETTINGS)
    values, texts = dict[str, Any](), dict[str, int]()
    for _ in range(settings):
        key = reader.text()
        values[key] = reader.value(reader.number("<I"), key)
        if reader.texts:
            texts[key] = reader.texts
    shapes: dict[str, tuple[int, ...]] = {}
    end = 0
    for _ in range(tensors):
        tensor = reader.text()
        dimensions = reader.number("<I")
        if dimensions > _MOST_DIMENSIONS:
            raise ValueError(f"{tensor[:80]} has {dimensions} dimensions")
        shape = tuple(reader.number("<Q") for _ in range(dimensions))
        shapes[tensor] = shape[::-1]  # the fastest dimension stands first in the file
        kind, offset = reader.number("<I"), reader.number("<Q")
        end = max(end, offset + _bytes(kind, shape))
    alignment = values.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 1 <= alignment <= 1 << 20:
        raise ValueError("its alignment is no number")
    start = -(-reader.position // alignment) * alignment
    if start + end > size:
        raise ValueError(f"its header describes {start + end:,} bytes and it has {size:,}")
    known = {key: value for key, value in values.items() if value is not None}
    return GgufHeader(known, Tensors(shapes, size), min(start, size), texts)


def _bytes(kind: int, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor, by gguf's own table of quantisations; at least 1 where that is not installed."""
    if not is_installed("gguf"):
        return 1
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    block, length = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
    count = 1
    for dimension in shape:
        count *= dimension
    return -(-count // block) * length


class Readable(Protocol):
    """A file, or what comes over a network."""

    def read(self, count: int, /) -> bytes:
        """The next `count` bytes; fewer where there are no more."""
        ...


class _Reader:
    """Reads little-endian values, and no byte beyond `limit`."""

    def __init__(self, stream: Readable, limit: int) -> None:
        self._stream = stream
        self._limit = limit
        self.position = 0
        self.texts = 0  # in the array that was read last
        self._all_texts = 0

    def take(self, count: int) -> bytes:
        if count > self._limit - self.position:
            raise EOFError("its header goes on beyond its end")
        data = self._stream.read(count)
        if len(data) != count:
            raise EOFError("its header goes on beyond its end")
        self.position += count
        return data

    def number(self, layout: str) -> Any:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def count(self, layout: str, most: int) -> int:
        found = int(self.number(layout))
        if found > most:
            raise ValueError(f"its header claims {found:,} entries")
        return found

    def text(self) -> str:
        length = self.number("<Q")
        if length > _MOST_TEXT:
            raise ValueError(f"its header claims a text of {length:,} bytes")
        return self.take(length).decode("utf-8", "replace")

    def value(self, kind: int, name: str = "") -> Any:
        """A scalar or a text; None for an array, which is only walked through: `texts` says how many it has."""
        self.texts = 0
        if kind in _NUMBERS:
            return self.number(_NUMBERS[kind])
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            raise ValueError(f"its header has a value of the unknown kind {kind}")
        of, length = self.number("<I"), self.number("<Q")
        if length > _MOST_IN_ARRAY:
            raise ValueError(f"{name[:80]} in its header has {length:,} entries, more than {_MOST_IN_ARRAY:,}")
        if of in _NUMBERS:
            self.take(length * struct.calcsize(_NUMBERS[of]))
        elif of == _STRING:
            self._all_texts += length
            if self._all_texts > _MOST_TEXTS:
                raise ValueError(f"its header claims {self._all_texts:,} texts, more than {_MOST_TEXTS:,}")
            for _ in range(length):
                self.skip_text()
            self.texts = length
        else:
            raise ValueError("its header nests arrays")
        return None

    def skip_text(self) -> None:
        (length,) = _LENGTH.unpack(self.take(8))
        if length > _MOST_TEXT:
            raise ValueError(f"its header claims a text of {length:,} bytes")
        self.take(length)
