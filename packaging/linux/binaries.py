"""The libraries of a built folder: those that nothing needs are removed, and symbols for debuggers.

By binutils, which PyInstaller asks for too.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path


def remove_unneeded(folder: Path) -> None:
    """Remove the system's libraries that came along for a plugin of Qt, or another library, that is left out."""
    inner = folder / "_internal"
    files = [path for path in folder.rglob("*") if is_elf(path)]
    optional = {path.name for path in files if path.parent == inner and "python" not in path.name}
    needed = needed_by(path for path in files if path.parent != inner or path.name not in optional)
    more = needed
    while more := needed_by(inner / name for name in more & optional) - needed:
        needed |= more
    for name in sorted(optional - needed):
        (inner / name).unlink()


def strip(folder: Path) -> None:
    """Take the symbols for debuggers out of the libraries, where that leaves them whole."""
    for path in [path for path in folder.rglob("*.so*") if is_elf(path)]:
        stripped = path.with_name(f"{path.name}.stripped")
        subprocess.run(["strip", "--strip-unneeded", "-o", str(stripped), str(path)], check=True)
        if can_be_loaded(stripped):
            stripped.replace(path)
        else:
            stripped.unlink()


def is_elf(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def needed_by(files: Iterable[Path]) -> set[str]:
    """The names of the libraries that `files` are linked with."""
    paths = [str(path) for path in files]
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", _readelf("--dynamic", *paths))) if paths else set()


def can_be_loaded(library: Path) -> bool:
    """Whether its segments lie where the system's loader takes them: strip misplaces some that patchelf has moved."""
    rows = [line.split() for line in _readelf("--program-headers", str(library)).splitlines()]
    segments = [row for row in rows if row[:1] == ["LOAD"]]  # LOAD, offset, address, ..., alignment
    return all((int(row[1], 16) - int(row[2], 16)) % int(row[-1], 16) == 0 for row in segments)


def _readelf(*arguments: str) -> str:
    command = ["readelf", "--wide", *arguments]
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
