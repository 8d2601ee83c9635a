"""Our own files, in JSON. They are untrusted: read up to a size, and every value is checked before any is used."""

from __future__ import annotations

from codecs import BOM_UTF8
from pathlib import Path
from typing import TypeVar

import msgspec

from attention_models.files.safe_files import open_regular

T = TypeVar("T")


def encode(value: object) -> bytes:
    """`value` (a msgspec.Struct or a dataclass) as JSON that people can read.

    Raises:
        UnicodeEncodeError: a text in it holds half a character.
    """
    return msgspec.json.format(msgspec.json.encode(value), indent=1)


def decode(content: bytes, kind: type[T]) -> T:
    """The value of type `kind` that `content` spells.

    Raises:
        ValueError: it spells none; what is wrong and where, as a clause ("expected `int`, got `str` - at `$.version`").
    """
    try:
        return msgspec.json.decode(content.removeprefix(BOM_UTF8), type=kind)  # some editors write the mark
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as cause:
        clause = str(cause)
        # "JSON is malformed" keeps its capitals
        raise ValueError(clause if clause[:2].isupper() else clause[:1].lower() + clause[1:]) from cause


def read(path: Path, most: int) -> bytes:
    """The content of a file of at most `most` bytes.

    Raises:
        OSError: it cannot be read, or is no regular file, which is refused before anything is waited for.
        ValueError: it is larger; as a clause.
    """
    with open_regular(path) as stream:
        content = stream.read(most + 1)
    check_size(content, most)
    return content


def check_size(content: bytes, most: int) -> None:
    """Raise ValueError, with a clause, for more than `most` bytes."""
    if len(content) > most:
        raise ValueError(f"it has more than {most:,} bytes")
