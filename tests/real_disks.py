"""A disk of two megabytes that really fills up and really can only be read; permissions would not bind root."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SIZE = 2 << 20
_BLOCK = 4096
BALLAST = "ballast"


class Disk:
    """A file system in memory, at `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, leave: int = 0) -> None:
        """Take all room but `leave` bytes."""
        ballast = self.folder / BALLAST
        with ballast.open("wb", buffering=0) as stream:
            try:
                while stream.write(bytes(_BLOCK)):
                    pass
            except OSError:
                pass
            stream.truncate(max(0, stream.tell() - leave))

    def empty(self) -> None:
        (self.folder / BALLAST).unlink(missing_ok=True)

    def forbid_writing(self) -> None:
        subprocess.run(["mount", "-o", "remount,ro", self.folder], check=True)

    def names(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()} - {BALLAST}


@contextmanager
def mounted(folder: Path) -> Iterator[Disk]:
    """A disk at `folder`. The test is skipped where this process may mount none."""
    folder.mkdir()
    tool = shutil.which("mount")
    if tool is None:
        pytest.skip("there is no mount command to make a small disk with")
    made = subprocess.run(
        [tool, "-t", "tmpfs", "-o", f"size={SIZE}", "none", folder], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {made.stderr.strip() or made.returncode}")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
