"""Attention Explorer in Python: runs transformers, answers questions about their attention, and opens the window.

    import attention_explorer as ax

    model = ax.open_checkpoint("story-gpt")              # a shipped name or a folder
    trace = ax.run(model, "Tom and Anna went to the park. Anna gave the ball to")
    trace.weights(trace.sites[5], head=5)[-1]            # what the last token attends to, (keys,)

    ax.open("story-gpt")                                 # the window
    ax.open(model, tokenizer)                            # on a model that you have as an object; also in a notebook

Every name of `attention_models` is here too. Each is loaded on first use: importing this loads neither torch nor Qt.
The modules of this package are the Qt application, which never imports torch.
"""

from __future__ import annotations

import attention_models
from attention_explorer.version import __version__

TYPE_CHECKING = False  # typing's own takes longer to import than all of this, and Ctrl+C shows its traceback meanwhile

if TYPE_CHECKING:
    from typing import Any

    from attention_explorer.embedded import open as open
    from attention_models import *  # noqa: F403

__all__ = ["__version__", "open"]
__all__ += attention_models.__all__


if not TYPE_CHECKING:  # so that editors and mypy point out a name that is not there

    def __getattr__(name: str) -> Any:
        if name in attention_models.__all__:
            return getattr(attention_models, name)
        if name != "open":
            raise AttributeError(f"module 'attention_explorer' has no attribute {name!r}")
        try:
            from attention_explorer import embedded
        except ImportError as error:
            from attention_explorer.missing_libraries import missing_library

            if not (sentence := missing_library(str(error))):
                raise
            raise ImportError(sentence) from error
        return embedded.open


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
