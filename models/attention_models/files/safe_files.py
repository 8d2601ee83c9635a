"""Files that are written whole or not at all, and what a disk that refuses is said to be."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

# Files and folders that only their owner may read: they hold what a person wrote.
# On Windows a new file takes over who may read it from its folder, and there a person's own folders are closed to
# others.


FILE_MODE, FOLDER_MODE = 0o600, 0o700


def private_folder(path: Path) -> None:
    """Make `path`, and the folders above it that are missing, for their owner alone. What is there keeps its mode.

    Raises:
        OSError: the disk refuses.
    """
    if not path.parent.exists():
        private_folder(path.parent)
    path.mkdir(FOLDER_MODE, exist_ok=True)


def private_opener(path: str | os.PathLike[str], flags: int) -> int:
    """The `opener` of a file that, where it is new, only its owner may read."""
    return os.open(path, flags, FILE_MODE)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that, where it is new, only its owner may read. Raises OSError where the disk refuses."""
    with open(path, "wb", opener=private_opener) as file:
        file.write(content)


def keep_private(path: Path) -> None:
    """Close a file or folder of the program's own to others, where an earlier version left it open to them."""
    if sys.platform == "win32":
        return
    with suppress(OSError):  # it is not there, or somebody else's
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            path.chmod(mode & 0o700)


# Files of a person's choice are opened only where they are files: a pipe would wait for ever, a device never end.


class NotAFile(OSError):
    """A pipe, a device or a socket was given where a file is needed. `strerror` says which, as a clause."""


def open_regular(path: str | Path) -> IO[bytes]:
    """Open a file to read from it. What is no regular file is refused at once, before anything is waited for.

    Raises:
        OSError: it cannot be opened; `NotAFile` where it is a pipe, a device or a socket.
    """
    require_regular(os.stat(path), path)  # before it is opened: to open some devices does something
    # between the two it may have become a pipe
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        require_regular(os.fstat(handle), path)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def require_regular(found: os.stat_result, path: str | Path) -> None:
    """Refuse what is no regular file.

    Raises:
        OSError: `IsADirectoryError` for a folder, else `NotAFile`.
    """
    if stat.S_ISREG(found.st_mode):
        return
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "Is a directory", str(path))
    kind = next((name for of_kind, name in _KINDS if of_kind(found.st_mode)), "something else")
    raise NotAFile(errno.EINVAL, f"it is {kind}, not a file", str(path))


def is_link(path: Path) -> bool:
    """Whether a link lies at `path`, or a junction of Windows: what is written there goes somewhere else."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISLNK(found.st_mode) or getattr(found, "st_reparse_tag", 0) == _JUNCTION


_JUNCTION = 0xA0000003  # IO_REPARSE_TAG_MOUNT_POINT
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


UNFINISHED = ".unfinished"
"""How the name of a file ends that is being written beside the one it will replace."""

_OWN_NAME = re.compile(rf"\.[0-9a-f]{{16}}{re.escape(UNFINISHED)}")
_NEW_SECONDS = 2.0

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
def replacing(path: Path, private: bool = False) -> Iterator[Path]:
    """A path in the folder of `path` to write to. It takes the place of `path` when the block ends.

    Its name is its own, so that two programs can write the same file at once: one of the two files is there then,
    whole. What `path` links to is replaced, not the link, and keeps its mode. If the block fails, what was written is
    deleted.

    Args:
        private: where the file is new, only its owner may read it.

    Raises:
        OSError: the disk refuses, or what is at `path` is no regular file; it is still there as it was.
    """
    target = Path(os.path.realpath(path))
    before = _stat_of(target)
    unfinished = target.with_name(f".{secrets.token_hex(8)}{UNFINISHED}")
    mode = FILE_MODE if private else 0o666  # which is what any new file has, less the umask
    held = _hold(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    try:
        remove_left_behind(target.parent)
        yield unfinished
        if before is not None:
            _take_over(unfinished, before)
        _flush(unfinished)
        unfinished.replace(target)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
    finally:
        if held is not None:
            os.close(held)
    with suppress(OSError):  # the file is there; some disks flush no folders
        _flush(target.parent)


def remove_left_behind(folder: Path) -> None:
    """Delete what programs of this kind began to write in `folder` and were ended over: files that no process holds.

    Only this person's own, and only where it can be told who holds a file (not on Windows).
    """
    try:
        with os.scandir(folder) as found:
            entries = [Path(entry.path) for entry in found if _OWN_NAME.fullmatch(entry.name)]
    except OSError:
        return
    for path in entries:
        with suppress(OSError):
            _remove_unless_held(path)


def write_whole(path: Path, content: bytes, private: bool = False) -> None:
    """Replace the file at `path` by one of this content; `private` as in `replacing`.

    Raises:
        OSError: the disk refuses, or what is at `path` is no regular file; it is still there as it was.
    """
    with replacing(path, private) as unfinished:
        unfinished.write_bytes(content)


def not_written(what: str, path: Path, error: OSError) -> str:
    """ "The weights could not be written to a.npz: the disk is full. Make room, or choose another folder." """
    if isinstance(error, NotAFile):
        return f"{what} could not be written to {path}: {error.strerror}. Choose another name."
    why = _WHY.get(error.errno or 0) or f"{(error.strerror or str(error)).lower()}. Choose another folder"
    return f"{what} could not be written to {path}: {why}."


def _hold(handle: int) -> int | None:
    """Let other processes see that the file of `handle` is being written; what to close then, if anything."""
    if sys.platform == "win32":
        os.close(handle)  # a file that is open cannot take the place of another there
        return None
    import fcntl

    with suppress(OSError):  # a disk without locks
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return handle


def _remove_unless_held(path: Path) -> None:
    if sys.platform == "win32":
        return
    import fcntl

    found = path.lstat()
    is_new = time.time() - found.st_mtime < _NEW_SECONDS  # and perhaps not held yet
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid() or is_new:
        return
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    finally:
        os.close(handle)


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
