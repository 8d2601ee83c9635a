"""Files that are written whole or not at all, and what a disk that refuses is said to be."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_WHY = {
    errno.ENOSPC: "the disk is full. Make room, or choose another folder",
    errno.EDQUOT: "the disk has no more room for you. Make room, or choose another folder",
    errno.EROFS: "the disk can only be read. Choose another folder",
    errno.EACCES: "you may not write there. Choose another folder",
    errno.EPERM: "you may not write there. Choose another folder",
    errno.ENOENT: "there is no such folder. Choose another",
    errno.EISDIR: "a folder has that name. Choose another name",
}


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to. It takes the place of `path` when the block ends, and is deleted if it fails.

    Raises:
        OSError: the disk refuses; what was at `path` before is still there.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        yield part
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: bytes) -> None:
    """Replace the file at `path` by one of this content.

    Raises:
        OSError: the disk refuses; what was at `path` before is still there.
    """
    with replacing(path) as part:
        part.write_bytes(content)


def not_written(what: str, path: Path, error: OSError) -> str:
    """ "The weights could not be written to a.npz: the disk is full. Make room, or choose another folder." """
    why = _WHY.get(error.errno or 0) or f"{(error.strerror or str(error)).lower()}. Choose another folder"
    return f"{what} could not be written to {path}: {why}."
