"""What the names of GGUF files say, as far as their makers agree: how many bits a weight has, and which are parts."""

from __future__ import annotations

import re
from collections.abc import Iterable

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
