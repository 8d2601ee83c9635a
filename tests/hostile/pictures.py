"""Pictures made to hang or exhaust a program that looks at them. All are made by code, none is stored."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

Make = Callable[[Path], Any]


@dataclass(frozen=True)
class HostilePicture:
    name: str
    suffix: str
    make: Make
    seen: bool = False  # whether it may be looked at as well


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


PNG = b"\x89PNG\r\n\x1a\n"


def header(width: int, height: int, depth: int, colour: int) -> bytes:
    return PNG + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))


def zeros(count: int) -> bytes:
    """So many zeros, packed."""
    packer, packed = zlib.compressobj(9), []
    for start in range(0, count, 1 << 24):
        packed.append(packer.compress(bytes(min(1 << 24, count - start))))
    return b"".join(packed) + packer.flush()


def png(path: Path, width: int, height: int, depth: int = 8, colour: int = 2, before: bytes = b"") -> None:
    """A black picture: `colour` 0 is grey, 2 RGB, 3 by a palette, 4 grey with alpha, 6 RGB with alpha."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    row = 1 + -(-width * channels * depth // 8)
    palette = chunk(b"PLTE", bytes(3)) if colour == 3 else b""
    content = header(width, height, depth, colour) + before + palette + chunk(b"IDAT", zeros(row * height))
    path.write_bytes(content + chunk(b"IEND", b""))


def written(path: Path, content: Callable[[], bytes]) -> None:
    path.write_bytes(content())


def typed(kind: str, numbers: int, path: Path) -> None:
    """A PPM whose numbers are written out."""
    side = int((numbers / (3 if kind == "P3" else 1)) ** 0.5)
    most = "" if kind == "P1" else " 255"
    path.write_bytes(f"{kind} {side} {side}{most}\n".encode() + b"0 " * numbers)


def gif(frames: int, path: Path, side: int = 1) -> None:
    start = b"GIF89a" + struct.pack("<HHBBB", side, side, 0x80, 0, 0) + bytes(6)
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, side, side, 0) + b"\x02\x02\x44\x01\x00"
    path.write_bytes(start + frame * frames + b"\x3b")


def scans(count: int, path: Path, side: int = 4000) -> None:
    """A progressive JPEG that goes over its picture again and again."""
    buffer = io.BytesIO()
    Image.new("L", (side, side)).save(buffer, "JPEG", progressive=True)
    content = buffer.getvalue()
    first = content.rindex(b"\xff\xda")
    scan = content[first:-2]
    path.write_bytes(content[:first] + scan * count + content[-2:])


def saved(kind: str, path: Path, mode: str = "RGB", size: tuple[int, int] = (7000, 7000), **options: Any) -> None:
    Image.new(mode, size).save(path, kind, **options)


def noise(kind: str, path: Path, side: int = 3000, **options: Any) -> None:
    array = np.random.default_rng(0).integers(0, 256, (side, side, 3), dtype=np.uint8)
    Image.fromarray(array).save(path, kind, **options)


def hole(path: Path, start: bytes = b"", size: int = 60 << 20) -> None:
    with path.open("wb") as file:
        file.write(start)
        file.truncate(len(start) + size)


def loop(path: Path) -> None:
    other = path.with_name("loop")
    path.symlink_to(other)
    other.symlink_to(path)


