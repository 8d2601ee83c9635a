"""A state as a line of text, short enough for a chat or a QR code: checkpoint, texts, selection, interventions.

"attn1." and base64url of four bytes of SHA-256 and the compressed canonical JSON of a state, as session files have it.
It comes from anywhere and is checked as such a file is: bounded, every value before any is used, and it names no place
on a disk.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import zlib
from dataclasses import replace
from typing import Any

from msgspec import Raw

from attention_explorer.session import files
from attention_explorer.session.attn_states import decode_state
from attention_explorer.session.kept import SHORT_TEXT as PREFIX
from attention_explorer.session.kept import KeptState, Screen, is_short_text
from attention_explorer.session.scenes import check_reference
from attention_explorer.session.state import CorpusChoice, Document
from attention_explorer.session.view_options import ViewOptions
from attention_models.files.names import is_hub, parse, whole_of
from attention_models.files.sample_pictures import PREFIX as SAMPLE
from attention_models.protocol.errors import CheckpointError

MOST_CHARACTERS = 2000
"""Of a short text: what one QR code holds with room for its own checks."""

_MOST_TYPED = 2 * MOST_CHARACTERS
"""With the line ends and blanks that a mail puts in."""
_MOST_BYTES = 64 << 10
"""Of the JSON within."""
_SUM = 4  # bytes
_SENT = ("normalisation", "words", "block", "distance")
"""Of how things are drawn: what decides which figures are seen. Colours and units stay each person's own."""

_COMMON = (
    b'"stack":"encoder","layer":0"stack":"cross"{"adapter":false,"kind":"adapter"}"kind":"positions","mode":"by":'
    b'"kind":"mask","mask":"causal","prefix","window":null,"cells":null,"on":true,"site":null}"kind":"skip","part":'
    b'"attention","mlp","head","neuron"{"factor":0.5,"head":null,"kind":"scale"'
    b'"chat":true,"turns":[{"role":"user","text":""}"target":"second":"picture":"sample:"hf://'
    b"recurrent-en-es-bahdanaurecurrent-en-es-bottleneckdates-bahdanaudates-luongvit-cifar10vit-quickdrawen-esstory-next"
    b'story-bert{"document":{"checkpoint":"story-gpt","interventions":["program":"attention-explorer","selection":{"head":'
    b'"key":"query":"site":{"layer":"stack":"decoder"}},"text":"The ","version":4,"view":{"distance":"model",'
    b'"normalisation":"row","words":true}},"screen":{"front":["flow","heads","next","map"]}}'
)
"""What such a state mostly consists of, so that it need not be said each time. It is part of the format."""


def encode(state: KeptState) -> str:
    """The state in one line, without what was written after the text, a state B, and files.

    Raises:
        ValueError: it names what other computers do not have, or is too long; a sentence that says what to do.
    """
    small = _small(state)
    lacking = _not_elsewhere(small.document)
    if lacking:
        raise ValueError(
            f"Another computer does not have the {lacking}. A short text names what comes with the program or lies on "
            "a hub; save a session file instead."
        )
    screen = {"front": list(small.screen.front)}
    content = _canonical({"document": _without_defaults(small.document), "screen": screen})
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=_COMMON)
    packed = packer.compress(content) + packer.flush()
    text = PREFIX + base64.urlsafe_b64encode(_sum(packed) + packed).decode().rstrip("=")
    if len(text) > MOST_CHARACTERS or len(content) > _MOST_BYTES:
        raise ValueError(
            f"This state takes {len(text):,} characters, and a short text has {MOST_CHARACTERS:,} at most. Shorten the "
            "text, or save a session file."
        )
    return text


def decode(text: str) -> KeptState:
    """The state that a short text carries.

    Raises:
        ValueError: it is none, or a damaged or hostile one; the sentence says what is wrong.
    """
    try:
        return _decode(text)
    except ValueError as error:
        raise ValueError(f"This is no short text that can be opened: {error}.") from error


def for_this_window(state: KeptState, own: ViewOptions) -> KeptState:
    """The state, drawn as the person here likes it."""
    sent = state.document.view
    view = replace(own.lasting, **{name: getattr(sent, name) for name in _SENT})
    return replace(state, document=replace(state.document, view=view))


def _decode(text: str) -> KeptState:
    if len(text) > _MOST_TYPED:
        raise ValueError(f"it has {len(text):,} characters, and {MOST_CHARACTERS:,} are read at most")
    text = "".join(text.split())
    if not is_short_text(text):
        raise ValueError(f"it does not begin with “{PREFIX}”")
    if not text.startswith(PREFIX):
        version = text[: text.index(".") + 1]
        raise ValueError(f"it begins with “{version}”, which another version of the program has written")
    packed = _bytes_of(text.removeprefix(PREFIX))
    if len(packed) <= _SUM or _sum(packed[_SUM:]) != packed[:_SUM]:
        raise ValueError("a part of it is missing or another. Copy it whole")
    content = _unpacked(packed[_SUM:])
    state = decode_state(Raw(content), "its state")
    document = state.document
    lacking = _not_elsewhere(document)
    if lacking or document.corpus.path or document.probe:
        raise ValueError(f"it names a place on a disk: the {lacking or 'file of texts'}")
    return _small(state)


def _bytes_of(text: str) -> bytes:
    if not re.fullmatch("[A-Za-z0-9_-]*", text):
        raise ValueError("it has letters that a short text has not")
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as cause:
        raise ValueError("a part of it is missing or another. Copy it whole") from cause


def _unpacked(packed: bytes) -> bytes:
    """Never more than `_MOST_BYTES` of it, however much it says that it holds."""
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS, zdict=_COMMON)
    try:
        content = unpacker.decompress(packed, _MOST_BYTES)
    except zlib.error as cause:
        raise ValueError("it is damaged") from cause
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError(f"it holds more than {_MOST_BYTES:,} bytes, or is damaged")
    return content


def _sum(packed: bytes) -> bytes:
    return hashlib.sha256(PREFIX.encode() + packed).digest()[:_SUM]


def _canonical(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def _small(state: KeptState) -> KeptState:
    """What a short text carries of a state."""
    document, front = state.document, tuple(state.screen.front)
    view = replace(ViewOptions(), **{name: getattr(document.view, name) for name in _SENT})
    document = replace(document, view=view, writings=(), compared=None, corpus=CorpusChoice(), probe="")
    return KeptState(document, screen=Screen(open=front, front=front, panels={name: {} for name in front}))


def _not_elsewhere(document: Document) -> str:
    """What it names that other computers do not have; "" where there is no such thing."""
    reference, picture = document.checkpoint, document.picture
    try:
        if is_hub(reference):
            parse(whole_of(reference) or reference)
        else:
            check_reference(reference)
    except (ValueError, CheckpointError):
        return f"checkpoint {reference[:200]}"
    return f"picture {picture[:200]}" if picture and not picture.startswith(SAMPLE) else ""


def _without_defaults(document: Document) -> dict[str, Any]:
    """The JSON of a document without what a reader fills in."""
    whole = json.loads(files.encode(document))
    plain = json.loads(files.encode(Document(checkpoint=document.checkpoint, text=document.text)))
    always = ("program", "version", "checkpoint", "text")
    return {
        name: _other(value, plain.get(name))
        for name, value in whole.items()
        if name in always or value != plain.get(name)
    }


def _other(value: Any, plain: Any) -> Any:
    """Of an object those members that are other than in a plain one."""
    if isinstance(value, dict) and isinstance(plain, dict):
        return {name: each for name, each in value.items() if name not in plain or each != plain[name]}
    return value
