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
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Raw

from explorer import json_files
from explorer.session import files
from explorer.session.kept import LONGEST_NAME, MOST_STATES, Extra, Kept, KeptState, Screen, SessionFile, Value, named
from explorer.session.state import Document, InterventionItem
from explorer.session.text_limits import MOST_CHARACTERS, check_document, too_long
from explorer.session.texts import with_prompt_texts
from explorer.session.view_options import ViewOptions
from explorer.session.writing import TEXTS_KEPT, Writing
from explorer.version import __version__
from models.files.whole_files import not_written, write_whole
from models.protocol.values import DEFAULT_PLACEMENT, UNIT_ROUNDOFFS, Placement

FORMAT = 1
"""Of the file around the states. Raised only where an older program would misread it."""

LARGEST = 16 << 20
"""Bytes of the largest file that is read."""
_LARGEST_JSON = 32 << 20
_LARGEST_UNKNOWN = 8 << 20
_MOST_MEMBERS = 200
_MOST_UNKNOWN = 200
_SESSION = "session.json"
_UNDERSTOOD: frozenset[str] = frozenset()
"""What a file may require. A feature that changes figures adds its name here and to the files that make use of it."""

_Name = Annotated[str, Meta(max_length=200)]
_Short = Annotated[str, Meta(max_length=4096)]
_Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
_Dtype = Literal["float32", "bfloat16", "float16"]
assert set(get_args(_Dtype)) == set(UNIT_ROUNDOFFS)


class _Screen(msgspec.Struct):
    open: Annotated[list[_Name], Meta(max_length=200)] = []
    front: Annotated[list[_Name], Meta(max_length=200)] = []
    panels: Annotated[dict[_Name, dict[_Name, bool | int | float | _Short]], Meta(max_length=200)] = {}


class _State(msgspec.Struct):
    document: Raw
    name: Annotated[str, Meta(max_length=LONGEST_NAME)] = ""
    writings: Annotated[list[Raw], Meta(max_length=TEXTS_KEPT)] = []  # documents with the trees of other texts
    screen: _Screen = msgspec.field(default_factory=_Screen)
    device: _Name = DEFAULT_PLACEMENT.device
    dtype: _Dtype = "float32"
    files: Annotated[dict[_Name, _Hash], Meta(max_length=200)] = {}
    picture: Annotated[str, Meta(pattern="^([0-9a-f]{64})?$")] = ""


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
        ValueError: it would be larger than what is read; the sentence says what to do.
    """
    kept = session.kept
    whole = {
        "program": "attention-explorer",
        "format": FORMAT,
        "version": __version__,
        "requires": [],
        "notes": kept.notes,
        "present": Raw(_encode_state(session.present)),
        "states": [Raw(_encode_state(state)) for state in kept.states],
    }
    try:
        content = json_files.encode(_with_extra(whole, kept.extra))
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
        states=tuple(_named(_decode_state(raw, f"state {i}"), i) for i, raw in enumerate(session.states, start=1)),
        notes=session.notes,
        extra=_extra(text, _Session),
        members=tuple(sorted(members.items())),
    )
    return SessionFile(_decode_state(session.present, "what was on screen"), kept)


def save(session: SessionFile, path: Path) -> None:
    """Write the file whole or not at all. Raises ValueError with a sentence for the person."""
    content = encode(session)
    try:
        write_whole(path, content)
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


# --------------------------------------------------------------------------- one state


def _encode_state(state: KeptState) -> bytes:
    document = state.document
    own = replace(document, writings=tuple(w for w in document.writings if w.origin == document.origin))
    others = [text for w in document.writings if w.origin != document.origin and (text := _encode_writing(w))]
    screen, extra = state.screen, dict(state.extra)
    content = files.encode(own)
    inner = tuple((name.partition(".")[2], text) for name, text in state.extra if name.startswith("document."))
    if inner:
        content = json_files.encode(_with_extra(json_files.decode(content, dict[str, Raw]), inner))
    whole = {
        "name": state.name,
        "document": Raw(content),
        "writings": [Raw(text) for text in others],
        "screen": _Screen(list(screen.open), list(screen.front), _plain(screen.panels)),
        "device": state.placement.device,
        "dtype": state.placement.dtype,
        "files": dict(state.files),
        "picture": state.picture_hash,
    }
    outer = tuple((name, text) for name, text in extra.items() if not name.startswith("document."))
    return msgspec.json.encode(_with_extra(whole, outer))


def _decode_state(raw: Raw, what: str) -> KeptState:
    """`what` it is, for sentences: "state 3"."""
    try:
        state = json_files.decode(bytes(raw), _State)
        document, unknown = _decode_document(bytes(state.document))
        others = tuple(w for text in state.writings for w in _decode_document(bytes(text))[0].writings)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from error
    document = replace(document, writings=(*others, *document.writings)[-TEXTS_KEPT:])
    screen = Screen(tuple(state.screen.open), tuple(state.screen.front), state.screen.panels)
    return KeptState(
        document=document,
        name=state.name,
        screen=screen,
        placement=Placement(state.device, state.dtype),
        files=state.files,
        picture_hash=state.picture,
        extra=(*_extra(bytes(raw), _State), *((f"document.{name}", text) for name, text in unknown)),
    )


def _decode_document(content: bytes) -> tuple[Document, Extra]:
    """A document, and the members of it that this program does not know: they change no figure, or its version would
    be higher."""
    members = json_files.decode(content, dict[str, Raw])
    known = files.members()
    unknown = tuple((name, _compact(text)) for name, text in members.items() if name not in known)
    if len(unknown) > _MOST_UNKNOWN:
        raise ValueError(f"it has {len(unknown):,} members that are not known")
    if unknown:
        content = msgspec.json.encode({name: text for name, text in members.items() if name in known})
    document = files.decode(content)
    check_document(document)
    return document, unknown


def _encode_writing(writing: Writing) -> bytes:
    """The tree of another text, as the document that it belongs to; b"" where no document has that text."""
    inputs = writing.inputs
    edits = tuple(InterventionItem(value) for value in inputs.interventions)
    document = Document(checkpoint=writing.checkpoint, target=inputs.target, interventions=edits, view=ViewOptions())
    document = replace(with_prompt_texts(document, inputs.prompt), writings=(writing,))
    return files.encode(document) if document.origin == writing.origin else b""


def _named(state: KeptState, number: int) -> KeptState:
    return state if state.name else named(state, f"State {number}")


def _plain(panels: Mapping[str, Mapping[str, Value]]) -> dict[str, dict[str, Any]]:
    return {name: dict(choices) for name, choices in panels.items()}


def _check_text(what: str, text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise ValueError(too_long(what, text))


# --------------------------------------------------------------------------- what a newer version wrote


def _extra(content: bytes, kind: type[msgspec.Struct]) -> Extra:
    """The members that `kind` does not have."""
    members = json_files.decode(content, dict[str, Raw])
    unknown = tuple((name, _compact(text)) for name, text in members.items() if name not in kind.__struct_fields__)
    if len(unknown) > _MOST_UNKNOWN:
        raise ValueError(f"it has {len(unknown):,} members that are not known")
    return unknown


def _compact(text: Raw) -> bytes:
    return msgspec.json.format(bytes(text), indent=-1)


def _with_extra(whole: Mapping[str, Any], extra: Iterable[tuple[str, bytes]]) -> dict[str, Any]:
    return {**whole, **{name: Raw(text) for name, text in extra if name not in whole}}


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
