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


def lacking(names: Sequence[str]) -> list[str]:
    """Those of `names` that cannot be imported."""
    return [name for name in names if find_spec(name) is None]


def install_command(names: Sequence[str]) -> str:
    """It names the packages themselves: extras of this program could be had only from where its source lies."""
    return f"python -m pip install {' '.join(names)}"
