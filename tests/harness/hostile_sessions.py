"""Session files that mean harm or are damaged, made by a script: 150 of them, each with a name."""

from __future__ import annotations

import copy
import io
import json
import random
import struct
import zipfile
from collections.abc import Iterator
from typing import Any

from attention_explorer.session import attn, files
from attention_explorer.session.branches import Branches
from attention_explorer.session.kept import Kept, KeptState, Screen, SessionFile
from attention_explorer.session.state import Document, InterventionItem, Selection
from attention_models.protocol.interventions import Mask, Scale
from attention_models.protocol.values import SiteRef

DOCUMENT = Document(
    text="Tom and Anna went to the park.",
    selection=Selection(SiteRef("decoder", 5), 5, 3, 1),
    interventions=(InterventionItem(Scale(0.5)), InterventionItem(Mask("window", window=3))),
).with_branches(Branches().grow(7, "␣to", -0.5).grow(8, "␣Tom", -2.0))
SESSION = SessionFile(
    KeptState(DOCUMENT, screen=Screen(("map",), ("map",), {"lookup": {"page": 2}})),
    Kept((KeptState(DOCUMENT, "one"),), "Notes."),
)
MEGABYTE = 1 << 20


def hostile_sessions() -> Iterator[tuple[str, bytes]]:
    """Names (whose ending is that of the file) and contents."""
    yield from _bombs()
    yield from _places()
    yield from _nested()
    yield from _wrong_values()
    yield from _large_values()
    yield from _damaged()


def packed(content: bytes, **members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("session.json", content)
        for name, member in members.items():
            archive.writestr(name, member)
    return buffer.getvalue()


def plain() -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(attn.encode(SESSION))) as archive:
        content: dict[str, Any] = json.loads(archive.read("session.json"))
    return content


def _bombs() -> Iterator[tuple[str, bytes]]:
    good = json.dumps(plain()).encode()
    yield "a bomb of 1 GB.attn", packed(bytes(1024 * MEGABYTE))
    yield "a bomb of 40 MB of brackets.attn", packed(b"[" * (40 * MEGABYTE))
    yield "a bomb beside it.attn", packed(good, bomb=bytes(40 * MEGABYTE))
    yield "many bombs.attn", packed(good, **{f"b{i}": bytes(7 * MEGABYTE) for i in range(10)})
    yield "ten thousand members.attn", packed(good, **{f"m{i}": b"" for i in range(10_000)})
    yield "nothing but a directory.attn", _directory(300_000)
    yield "16 MB of zeros.json", bytes(attn.LARGEST)
    yield "16 MB of blanks.json", b" " * attn.LARGEST
    yield "20 MB of text.json", b'{"text": "' + b"a" * (20 * MEGABYTE) + b'"}'


def _directory(entries: int) -> bytes:
    """A zip that lists entries which are not there."""
    entry = b"PK\x01\x02" + bytes(42)
    listed = entry * entries
    return listed + b"PK\x05\x06" + struct.pack("<4H2LH", 0, 0, 65535, 65535, len(listed), 0, 0)


def _places() -> Iterator[tuple[str, bytes]]:
    good = json.dumps(plain()).encode()
    for number, name in enumerate(("../x", "/etc/passwd", "a/../../x", "C:\\x", "..\\x", "a\nb", "x" * 300)):
        yield f"outside {number}.attn", packed(good, **{name: b"harm"})
    references = ("../../etc", "/dev/zero", "hf://../../x", "~root/x", "\x00", "a" * 4096, "//x/y")
    for number, reference in enumerate(references):
        content = plain()
        content["present"]["document"]["checkpoint"] = reference
        yield f"checkpoint {number}.attn", packed(json.dumps(content).encode())
        content["present"]["document"]["picture"] = reference
        content["present"]["document"]["checkpoint"] = "vit-cifar10"
        yield f"picture {number}.attn", packed(json.dumps(content).encode())


def _nested() -> Iterator[tuple[str, bytes]]:
    for depth in (1_000, 100_000, 3_000_000):
        for opening, closing in (("[", "]"), ('{"a":', "}")):
            content = plain()
            content["later"] = "HERE"
            deep = opening * depth + ("1" if opening != "[" else "") + closing * depth
            text = json.dumps(content).replace('"HERE"', deep)
            yield f"{depth} deep {opening[0]}.attn", packed(text.encode())
            content["present"]["document"]["later"], content["later"] = "HERE", 1
            yield f"{depth} deep {opening[0]} inside.attn", packed(json.dumps(content).replace('"HERE"', deep).encode())
    yield "open brackets.json", b"[" * 4_000_000
    yield "open braces.json", b'{"a":' * 800_000


def _leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _leaves(inner, (*path, key))


def _wrong_values() -> Iterator[tuple[str, bytes]]:
    """A value of another kind in the place of every member, another one in each."""
    content, rng = plain(), random.Random(0)
    paths = [path for path in _leaves(content) if path]
    wrong: list[Any] = [None, True, -1, 1e308, 10**30, "", "\ud800", [], {}, [[]], {"a": 1}, "rm -rf"]
    for number, path in enumerate(paths):
        changed = copy.deepcopy(content)
        at: Any = changed
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = rng.choice(wrong)
        if number % 2 == 0:
            yield f"wrong {'.'.join(map(str, path))}.attn", packed(json.dumps(changed).encode())


def _large_values() -> Iterator[tuple[str, bytes]]:
    for member, value in {
        "text": "a" * 3_000_000,
        "second": "a " * 300_000,
        "target": "a" * 400_000,
        "turns": [{"role": "user", "text": "a" * 300_000}],
        "interventions": [{"kind": "mask", "mask": "painted", "cells": [[i, i, True] for i in range(100_000)]}] * 2,
        "branches": {"nodes": [[i + 1, i, 1, "x", -1, 0, False, False, ""] for i in range(100_000)], "settings": [{}]},
        "checkpoint": "a" * 100_000,
    }.items():
        content = plain()
        content["present"]["document"][member] = value
        yield f"large {member}.attn", packed(json.dumps(content).encode())
        older = json.loads(files.encode(DOCUMENT))
        older[member] = value
        yield f"large {member}.json", json.dumps(older).encode()
    content = plain()
    content["notes"] = "a" * 4_000_000
    yield "large notes.attn", packed(json.dumps(content).encode())
    content["notes"] = ""
    content["states"] = content["states"] * 5000
    yield "many states.attn", packed(json.dumps(content).encode())
    content["states"] = []
    content["present"]["screen"]["panels"] = {f"panel {i}": {} for i in range(100_000)}
    yield "many panels.attn", packed(json.dumps(content).encode())
    content["present"]["screen"]["panels"] = {}
    yield "many unknown.attn", packed(json.dumps({**content, **{f"x{i}": i for i in range(100_000)}}).encode())


def _damaged() -> Iterator[tuple[str, bytes]]:
    good, rng = attn.encode(SESSION), random.Random(1)
    for number in range(40):
        content = bytearray(good)
        for _ in range(rng.randrange(1, 8)):
            content[rng.randrange(len(content))] = rng.randrange(256)
        yield f"damaged {number}.attn", bytes(content)
    for number in range(10):
        yield f"cut {number}.attn", good[: rng.randrange(len(good))]
    yield "nothing.attn", b""
    yield "a pickle.attn", b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00cos\nsystem\n(S'touch harm'\ntR."
    yield "a picture.attn", b"\x89PNG\r\n\x1a\n" + bytes(100)
