"""Names that say which process a file belongs to: one whose process has ended was left behind."""

from __future__ import annotations

import os
import re
import socket
from contextlib import suppress
from pathlib import Path

import psutil

MARK = r"(?P<host>[A-Za-z0-9-]+)-(?P<pid>[0-9]{1,9})-(?P<started>[0-9]{1,15})"
"""`own_mark` as a regular expression."""


def own_mark() -> str:
    """The beginning of a name that no other process gives."""
    return f"{_host()}-{os.getpid()}-{_started(os.getpid())}"


def is_over(host: str, pid: int, started: int) -> bool:
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
