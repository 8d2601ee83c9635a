"""Files that are written whole or not at all, and what a disk that refuses is said to be."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from models.files.regular_files import NotAFile, require_regular

UNFINISHED = ".unfinished"
"""How the name of a file ends that is being written beside the one it will replace."""

_WHY = {
    errno.ENOSPC: "the disk is full. Make room, or choose another folder",
    errno.EDQUOT: "the disk has no more room for you. Make room, or choose another folder",
    errno.EROFS: "the disk can only be read. Choose another folder",
    errno.EACCES: "you may not write there. Choose another folder",
    errno.EPERM: "you may not write there. Choose another folder",
    errno.ENOENT: "there is no such folder. Choose another",
    errno.ENOTDIR: "there is no such folder. Choose another",
    errno.EISDIR: "a folder has that name. Choose another name",
    errno.ELOOP: "that is a link that leads to itself. Choose another name",
}


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path in the folder of `path` to write to. It takes the place of `path` when the block ends.

    Its name is its own, so that two programs can write the same file at once: one of the two files is there then,
    whole. What `path` links to is replaced, not the link, and keeps its mode. If the block fails, what was written is
    deleted.

    Raises:
        OSError: the disk refuses, or what is at `path` is no regular file; it is still there as it was.
    """
    target = Path(os.path.realpath(path))
    before = _stat_of(target)
    unfinished = target.with_name(f".{secrets.token_hex(8)}{UNFINISHED}")
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))  # with the mode of any new file
    try:
        yield unfinished
        if before is not None:
            _take_over(unfinished, before)
        _flush(unfinished)
        unfinished.replace(target)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
    with suppress(OSError):  # the file is there; some disks flush no folders
        _flush(target.parent)


def write_whole(path: Path, content: bytes) -> None:
    """Replace the file at `path` by one of this content.

    Raises:
        OSError: the disk refuses, or what is at `path` is no regular file; it is still there as it was.
    """
    with replacing(path) as unfinished:
        unfinished.write_bytes(content)


def not_written(what: str, path: Path, error: OSError) -> str:
    """ "The weights could not be written to a.npz: the disk is full. Make room, or choose another folder." """
    if isinstance(error, NotAFile):
        return f"{what} could not be written to {path}: {error.strerror}. Choose another name."
    why = _WHY.get(error.errno or 0) or f"{(error.strerror or str(error)).lower()}. Choose another folder"
    return f"{what} could not be written to {path}: {why}."


def _stat_of(target: Path) -> os.stat_result | None:
    """Of the regular file that is there; None where nothing is."""
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    require_regular(found, target)
    return found


def _take_over(unfinished: Path, before: os.stat_result) -> None:
    """Give a new file the owner and the mode of the one before it."""
    if sys.platform != "win32":
        with suppress(OSError):  # only root gives files away
            os.chown(unfinished, before.st_uid, before.st_gid)
    unfinished.chmod(stat.S_IMODE(before.st_mode))


def _flush(path: Path) -> None:
    """Let the disk have what was written to a file, or to a folder's list of files."""
    if path.is_dir() and sys.platform == "win32":
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
