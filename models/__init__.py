"""The mathematics of Attention Explorer: runs transformers and answers questions about their attention. No Qt.

    from models import Mask, Scale, open_checkpoint, run

    model = open_checkpoint("story-gpt")              # a shipped name or a folder
    trace = run(model, "Tom and Anna went to the park. Anna gave the ball to")
    trace.weights(trace.sites[5], head=5)[-1]         # what the last token attends to, (keys,)
    run(model, "Tom and Anna", interventions=[Scale(0.5), Mask("window", window=8)])

The names are loaded on first use, so that `models.protocol.request` can be imported without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from models.corpus.corpus import read_corpus as read_corpus
    from models.decoding.decode import decode as decode
    from models.effects.attribution import logit_attribution as logit_attribution
    from models.effects.explanation import explanations as explanations
    from models.effects.in_context import word_in_context as word_in_context
    from models.effects.lens import logit_lens as logit_lens
    from models.effects.other_weights import other_weights as other_weights
    from models.effects.patching import patch as patch
    from models.effects.sweep import head_effects as head_effects
    from models.forward.adopted import adopt as adopt
    from models.forward.adopted import attend as attend
    from models.forward.model import Model as Model
    from models.forward.run import run as run
    from models.forward.trace import Trace as Trace
    from models.opening.open import open_checkpoint as open_checkpoint
    from models.protocol.batch import Batch as Batch
    from models.protocol.chat import Chat as Chat
    from models.protocol.chat import Pair as Pair
    from models.protocol.interventions import Adapter as Adapter
    from models.protocol.interventions import Mask as Mask
    from models.protocol.interventions import Positions as Positions
    from models.protocol.interventions import Scale as Scale
    from models.protocol.roles import HeadQuestion as HeadQuestion
    from models.protocol.skip import Skip as Skip
    from models.roles.roles import head_roles as head_roles
    from models.roles.which_heads import which_heads as which_heads
    from models.scripts.as_pytorch import as_pytorch as as_pytorch
    from models.two_runs.answering import compare_runs as compare_runs
    from models.views.export import save_weights as save_weights
    from models.views.saved_weights import load_weights as load_weights

_HOMES = {
    "Adapter": "models.protocol.interventions",
    "Batch": "models.protocol.batch",
    "Chat": "models.protocol.chat",
    "HeadQuestion": "models.protocol.roles",
    "Mask": "models.protocol.interventions",
    "Pair": "models.protocol.chat",
    "Positions": "models.protocol.interventions",
    "Scale": "models.protocol.interventions",
    "Skip": "models.protocol.skip",
    "adopt": "models.forward.adopted",
    "as_pytorch": "models.scripts.as_pytorch",
    "attend": "models.forward.adopted",
    "open_checkpoint": "models.opening.open",
    "read_corpus": "models.corpus.corpus",
    "run": "models.forward.run",
    "compare_runs": "models.two_runs.answering",
    "decode": "models.decoding.decode",
    "head_roles": "models.roles.roles",
    "which_heads": "models.roles.which_heads",
    "head_effects": "models.effects.sweep",
    "logit_attribution": "models.effects.attribution",
    "explanations": "models.effects.explanation",
    "logit_lens": "models.effects.lens",
    "other_weights": "models.effects.other_weights",
    "patch": "models.effects.patching",
    "word_in_context": "models.effects.in_context",
    "save_weights": "models.views.export",
    "load_weights": "models.views.saved_weights",
    "Trace": "models.forward.trace",
    "Model": "models.forward.model",
}

__all__ = [
    *("Adapter", "Batch", "Chat", "HeadQuestion", "Mask", "Model", "Pair", "Positions", "Scale", "Skip", "Trace"),
    *("adopt", "as_pytorch", "attend", "compare_runs", "decode", "explanations", "head_effects", "head_roles"),
    *("load_weights", "logit_attribution", "logit_lens", "open_checkpoint", "other_weights", "patch", "read_corpus"),
    *("run", "save_weights", "which_heads", "word_in_context"),
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
