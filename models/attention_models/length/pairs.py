"""Reads files of sentence pairs: lines `English<tab>Spanish`, plain, packed by xz, or the zip of manythings.org/anki.

A person may open any file, so it is read within bounds, and what is wrong with it is said in a sentence.
"""

from __future__ import annotations

import io
import lzma
import unicodedata
import zipfile
import zlib
from pathlib import Path

from attention_models.files.text_stream import decoded, unread
from attention_models.protocol.errors import InputError

Pair = tuple[str, str]

MOST_BYTES = 64 << 20
"""Of the file, and of the text that comes out of it: three times the largest list of manythings.org."""
_MOST_MEMORY = 256 << 20  # of the unpacker; `xz -9` asks for a quarter of it
_EXPECTED = "Its lines should be an English sentence, a tab, and its Spanish translation."


def read_pairs(path: Path) -> list[Pair]:
    """The different pairs of the file, in its order. Further columns, and lines without a tab, are passed over.

    Raises:
        InputError: it cannot be read, is too large, is no text, or most of it is no pairs.
    """
    text = decoded(_content(path), path.name)
    lines = [line for line in io.StringIO(text, newline=None) if line.strip()]
    pairs: dict[Pair, None] = {}
    found = 0
    for line in lines:
        columns = [unicodedata.normalize("NFC", column.strip()) for column in line.rstrip("\n").split("\t")]
        if len(columns) >= 2:
            pairs[columns[0], columns[1]] = None
            found += 1
    if not lines:
        raise InputError(f"{path.name} is empty. {_EXPECTED}")
    if 2 * found < len(lines):
        raise InputError(f"{path.name} is no list of pairs: {found:,} of {len(lines):,} lines have a tab. {_EXPECTED}")
    return list(pairs)


def _content(path: Path) -> bytes:
    name = path.name
    try:
        if not path.is_file():
            raise InputError(f"There is no file {path}. Choose another one.")
        if path.stat().st_size > MOST_BYTES:
            raise _too_large(name)
        raw = path.read_bytes()
    except OSError as cause:
        raise unread(name, cause) from cause
    if raw.startswith(b"\xfd7zXZ\x00"):
        return _from_xz(raw, name)
    if raw.startswith(b"PK"):
        return _from_zip(raw, name)
    return raw


def _from_xz(raw: bytes, name: str) -> bytes:
    unpacker = lzma.LZMADecompressor(memlimit=_MOST_MEMORY)
    try:
        content = unpacker.decompress(raw, max_length=MOST_BYTES + 1)
    except (lzma.LZMAError, EOFError) as cause:
        raise InputError(f"{name} is damaged: it cannot be unpacked. Fetch it again.") from cause
    if len(content) > MOST_BYTES:
        raise _too_large(name)
    if not unpacker.eof:
        raise InputError(f"{name} is cut off: its end is missing. Fetch it again.")
    return content


def _from_zip(raw: bytes, name: str) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            lists = [
                member
                for member in archive.infolist()
                if Path(member.filename).suffix.lower() in (".txt", ".tsv")
                and not Path(member.filename).name.startswith(("_", "."))  # _about.txt of manythings.org
            ]
            if len(lists) != 1:
                raise InputError(
                    f"{name} holds {len(lists)} lists (.txt or .tsv), not one. Unpack it and choose the list."
                )
            if lists[0].flag_bits & 1:
                raise InputError(f"{name} is locked with a password. Unpack it and choose the list inside.")
            with archive.open(lists[0]) as member:
                content = member.read(MOST_BYTES + 1)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError) as cause:
        raise InputError(f"{name} is damaged: it cannot be unpacked. Fetch it again.") from cause
    if len(content) > MOST_BYTES:
        raise _too_large(name)
    return content


def _too_large(name: str) -> InputError:
    most = MOST_BYTES >> 20
    return InputError(f"{name} is larger than {most} MiB once unpacked. Keep a part of its lines, and open that.")
