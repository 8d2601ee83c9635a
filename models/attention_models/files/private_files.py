"""Files and folders that only their owner may read: they hold what a person wrote.

On Windows a new file takes over who may read it from its folder, and there a person's own folders are closed to others.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

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
