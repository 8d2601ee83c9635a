"""The Qt application: renders what the engine computed and asks it for more. Never imports torch.

import explorer
explorer.open("story-gpt")            # a shipped checkpoint, a folder
explorer.open(model, tokenizer)       # a model that you have as an object; also in a notebook
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from explorer.version import __version__

if TYPE_CHECKING:
    from explorer.embedded import open as open

__all__ = ["__version__", "open"]


def __getattr__(name: str) -> Any:
    if name == "open":  # loaded on first use: Qt is not needed to ask for the version
        return import_module("explorer.embedded").open
    raise AttributeError(f"module 'explorer' has no attribute {name!r}")
