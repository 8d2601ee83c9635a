"""Packages that not every installation has: what is missing, and the command that installs it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

GGUF = ("gguf", "accelerate")
"""What opens GGUF files: transformers asks for accelerate before it opens any."""
ADAPTERS = ("peft",)
"""What merges an adapter into its model."""
SPREAD = ("accelerate",)
"""What spreads a model over several devices."""


def is_installed(name: str) -> bool:
    """Whether a package can be imported. A folder of its name, as one full of GGUF files, is no package."""
    spec = find_spec(name)
    return spec is not None and spec.origin is not None


def lacking(names: Sequence[str]) -> list[str]:
    """Those of `names` that are not installed."""
    return [name for name in names if not is_installed(name)]


def install_command(names: Sequence[str]) -> str:
    """It names the packages themselves: extras of this program could be had only from where its source lies."""
    return f"python -m pip install {' '.join(names)}"
