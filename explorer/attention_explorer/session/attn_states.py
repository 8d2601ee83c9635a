"""One state of a session file: what was on screen, the B that it was compared with, and what a newer version wrote.

The file is untrusted: every value is checked before any is used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Raw

from attention_explorer import json_files
from attention_explorer.session import files
from attention_explorer.session.branches import MOST_NODES
from attention_explorer.session.kept import LONGEST_NAME, Extra, KeptState, Screen, Value, WhatWasRead
from attention_explorer.session.state import Compared, Document, InterventionItem
from attention_explorer.session.text_limits import check_document
from attention_explorer.session.texts import with_prompt_texts
from attention_explorer.session.view_options import ViewOptions
from attention_explorer.session.writing import TEXTS_KEPT, Writing
from attention_models.protocol.values import DEFAULT_PLACEMENT, UNIT_ROUNDOFFS, Placement

_MOST_UNKNOWN = 200

_Name = Annotated[str, Meta(max_length=200)]
_Short = Annotated[str, Meta(max_length=4096)]
_Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
_Id = Annotated[int, Meta(ge=0, lt=files.MOST_ID)]
_Dtype = Literal["float32", "bfloat16", "float16"]

assert set(get_args(_Dtype)) == set(UNIT_ROUNDOFFS)


class _Screen(msgspec.Struct):
    open: Annotated[list[_Name], Meta(max_length=200)] = []
    front: Annotated[list[_Name], Meta(max_length=200)] = []
    panels: Annotated[dict[_Name, dict[_Name, bool | int | float | _Short]], Meta(max_length=200)] = {}


class _Read(msgspec.Struct):
    """What a state and its B have alike: a document, and what it read."""

    document: Raw
    name: Annotated[str, Meta(max_length=LONGEST_NAME)] = ""
    writings: Annotated[list[Raw], Meta(max_length=TEXTS_KEPT)] = []  # documents with the trees of other texts
    files: Annotated[dict[_Name, _Hash], Meta(max_length=200)] = {}
    picture: Annotated[str, Meta(pattern="^([0-9a-f]{64})?$")] = ""


class _Compared(_Read):
    """State B."""

    continuation: Annotated[list[_Id], Meta(max_length=MOST_NODES)] = []
    own_head: bool = False


class _State(_Read):
    screen: _Screen = msgspec.field(default_factory=_Screen)
    device: _Name = DEFAULT_PLACEMENT.device
    dtype: _Dtype = "float32"
    compared: Raw | msgspec.UnsetType = msgspec.UNSET


def encode_state(state: KeptState) -> bytes:
    screen = state.screen
    whole = {
        "name": state.name,
        **_encode_document(state.document, state.extra),
        "screen": _Screen(list(screen.open), list(screen.front), _plain(screen.panels)),
        "device": state.placement.device,
        "dtype": state.placement.dtype,
        "files": dict(state.files),
        "picture": state.picture_hash,
    }
    if state.document.compared is not None:
        whole["compared"] = _encode_compared(state.document.compared, state.b or WhatWasRead(), state.extra)
    return msgspec.json.encode(with_extra(whole, _outer(state.extra)))


def _encode_compared(b: Compared, read: WhatWasRead, extra: Extra) -> Raw:
    """B with what a newer version wrote of it: `extra` is that of the state."""
    extra = _inner(extra, "compared.")
    whole = {
        **_encode_document(b.document, extra),
        "continuation": list(b.continuation),
        "name": b.name,
        "own_head": b.own_head,
        "files": dict(read.files),
        "picture": read.picture_hash,
    }
    return Raw(msgspec.json.encode(with_extra(whole, _outer(extra))))


def _encode_document(document: Document, extra: Extra) -> dict[str, Any]:
    """A document, and the documents that have the trees of its other texts. `extra` is that of its state."""
    own = replace(document, writings=tuple(w for w in document.writings if w.origin == document.origin))
    others = [text for w in document.writings if w.origin != document.origin and (text := _encode_writing(w))]
    content = files.encode(own)
    inner = _inner(extra, "document.")
    if inner:
        content = json_files.encode(with_extra(json_files.decode(content, dict[str, Raw]), inner))
    return {"document": Raw(content), "writings": [Raw(text) for text in others]}


def decode_state(raw: Raw, what: str) -> KeptState:
    """`what` it is, for sentences: "state 3"."""
    try:
        state = json_files.decode(bytes(raw), _State)
        document, unknown = _decode_documents(state.document, state.writings)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from error
    read, of_b = None, Extra()
    if state.compared is not msgspec.UNSET:
        try:
            b, read, of_b = _decode_compared(state.compared)
        except ValueError as error:
            raise ValueError(f"{what}, its B: {error}") from error
        document = replace(document, compared=b)
    screen = Screen(tuple(state.screen.open), tuple(state.screen.front), state.screen.panels)
    return KeptState(
        document=document,
        name=state.name,
        screen=screen,
        placement=Placement(state.device, state.dtype),
        files=state.files,
        picture_hash=state.picture,
        b=read,
        extra=(*extra_of(bytes(raw), _State), *_within("document.", unknown), *_within("compared.", of_b)),
    )


def _decode_compared(raw: Raw) -> tuple[Compared, WhatWasRead, Extra]:
    """B, what it read, and what is not known of it."""
    b = json_files.decode(bytes(raw), _Compared)
    document, unknown = _decode_documents(b.document, b.writings)
    compared = Compared(document, tuple(b.continuation), b.name, b.own_head)
    return compared, WhatWasRead(b.files, b.picture), (*extra_of(bytes(raw), _Compared), *_within("document.", unknown))


def _decode_documents(content: Raw, writings: Iterable[Raw]) -> tuple[Document, Extra]:
    """A document with the trees of its other texts, and the members of it that are not known."""
    document, unknown = _decode_document(bytes(content))
    others = tuple(w for text in writings for w in _decode_document(bytes(text))[0].writings)
    return replace(document, writings=(*others, *document.writings)[-TEXTS_KEPT:]), unknown


def _decode_document(content: bytes) -> tuple[Document, Extra]:
    """A document, and the members of it that this program does not know: they change no figure, or its version would
    be higher."""
    members, known = json_files.decode(content, dict[str, Raw]), files.members()
    unknown = _unknown(members, known)
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


def _plain(panels: Mapping[str, Mapping[str, Value]]) -> dict[str, dict[str, Any]]:
    return {name: dict(choices) for name, choices in panels.items()}


# --------------------------------------------------------------------------- what a newer version wrote


def extra_of(content: bytes, kind: type[msgspec.Struct]) -> Extra:
    """The members that `kind` does not have."""
    return _unknown(json_files.decode(content, dict[str, Raw]), kind.__struct_fields__)


def _unknown(members: Mapping[str, Raw], known: Collection[str]) -> Extra:
    unknown = tuple((name, _compact(text)) for name, text in members.items() if name not in known)
    if len(unknown) > _MOST_UNKNOWN:
        raise ValueError(f"it has {len(unknown):,} members that are not known")
    return unknown


def _within(part: str, unknown: Extra) -> Extra:
    """As members of a state: "document.NAME"."""
    return tuple((f"{part}{name}", text) for name, text in unknown)


def _inner(extra: Extra, part: str) -> Extra:
    """Of the members of a state those of a part of it."""
    return tuple((name.removeprefix(part), text) for name, text in extra if name.startswith(part))


def _outer(extra: Extra) -> Extra:
    return tuple((name, text) for name, text in extra if not name.startswith(("document.", "compared.")))


def _compact(text: Raw) -> bytes:
    return msgspec.json.format(bytes(text), indent=-1)


def with_extra(whole: Mapping[str, Any], extra: Iterable[tuple[str, bytes]]) -> dict[str, Any]:
    return {**whole, **{name: Raw(text) for name, text in extra if name not in whole}}
