"""What is left of a program that fell: a file of its own beside the log, found by the next start.

A fault inside a library ends the process at once, so that nothing can be said then. Python writes where each thread was
into a file that is open all the while. A program that ends as it should deletes it.
"""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from explorer.settings import folder
from explorer.version import __version__

KEPT = 5
"""So many of the newest stay."""

_TOLD = ".told"


def crash_folder() -> Path:
    return folder() / "crashes"


@contextmanager
def watched() -> Iterator[None]:
    """While this runs a crash leaves its file. Where none can be written, the program works without."""
    path = crash_folder() / f"{os.getpid()}-{_started(os.getpid())}.txt"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w", encoding="utf-8")
    except OSError:
        yield
        return
    try:
        with suppress(OSError):
            file.write(f"Attention Explorer {__version__}\n")
            file.flush()
        faulthandler.enable(file)
        yield
    finally:
        faulthandler.disable()
        file.close()
        with suppress(OSError):
            path.unlink()


def left_behind() -> list[Path]:
    """The files of programs that fell and of which nothing was said yet, the newest first.

    What says nothing of a fault (the program was killed) is deleted, and so are the oldest beyond `KEPT`.
    """
    try:
        found = sorted(crash_folder().glob("*.txt"), key=lambda path: path.stat().st_mtime, reverse=True)
    except OSError:
        return []
    fallen: list[Path] = []
    for path in found:
        with suppress(OSError, ValueError):
            pid, _, started = path.stem.removesuffix(_TOLD).partition("-")
            if _started(int(pid)) == int(started):
                continue  # it runs
            says_why = len(path.read_bytes().splitlines()) > 1
            if not says_why or len(fallen) >= KEPT:
                path.unlink()
            else:
                fallen.append(path)
    return [path for path in fallen if not path.stem.endswith(_TOLD)]


def told(paths: list[Path]) -> None:
    """The person knows of these."""
    for path in paths:
        with suppress(OSError):
            path.rename(path.with_name(f"{path.stem}{_TOLD}.txt"))


def _started(pid: int) -> int:
    """When a process started, in hundredths of seconds; 0 where there is none."""
    try:
        return int(psutil.Process(pid).create_time() * 100)
    except psutil.Error:
        return 0
