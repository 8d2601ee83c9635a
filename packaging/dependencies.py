"""What each requirement in pyproject.toml weighs, as rows of the table in docs/packaging.md.

    python packaging/dependencies.py

Size: the files of the distribution, without what it requires itself. Start: the processor's time that importing it
takes in a fresh process, with all that it imports, beyond that of Python alone; the least of three.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "models"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "explorer"))

import contents

IMPORTED = {"PySide6-Essentials": "PySide6.QtWidgets", "pillow": "PIL.Image"}
"""What is imported of a distribution where that is not called as it is."""

_TIMED = "import time, importlib; importlib.import_module({!r}); print(time.process_time())"


def requirements() -> list[str]:
    """Names of what is required, and of what the extras add to it, as pyproject.toml orders them."""
    return list(dict.fromkeys(Requirement(line).name for line in contents.required()))


def size(name: str) -> int:
    """Bytes of its files. Raises PackageNotFoundError."""
    found = distribution(name)
    paths = [Path(str(found.locate_file(file))) for file in found.files or ()]
    return sum(path.stat().st_size for path in paths if path.is_file())


def start(module: str) -> float:
    """Seconds of the processor until it is imported."""

    def once() -> float:
        done = subprocess.run([sys.executable, "-c", _TIMED.format(module)], check=True, capture_output=True, text=True)
        return float(done.stdout.splitlines()[-1])

    return min(once() for _ in range(3))


def main() -> int:
    bare = start("sys")
    for name in requirements():
        try:
            takes = start(IMPORTED.get(name, name)) - bare
            print(f"| {name} | {size(name) / 1e6:.1f} MB | {takes:.2f} s |", flush=True)
        except PackageNotFoundError:
            print(f"| {name} | not installed | |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
