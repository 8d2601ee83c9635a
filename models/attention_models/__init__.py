"""The mathematics of Attention Explorer: runs transformers and answers questions about their attention. No Qt.

A person's program takes its names from `attention_explorer`, which has all of them and the window:

    import attention_explorer as ax

    model = ax.open_checkpoint("story-gpt")
    ax.run(model, "Tom and Anna", interventions=[ax.Scale(0.5), ax.Mask("window", window=8)])

The names are loaded on first use, so that `attention_models.protocol.request` can be imported without torch.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # typing's own would take as long to import as all else here

if TYPE_CHECKING:
    from typing import Any

    from attention_models.compare.answering import compare_runs as compare_runs
    from attention_models.corpus.corpus import read_corpus as read_corpus
    from attention_models.decoding.decode import decode as decode
    from attention_models.effects.adversarial_attention import adversarial_attention as adversarial_attention
    from attention_models.effects.attribution import logit_attribution as logit_attribution
    from attention_models.effects.explanation import explanations as explanations
    from attention_models.effects.in_context import word_in_context as word_in_context
    from attention_models.effects.lens import logit_lens as logit_lens
    from attention_models.effects.patching import patch as patch
    from attention_models.effects.sweep import head_effects as head_effects
    from attention_models.forward.adopted import adopt as adopt
    from attention_models.forward.adopted import attend as attend
    from attention_models.forward.model import Model as Model
    from attention_models.forward.run import run as run
    from attention_models.forward.trace import Trace as Trace
    from attention_models.opening.open import open_checkpoint as open_checkpoint
    from attention_models.protocol.ablation import Ablation as Ablation
    from attention_models.protocol.batch import Batch as Batch
    from attention_models.protocol.chat import Chat as Chat
    from attention_models.protocol.chat import Pair as Pair
    from attention_models.protocol.interventions import Adapter as Adapter
    from attention_models.protocol.interventions import Mask as Mask
    from attention_models.protocol.interventions import Positions as Positions
    from attention_models.protocol.interventions import Scale as Scale
    from attention_models.protocol.roles import HeadQuestion as HeadQuestion
    from attention_models.roles.roles import head_roles as head_roles
    from attention_models.roles.which_heads import which_heads as which_heads
    from attention_models.scripts.as_pytorch import as_pytorch as as_pytorch
    from attention_models.views.export import save_weights as save_weights
    from attention_models.views.saved_weights import load_weights as load_weights

_HOMES = {
    "Adapter": "attention_models.protocol.interventions",
    "Batch": "attention_models.protocol.batch",
    "Chat": "attention_models.protocol.chat",
    "HeadQuestion": "attention_models.protocol.roles",
    "Mask": "attention_models.protocol.interventions",
    "Pair": "attention_models.protocol.chat",
    "Positions": "attention_models.protocol.interventions",
    "Scale": "attention_models.protocol.interventions",
    "Ablation": "attention_models.protocol.ablation",
    "adopt": "attention_models.forward.adopted",
    "as_pytorch": "attention_models.scripts.as_pytorch",
    "attend": "attention_models.forward.adopted",
    "open_checkpoint": "attention_models.opening.open",
    "read_corpus": "attention_models.corpus.corpus",
    "run": "attention_models.forward.run",
    "compare_runs": "attention_models.compare.answering",
    "decode": "attention_models.decoding.decode",
    "head_roles": "attention_models.roles.roles",
    "which_heads": "attention_models.roles.which_heads",
    "head_effects": "attention_models.effects.sweep",
    "logit_attribution": "attention_models.effects.attribution",
    "explanations": "attention_models.effects.explanation",
    "logit_lens": "attention_models.effects.lens",
    "adversarial_attention": "attention_models.effects.adversarial_attention",
    "patch": "attention_models.effects.patching",
    "word_in_context": "attention_models.effects.in_context",
    "save_weights": "attention_models.views.export",
    "load_weights": "attention_models.views.saved_weights",
    "Trace": "attention_models.forward.trace",
    "Model": "attention_models.forward.model",
}

__all__ = [
    "Ablation",
    "Adapter",
    "Batch",
    "Chat",
    "HeadQuestion",
    "Mask",
    "Model",
    "Pair",
    "Positions",
    "Scale",
    "Trace",
    "adopt",
    "adversarial_attention",
    "as_pytorch",
    "attend",
    "compare_runs",
    "decode",
    "explanations",
    "head_effects",
    "head_roles",
    "load_weights",
    "logit_attribution",
    "logit_lens",
    "open_checkpoint",
    "patch",
    "read_corpus",
    "run",
    "save_weights",
    "which_heads",
    "word_in_context",
]


if not TYPE_CHECKING:  # so that editors and mypy point out a name that is not there

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            return getattr(import_module(_HOMES[name]), name)
        raise AttributeError(f"module 'attention_models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