def half(kind: str, path: Path) -> None:
    buffer = io.BytesIO()
    array = np.random.default_rng(0).integers(0, 256, (2000, 2000, 3), dtype=np.uint8)
    Image.fromarray(array).save(buffer, kind)
    content = buffer.getvalue()
    path.write_bytes(content[: len(content) // 2])


def bmp(width: int, height: int, path: Path, bits: int = 24, packed: int = 0, offset: int = 54) -> None:
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, packed, 0, 0, 0, 0, 0)
    path.write_bytes(b"BM" + struct.pack("<IHHI", 1000, 0, 0, offset) + info + bytes(1000))


def with_exif(exif: bytes, path: Path) -> None:
    Image.new("RGB", (40, 40)).save(path, "JPEG", exif=exif)


P = HostilePicture


def pictures() -> Iterator[HostilePicture]:
    for colour, word in {0: "grey", 2: "RGB", 3: "a palette", 4: "grey with alpha", 6: "RGB with alpha"}.items():
        for width, height in ((1, 50_000_000), (50_000_000, 1), (7000, 7000)):
            make = partial(png, width=width, height=height, colour=colour)
            yield P(f"{width:,} x {height:,} in {word}", ".png", make, seen=True)
    yield P("16 bits of grey", ".png", partial(png, width=7000, height=7000, depth=16, colour=0), seen=True)
    yield P("16 bits a colour", ".png", partial(png, width=7000, height=7000, depth=16), seen=True)
    yield P("one bit", ".png", partial(png, width=7000, height=7000, depth=1, colour=0), seen=True)
    yield P("30,000 square", ".png", partial(png, width=30_000, height=30_000, depth=1, colour=0))
    for width, height in ((30_000, 30_000), (2**31 - 1, 2**31 - 1), (0, 0), (1, 2**31 - 1)):
        content = header(width, height, 8, 2) + chunk(b"IDAT", b"")
        yield P(f"a head of {width:,} x {height:,}", ".png", partial(Path.write_bytes, data=content))
    bomb = chunk(b"zTXt", b"a\0\0" + zeros(1 << 30))
    yield P("a gigabyte of packed text", ".png", partial(png, width=9, height=9, before=bomb), seen=True)
    profile = chunk(b"iCCP", b"a\0\0" + zeros(1 << 30))
    yield P("a gigabyte of profile", ".png", partial(png, width=9, height=9, before=profile), seen=True)
    many = chunk(b"tEXt", b"a\0b") * 2_000_000
    yield P("two million chunks", ".png", partial(png, width=9, height=9, before=many), seen=True)
    frames = chunk(b"acTL", struct.pack(">II", 2**31 - 1, 0))
    yield P("two billion frames", ".png", partial(png, width=9, height=9, before=frames), seen=True)
    more = partial(written, content=lambda: header(9, 9, 8, 0) + chunk(b"IDAT", zeros(1 << 30)) + chunk(b"IEND", b""))
    yield P("a gigabyte more than the picture", ".png", more, seen=True)
    for kind in ("P1", "P2", "P3"):
        yield P(f"{kind}, written out", ".ppm", partial(typed, kind, 31_000_000))
        yield P(f"{kind}, written out, short of the bound", ".ppm", partial(typed, kind, 4_000_000), seen=True)
    heads = {
        "a comment without end": b"P6 #" + b"x" * (60 << 20),
        "digits without end": b"P6 " + b"9" * (60 << 20),
        "a billion square": b"P6 1000000000 1000000000 255\n",
        "a depth of 0": b"P6 9 9 0\n" + bytes(300),
        "a depth of a billion": b"P6 9 9 1000000000\n" + bytes(900),
        "no numbers": b"P6 5000 5000 255\n",
        "letters": b"P3 9 9 255\n" + b"x " * 99,
        "negative": b"P6 -9 -9 255\n",
    }
    for name, content in heads.items():
        yield P(f"PPM: {name}", ".ppm", partial(Path.write_bytes, data=content))
    yield P("three million frames", ".gif", partial(gif, 3_000_000), seen=True)
    yield P("60,000 frames", ".gif", partial(gif, 60_000), seen=True)
    yield P("a GIF of 65,535 square", ".gif", partial(gif, 1, side=65_535))
    yield P("a GIF of 7,000 square, a thousand times", ".gif", partial(gif, 1000, side=7000), seen=True)
    yield P("ten thousand scans", ".jpg", partial(scans, 10_000))
    yield P("ninety scans", ".jpg", partial(scans, 90), seen=True)
    yield P("JPEG of 49 million", ".jpg", partial(saved, "JPEG"), seen=True)
    yield P("JPEG in CMYK", ".jpg", partial(saved, "JPEG", mode="CMYK"), seen=True)
    yield P("JPEG, a line", ".jpg", partial(saved, "JPEG", size=(65_500, 1)), seen=True)
    yield P("WebP of 49 million", ".webp", partial(saved, "WEBP", lossless=True, method=0), seen=True)
    yield P("WebP of 16,383 square", ".webp", partial(hole, start=b"RIFF\xff\xff\xff\x03WEBPVP8L"))
    yield P("WebP of noise", ".webp", partial(noise, "WEBP", lossless=True, method=0), seen=True)
    yield P("PNG of noise", ".png", partial(noise, "PNG", side=4000), seen=True)
    for kind in ("PNG", "JPEG", "WEBP", "BMP", "GIF"):
        yield P(f"half of a {kind}", f".{kind.lower()}", partial(half, kind))
    for width, height in ((2**31 - 1, 2**31 - 1), (-(2**31), 1), (1, -(2**31)), (30_000, 30_000)):
        yield P(f"BMP of {width:,} x {height:,}", ".bmp", partial(bmp, width, height))
    yield P("BMP packed by lengths", ".bmp", partial(bmp, 7000, 7000, bits=8, packed=1, offset=1078))
    yield P("BMP whose numbers lie beyond it", ".bmp", partial(bmp, 100, 100, offset=2**32 - 1))
    exif = b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<HHHIII", 1, 0x8769, 4, 1, 8, 8)
    yield P("EXIF in a ring", ".jpg", partial(with_exif, exif), seen=True)
    yield P("a hole", ".png", hole)
    yield P("a hole after a PNG's head", ".png", partial(hole, start=header(100, 100, 8, 2)))
    yield P("65 MB", ".png", partial(hole, size=65 << 20))
    yield P("nothing", ".png", Path.touch)
    yield P("a pipe", ".png", os.mkfifo)
    yield P("a folder", ".png", Path.mkdir)
    yield P("links in a ring", ".png", loop)
    yield P("a device", ".png", lambda path: path.symlink_to("/dev/zero"))
    others = {
        "EPS": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(%pipe%touch /tmp/x) (w) file\n",
        "TIFF": b"II*\0\x08\0\0\0" + bytes(100),
        "SVG": b"<svg xmlns='http://www.w3.org/2000/svg'><image href='file:///etc/passwd'/></svg>",
        "PDF": b"%PDF-1.7\n",
        "ZIP": b"PK\x03\x04" + bytes(100),
    }
    for name, content in others.items():
        yield P(f"{name} by another name", ".png", partial(Path.write_bytes, data=content))
