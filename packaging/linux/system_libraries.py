"""The libraries of the build computer that PyInstaller has put into the bundle: from which packages they are, and under
which terms. Where dpkg is not installed, nothing is known of them.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from attention_explorer.licences import chapter

DOCUMENTS = Path("/usr/share/doc")


@dataclass(frozen=True)
class SystemPackage:
    name: str  # of Debian or Ubuntu
    version: str
    copyright: str  # the text; "" where it is not there
    libraries: tuple[str, ...]


def names_in(folder: Path) -> list[str]:
    """File names of the libraries that lie beside the packages of a built folder; links lead into those packages."""
    inner = folder / "_internal"
    return sorted(path.name for path in inner.glob("lib*.so*") if not path.is_symlink() and "python" not in path.name)


def system_packages(libraries: Iterable[str]) -> list[SystemPackage]:
    """The packages that the `libraries`, by their file names, are installed from, sorted."""
    wanted = list(libraries)
    if not wanted or shutil.which("dpkg") is None:
        return []
    # it fails where it does not know one of them, and tells of the others all the same
    said = subprocess.run(["dpkg", "-S", *(f"*/{name}" for name in wanted)], capture_output=True, text=True).stdout
    held: dict[str, set[str]] = {}
    for line in said.splitlines():
        owner, _, path = line.partition(": ")
        if Path(path).name in wanted and Path(path).parent.parent.name in ("lib", "usr"):
            held.setdefault(owner.partition(":")[0], set()).add(Path(path).name)
    return [SystemPackage(name, _version(name), _copyright(name), tuple(sorted(held[name]))) for name in sorted(held)]


def licences(packages: Iterable[SystemPackage]) -> str:
    """A chapter for the document of licences; "" without packages."""
    found = list(packages)
    if not found:
        return ""
    lines = [
        "## Libraries of the system",
        "",
        "They lie in `_internal` as files of their own, and may be replaced there.",
    ]
    lines += ["", *(f"- {one.name} {one.version}: {', '.join(one.libraries)}" for one in found), ""]
    for one in found:
        lines += chapter(one.name, one.copyright.strip())
    return "\n".join(lines)


def _version(name: str) -> str:
    command = ["dpkg-query", "-W", "-f", "${Version}\n", name]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]


def _copyright(name: str) -> str:
    path = DOCUMENTS / name / "copyright"
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
