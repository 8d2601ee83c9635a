"""Names that say which process a file belongs to: one whose process has ended was left behind."""

from __future__ import annotations

import os
import re
import socket
from contextlib import suppress
from pathlib import Path

_MARK = r"(?P<host>[A-Za-z0-9-]+)-(?P<pid>[0-9]{1,9})-(?P<started>[0-9]{1,15})"
"""`own_mark` as a regular expression."""


def own_mark() -> str:
    """The beginning of a name that no other process gives."""
    return f"{_host()}-{os.getpid()}-{_started(os.getpid())}"


def is_left_behind(name: str, ending: str) -> bool:
    """Whether `name` is a mark with an `ending` (a regular expression), and its process, of this computer, has ended.

    False for processes of other computers, of which that cannot be told.
    """
    mark = re.fullmatch(_MARK + ending, name)
    return mark is not None and mark["host"] == _host() and _started(int(mark["pid"])) != int(mark["started"])


def _started(pid: int) -> int:
    """When a process began, to tell it from a later one of the same number; 0 where there is none."""
    with suppress(OSError, ValueError, IndexError):  # Linux: ticks since the start, which no setting of the clock moves
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    import psutil  # asked where /proc has no answer: the window comes up sooner without it

    try:
        return int(psutil.Process(pid).create_time())
    except psutil.Error:
        return 0


def _host() -> str:
    return re.sub("[^A-Za-z0-9-]", "-", socket.gethostname())[:60] or "here"
