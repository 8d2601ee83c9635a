"""GGUF files made to hang or exhaust a program that reads their header."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.models.gguf_maker import gguf_of

if TYPE_CHECKING:
    from tests.hostile.checkpoints import Hostile

_UINT8, _UINT32, _FLOAT32, _STRING, _ARRAY, _UINT64 = 0, 4, 6, 8, 9, 10


def text(content: str) -> bytes:
    data = content.encode()
    return struct.pack("<Q", len(data)) + data


def number(key: str, value: int) -> bytes:
    return text(key) + struct.pack("<II", _UINT32, value)


def array(key: str, of: int, count: int, content: bytes) -> bytes:
    return text(key) + struct.pack("<IIQ", _ARRAY, of, count) + content


def with_settings(make: Callable[[], bytes], count: int = 1) -> Callable[[Path], Path]:
    """A sound file, with `count` settings before its own."""

    def damage(folder: Path) -> Path:
        path = gguf_of(folder, folder / "tiny.gguf")
        content = path.read_bytes()
        _, version, tensors, settings = struct.unpack("<4sIQQ", content[:24])
        added = make()
        # the weights stand at a multiple of 32 bytes: a last setting fills up to it
        filled = -(len(added) + 21) % 32
        added += text("p") + struct.pack("<IQ", _STRING, filled) + b" " * filled
        path.write_bytes(struct.pack("<4sIQQ", b"GGUF", version, tensors, settings + count + 1) + added + content[24:])
        return path

    return damage


def changed(key: str, value: int) -> Callable[[Path], Path]:
    """A sound file with another number for a setting of 32 bits."""

    def damage(folder: Path) -> Path:
        path = gguf_of(folder, folder / "tiny.gguf")
        content, place = path.read_bytes(), text(key) + struct.pack("<I", _UINT32)
        at = content.index(place) + len(place)
        path.write_bytes(content[:at] + struct.pack("<I", value) + content[at + 4 :])
        return path

    return damage


def content_of(start: bytes, make: Callable[[], bytes] = bytes, size: int = 0) -> Callable[[Path], Path]:
    """A file of `start`, what `make` gives, and a hole of `size` bytes."""

    def damage(folder: Path) -> Path:
        path = folder / "tiny.gguf"
        with path.open("wb") as file:
            file.write(start + make())
            file.truncate(file.tell() + size)
        return path

    return damage


def head(tensors: int, settings: int) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, settings)


def tensor(name: str, *shape: int, kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def gguf_files() -> Iterator[Hostile]:
    from tests.hostile.checkpoints import MANY, VAST, Hostile

    arrays: dict[str, Callable[[], bytes]] = {
        "5 million texts": lambda: array("a", _STRING, 5 * MANY, (b"\1" + bytes(7) + b"x") * 5 * MANY),
        "5 million empty texts": lambda: array("a", _STRING, 5 * MANY, bytes(8 * 5 * MANY)),
        "50 MB of bytes": lambda: array("a", _UINT8, 50 << 20, bytes(50 << 20)),
        "12 million numbers": lambda: array("a", _FLOAT32, 12 * MANY, bytes(48 * MANY)),
        "a million pieces": lambda: array("tokenizer.ggml.tokens", _STRING, MANY, (b"\1" + bytes(7) + b"x") * MANY),
        "a million merges": lambda: array("tokenizer.ggml.merges", _STRING, MANY, (b"\3" + bytes(7) + b"x y") * MANY),
        "a million scores": lambda: array("tokenizer.ggml.scores", _FLOAT32, MANY, bytes(4 * MANY)),
        "arrays in arrays": lambda: array("a", _ARRAY, 3, struct.pack("<IQ", _ARRAY, 3) * 100),
        "2^62 numbers": lambda: array("a", _UINT64, 1 << 62, b""),
    }
    for name, entry in arrays.items():
        yield Hostile(f"GGUF: an array of {name}", "llama", with_settings(entry), opens="scores" in name)
    settings = with_settings(lambda: b"".join(number(f"k{i}", 1) for i in range(60_000)), 60_000)
    yield Hostile("GGUF: 60,000 settings", "llama", settings)
    yield Hostile(
        "GGUF: a text of 2^60", "llama", with_settings(lambda: text("a") + struct.pack("<IQ", _STRING, 1 << 60))
    )
    contents: dict[str, tuple[bytes, Callable[[], bytes], int]] = {
        "a million settings": (head(1, MANY), lambda: number("k", 1) * MANY, 0),
        "60,000 empty tensors": (
            head(60_000, 0),
            lambda: b"".join(tensor(f"blk.{i}.attn_q.weight", 0) for i in range(60_000)),
            64,
        ),
        "2^60 tensors": (head(1 << 60, 0), bytes, 1 << 20),
        "a tensor of 2^62": (head(1, 0), lambda: tensor("a", 1 << 62, 1 << 62), 64),
        "a tensor at 2^63": (head(1, 0), lambda: tensor("a", 1, offset=1 << 63), 64),
        "a tensor of kind 99": (head(1, 0), lambda: tensor("a", 1, kind=99), 64),
        "a hole of a terabyte": (b"GGUF", bytes, 1 << 40),
        "a hole of a terabyte after its head": (head(60_000, 60_000), bytes, 1 << 40),
    }
    for name, (start, make, size) in contents.items():
        yield Hostile(f"GGUF: {name}", "llama", content_of(start, make, size))
    for key in ("block_count", "embedding_length", "feed_forward_length", "context_length", "attention.head_count"):
        for value in (MANY, VAST, (1 << 32) - 1):
            yield Hostile(f"GGUF: {key} of {value:.0e}", "llama", changed(f"llama.{key}", value), opens=True)
    yield Hostile("GGUF: vocab_size of 1e9", "llama", changed("llama.vocab_size", VAST), opens=True)
    for value in (0, 1 << 31):
        damage = with_settings(partial(number, "general.alignment", value))
        yield Hostile(f"GGUF: an alignment of {value:.0e}", "llama", damage)
