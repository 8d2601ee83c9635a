"""Files of a person's choice are opened only where they are files: a pipe would wait for ever, a device never end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO


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
