"""A system of its own in a folder, for dpkg to install packages into without root."""

from __future__ import annotations

import subprocess
from pathlib import Path


def dpkg(root: Path, *arguments: str) -> None:
    """Run dpkg on the system in `root/system`, which holds nothing: no package's requirements are there."""
    for name in ("system", "admin/updates", "admin/info"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "admin" / "status").touch()
    command = ["dpkg", f"--instdir={root / 'system'}", f"--admindir={root / 'admin'}", f"--log={root / 'log'}"]
    forced = ["--force-not-root", "--force-depends", "--force-unsafe-io"]
    subprocess.run([*command, *forced, *arguments], check=True, capture_output=True)
