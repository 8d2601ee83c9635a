"""Where windows keep what is not saved: a file each, named by the process that it belongs to.

A file whose process has ended was left behind: by a kill, or by a window that was closed with unsaved steps.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from attention_explorer.recovery.owners import is_left_behind, own_mark
from attention_explorer.settings import folder
from attention_models.files.safe_files import remove_left_behind

MOST_LEFT = 10
"""Files that are offered at once; older ones are offered when these are gone on with."""
SESSION, LESSON = ".attn", ".draft"
"""What their names end with: work in a window, and a lesson that is made in it."""


@dataclass(frozen=True, slots=True)
class Left:
    """A file that nobody writes to any more."""

    path: Path
    written: float  # seconds since the epoch


def autosave_folder() -> Path:
    return folder() / "autosave"


def own_path(ending: str = SESSION) -> Path:
    """A name for a window of this process that no other has."""
    for number in range(1, 1_000_000):
        path = autosave_folder() / f"{own_mark()}-{number}{ending}"
        if not path.exists() and path not in _taken:
            _taken.add(path)
            return path
    raise AssertionError("no process has a million windows")


_taken: set[Path] = set()


def left_behind(ending: str = SESSION) -> list[Left]:
    """The newest files of this computer's ended processes, the newest first."""
    name_ends = r"-[0-9]{1,6}" + re.escape(ending)
    found = []
    remove_left_behind(autosave_folder())
    try:
        entries = list(autosave_folder().iterdir())
    except OSError:
        return []
    for path in entries:
        with suppress(OSError):
            if is_left_behind(path.name, name_ends) and path.is_file():
                found.append(Left(path, path.stat().st_mtime))
    found.sort(key=lambda left: left.written, reverse=True)
    return found[:MOST_LEFT]


def take(left: Left) -> Path | None:
    """Make a file that was left behind one of this process; None where another window was faster."""
    path = own_path(left.path.suffix)
    try:
        left.path.rename(path)
    except OSError:
        return None
    return path
