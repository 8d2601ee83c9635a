"""Session files (.attn): a zip with `session.json`, which holds what is on screen, the states kept by name, and notes.

A file is untrusted. It is read whole up to a size, nothing of it is written anywhere, and every value is checked before
any is used. What changes no figure may be unknown: it is passed over, and written again when the file is saved. What
would change figures is told by `requires` and by the version of a document, and a file that asks for more is refused.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Raw

from attention_explorer import json_files
from attention_explorer.session import files
from attention_explorer.session.attn_states import decode_state, encode_state, extra_of, with_extra
from attention_explorer.session.kept import MOST_STATES, Kept, KeptState, SessionFile, named
from attention_explorer.session.text_limits import MOST_CHARACTERS, check_document, too_long
from attention_explorer.version import __version__
from attention_models.files.safe_files import not_written, write_whole

FORMAT = 1
"""Of the file around the states. Raised only where an older program would misread it."""

LARGEST = 16 << 20
"""Bytes of the largest file that is read."""
_LARGEST_JSON = 32 << 20
_LARGEST_UNKNOWN = 8 << 20
_MOST_MEMBERS = 200
_SESSION = "session.json"
_UNDERSTOOD: frozenset[str] = frozenset()
"""What a file may require. A feature that changes figures adds its name here and to the files that make use of it."""

_Name = Annotated[str, Meta(max_length=200)]


class _Session(msgspec.Struct):
    program: Literal["attention-explorer"]
    format: int
    version: _Name = ""  # of the program that wrote it
    requires: Annotated[list[_Name], Meta(max_length=100)] = []
    notes: str = ""
    present: Raw = Raw(b"{}")
    states: Annotated[list[Raw], Meta(max_length=MOST_STATES)] = []


class _Head(msgspec.Struct):
    """All that is read of a file before it is known that it can be read."""

    format: int
    requires: Annotated[list[_Name], Meta(max_length=100)] = []


def encode(session: SessionFile) -> bytes:
    """The file's content.

    Raises:
        ValueError: it would be larger than what is read, or hold what is not read; the sentence says what to do.
    """
    kept = session.kept
    whole = {
        "program": "attention-explorer",
        "format": FORMAT,
        "version": __version__,
        "requires": [],
        "notes": kept.notes,
        "present": Raw(encode_state(session.present)),
        "states": [Raw(encode_state(state)) for state in kept.states],
    }
    try:
        content = json_files.encode(with_extra(whole, kept.extra))
    except UnicodeEncodeError as cause:
        raise ValueError("The notes hold half a character, which no file can hold. Delete it.") from cause
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(_SESSION), content, zipfile.ZIP_DEFLATED)
        for name, member in kept.members:
            archive.writestr(zipfile.ZipInfo(name), member, zipfile.ZIP_DEFLATED)
    packed = buffer.getvalue()
    if len(content) > _LARGEST_JSON or len(packed) > LARGEST:
        raise ValueError(
            f"This session takes {len(content) >> 20} MB, and a session file holds {_LARGEST_JSON >> 20} at most. "
            "Delete states, or branches of the text."
        )
    try:
        decode(packed)
    except ValueError as cause:
        raise ValueError(f"This session could not be opened again: {cause}. Change that, and save it then.") from cause
    return packed


def decode(content: bytes) -> SessionFile:
    """What a file holds.

    Raises:
        ValueError: no session of this version; the clause says what is wrong and where.
    """
    json_files.check_size(content, LARGEST)
    members = _members(content)
    if _SESSION not in members:
        raise ValueError(f"it holds no {_SESSION}")
    text = members.pop(_SESSION)
    head = json_files.decode(text, _Head)
    if head.format != FORMAT:
        raise ValueError(f"it is of format {head.format}, and this program reads format {FORMAT}")
    lacking = sorted(set(head.requires) - _UNDERSTOOD)
    if lacking:
        raise ValueError(
            f"its figures need {', '.join(f'“{name}”' for name in lacking)}, which this version of the program lacks. "
            "Open it with a newer one"
        )
    session = json_files.decode(text, _Session)
    _check_text("its notes", session.notes)
    kept = Kept(
        states=tuple(_named(decode_state(raw, f"state {i}"), i) for i, raw in enumerate(session.states, start=1)),
        notes=session.notes,
        extra=extra_of(text, _Session),
        members=tuple(sorted(members.items())),
    )
    return SessionFile(decode_state(session.present, "what was on screen"), kept)


def save(session: SessionFile, path: Path) -> None:
    """Write the file whole or not at all. Raises ValueError with a sentence for the person."""
    content = encode(session)
    try:
        write_whole(path, content, private=True)
    except OSError as cause:
        raise ValueError(not_written("The session", path, cause)) from cause


def load(path: Path) -> SessionFile:
    """Read a session file: a zip, or the JSON of earlier versions. Raises ValueError with a sentence for the person."""
    try:
        content = json_files.read(path, LARGEST)
        if content.startswith(b"PK"):
            return decode(content)
        document = files.decode(content)
        check_document(document)
        return SessionFile(KeptState(document))
    except OSError as cause:
        raise ValueError(f"The session {path} could not be read ({cause.strerror}).") from cause
    except ValueError as error:
        raise ValueError(f"{path.name} is no session that can be opened: {_ended(str(error))}") from error


def _named(state: KeptState, number: int) -> KeptState:
    return state if state.name else named(state, f"State {number}")


def _check_text(what: str, text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise ValueError(too_long(what, text))


# --------------------------------------------------------------------------- the zip


class _Refused(ValueError):
    """Said by us; zipfile too raises ValueError, at odd bytes."""


def _members(content: bytes) -> dict[str, bytes]:
    """The files within the file, by name: unpacked up to a size, and into memory alone.

    Raises:
        ValueError: it is damaged, packed in a way that is not read, too large, or names a place outside.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            listed = archive.infolist()
            if len(listed) > _MOST_MEMBERS:
                raise _Refused(f"it holds {len(listed):,} files, and a session holds {_MOST_MEMBERS} at most")
            found: dict[str, bytes] = {}
            room = _LARGEST_UNKNOWN
            for info in listed:
                _check_member(info, found)
                most = _LARGEST_JSON if info.filename == _SESSION else room
                with archive.open(info) as member:
                    unpacked = member.read(most + 1)
                if len(unpacked) > most:
                    raise _Refused(f"{info.filename} has more than {most:,} bytes")
                if info.filename != _SESSION:
                    room -= len(unpacked)
                found[info.filename] = unpacked
            return found
    except _Refused:
        raise
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        EOFError,
        ValueError,
        RuntimeError,
        LookupError,
        OSError,
    ) as cause:
        raise ValueError("it is damaged, or was not fetched whole") from cause


def _check_member(info: zipfile.ZipInfo, found: Mapping[str, bytes]) -> None:
    name = info.filename
    parts = name.split("/")
    leads_outside = name.startswith("/") or "\\" in name or ":" in name or ".." in parts
    if leads_outside or not name.isprintable() or len(name) > 200:
        raise _Refused("it holds a file that lies outside of it, which was not followed")
    if name in found:
        raise _Refused(f"it holds {name} twice")
    if info.flag_bits & 1:
        raise _Refused("it is locked with a password")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise _Refused("it is packed in a way that is not read")


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith(".") else f"{sentence}."
