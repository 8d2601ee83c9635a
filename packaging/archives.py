"""The built program as one file, compressed by xz: an archive to be unpacked anywhere, and the members of a .deb."""

from __future__ import annotations

import lzma
import platform
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

BEST = "9"
"""xz's preset, 0 to 9: what is released is as small as it can be, what is only tried is soon done with "0"."""


def tar_xz(folder: Path, path: Path, preset: str = BEST) -> Path:
    """`folder` as an archive: sorted, of nobody, of no time, so that the same files give the same bytes."""

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = info.mtime = 0
        info.uname = info.gname = ""
        return info

    with (
        path.open("wb") as target,
        compressed(target, preset) as file,
        tarfile.open(fileobj=file, mode="w|") as archive,
    ):
        for found in sorted(folder.rglob("*")):
            archive.add(found, f"{folder.name}/{found.relative_to(folder)}", recursive=False, filter=plain)
    return path


_MAGIC, _END = b"!<arch>\n", b"`\n"


def compress_deb(path: Path, preset: str = BEST) -> None:
    """Compress the members of a .deb as dpkg-deb cannot, but dpkg can read: with xz's filter for a processor's code.

    A .deb is an archive of ar: before each member stand its name (16 bytes), time, owner, group, mode and size (the ten
    bytes from 48 on), and each begins at an even place.
    """
    made = path.with_name(f"{path.name}.xz")
    with path.open("rb") as source, made.open("w+b") as target:
        target.write(source.read(len(_MAGIC)))
        while header := source.read(60):
            name, size = header[:16].decode().rstrip(" /"), int(header[48:58])
            end = source.tell() + size + size % 2
            begin = target.tell()
            target.write(header)
            if name.endswith(".tar"):
                name += ".xz"
                with compressed(target, preset) as file:
                    _copy(source, file, size)
            else:
                _copy(source, target, size)
            size = target.seek(0, 2) - begin - len(header)
            target.write(b"\n" * (size % 2))
            target.seek(begin)
            target.write(f"{name:16}".encode() + header[16:48] + f"{size:<10}".encode() + _END)
            target.seek(0, 2)
            source.seek(end)
    made.replace(path)


def _copy(source: IO[bytes], target: IO[bytes], size: int) -> None:
    while size and (piece := source.read(min(size, 1 << 20))):
        target.write(piece)
        size -= len(piece)


@contextmanager
def compressed(target: IO[bytes], preset: str = BEST) -> Iterator[IO[bytes]]:
    """What is written goes into `target` by xz on all cores, or where that is not installed on one."""
    tool = shutil.which("xz")
    if tool is None:
        with lzma.open(target, "wb", preset=min(int(preset), 6)) as file:
            yield file
        return
    target.flush()
    # jumps in code repeat once they say where they lead to; blocks are of one size, so that the number of cores does
    # not change a byte
    filters = ["--x86"] if platform.machine().lower() in ("x86_64", "amd64") else []
    command = [tool, "--threads=0", "--block-size=256MiB", *filters, f"--lzma2=preset={preset}", "--stdout"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=target)
    assert process.stdin is not None
    try:
        yield process.stdin
    finally:
        process.stdin.close()
        code = process.wait()
    if code:
        raise subprocess.CalledProcessError(code, command)
