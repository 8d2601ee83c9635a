"""What is left of a program that fell: a file of its own beside the log, found by the next start.

A fault inside a library ends the process at once, so that nothing can be said then. Python writes where each thread was
into a file that is open all the while. A program that ends as it should deletes it.
"""

from __future__ import annotations

import faulthandler
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from attention_explorer.recovery.owners import is_left_behind, own_mark
from attention_explorer.settings import folder, make_folder
from attention_explorer.version import __version__
from attention_models.files.safe_files import private_opener

KEPT = 5
"""So many of the newest stay."""

_FILE = r"(\.told)?\.txt"


def crash_folder() -> Path:
    return folder() / "crashes"


@contextmanager
def watched() -> Iterator[None]:
    """While this runs a crash leaves its file. Where none can be written, the program works without."""
    path = crash_folder() / f"{own_mark()}.txt"
    try:
        make_folder(path.parent.name)
        file = open(path, "w", encoding="utf-8", opener=private_opener)  # noqa: SIM115  (closed below)
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
        with suppress(OSError):
            if not is_left_behind(path.name, _FILE):
                continue  # it runs
            says_why = len(path.read_bytes().splitlines()) > 1
            if not says_why or len(fallen) >= KEPT:
                path.unlink()
            else:
                fallen.append(path)
    return [path for path in fallen if not path.stem.endswith(".told")]


def told(path: Path) -> Path:
    """The person knows of this one; where it lies from here on."""
    try:
        return path.rename(path.with_name(f"{path.stem}.told.txt"))
    except OSError:
        return path
