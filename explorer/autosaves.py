"""Where windows keep what is not saved: a file each, named by the process that it belongs to.

A file whose process has ended was left behind: by a kill, or by a window that was closed with unsaved steps.
"""

from __future__ import annotations

import os
import re
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from explorer.settings import folder
from models.files.whole_files import remove_left_behind

MOST_LEFT = 10
"""Files that were left behind, of which the oldest go."""
_NAME = re.compile(r"(?P<host>[A-Za-z0-9-]+)-(?P<pid>[0-9]{1,9})-(?P<started>[0-9]{1,15})-(?P<window>[0-9]{1,6})\.attn")


@dataclass(frozen=True, slots=True)
class Left:
    """A file that nobody writes to any more."""

    path: Path
    written: float  # seconds since the epoch


def autosave_folder() -> Path:
    return folder() / "autosave"


def own_path() -> Path:
    """A name for a window of this process that no other has."""
    for number in range(1, 1_000_000):
        path = autosave_folder() / f"{_host()}-{os.getpid()}-{_started(os.getpid())}-{number}.attn"
        if not path.exists() and path not in _taken:
            _taken.add(path)
            return path
    raise AssertionError("no process has a million windows")


_taken: set[Path] = set()


def left_behind() -> list[Left]:
    """Files of this computer's ended processes, the newest first. What is older than `MOST_LEFT` of them is deleted."""
    found = []
    remove_left_behind(autosave_folder())
    try:
        entries = list(autosave_folder().iterdir())
    except OSError:
        return []
    for path in entries:
        with suppress(OSError):
            name = _NAME.fullmatch(path.name)
            if name is not None and path.is_file() and _is_over(name["host"], int(name["pid"]), int(name["started"])):
                found.append(Left(path, path.stat().st_mtime))
    found.sort(key=lambda left: left.written, reverse=True)
    for old in found[MOST_LEFT:]:
        with suppress(OSError):
            old.path.unlink()
    return found[:MOST_LEFT]


def take(left: Left) -> Path | None:
    """Make a file that was left behind one of this process; None where another window was faster."""
    path = own_path()
    try:
        left.path.rename(path)
    except OSError:
        return None
    return path


def _is_over(host: str, pid: int, started: int) -> bool:
    """Whether a process of this computer has ended; False for those of others, which cannot be told."""
    return host == _host() and _started(pid) != started


def _started(pid: int) -> int:
    """When a process began, to tell it from a later one of the same number; 0 where there is none."""
    with suppress(OSError, ValueError, IndexError):  # Linux: ticks since the start, which no setting of the clock moves
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    try:
        return int(psutil.Process(pid).create_time())
    except psutil.Error:
        return 0


def _host() -> str:
    return re.sub("[^A-Za-z0-9-]", "-", socket.gethostname())[:60] or "here"
