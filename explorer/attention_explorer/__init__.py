"""The Qt application: renders what the engine computed and asks it for more. Never imports torch.

import attention_explorer as explorer
explorer.open("story-gpt")            # a shipped checkpoint, a folder
explorer.open(model, tokenizer)       # a model that you have as an object; also in a notebook
"""

from __future__ import annotations

from attention_explorer.version import __version__

TYPE_CHECKING = False  # typing's own takes longer to import than all of this, and Ctrl+C shows its traceback meanwhile

if TYPE_CHECKING:
    from typing import Any

    from attention_explorer.embedded import open as open

__all__ = ["__version__", "open"]


def __getattr__(name: str) -> Any:
    if name == "open":  # loaded on first use: Qt is not needed to ask for the version
        try:
            from attention_explorer import embedded
        except ImportError as error:
            from attention_explorer.missing_libraries import missing_library

            if not (sentence := missing_library(str(error))):
                raise
            raise ImportError(sentence) from error
        return embedded.open
    raise AttributeError(f"module 'explorer' has no attribute {name!r}")
