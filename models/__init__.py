"""The mathematics of Attention Explorer: runs transformers and answers questions about their attention. No Qt.

    from models import open_checkpoint, run

    model = open_checkpoint("story-gpt")              # a shipped name or a folder
    trace = run(model, "Tom and Anna went to the park. Anna gave the ball to")
    trace.weights(trace.sites[5], head=5)[-1]         # where the last token looks, (keys,)

The names are loaded on first use, so that `models.requests` can be imported without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from models.adopted import adopt as adopt
    from models.adopted import attend as attend
    from models.capture import run as run
    from models.chat import Chat as Chat
    from models.checkpoints import open_checkpoint as open_checkpoint
    from models.decoding import decode as decode
    from models.model import Model as Model
    from models.trace import Trace as Trace

_HOMES = {
    "Chat": "models.chat",
    "adopt": "models.adopted",
    "attend": "models.adopted",
    "open_checkpoint": "models.checkpoints",
    "run": "models.capture",
    "decode": "models.decoding",
    "Trace": "models.trace",
    "Model": "models.model",
}

__all__ = ["Chat", "Model", "Trace", "adopt", "attend", "decode", "open_checkpoint", "run"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
