"""What goes into a model's head and the logits that come out of it, in one shape whatever the head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from attention_models.protocol.values import ClassHead


def as_choices(inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Texts of a batch, (texts, tokens), as the choices of one question: (1, texts, tokens)."""
    return {name: tensor[None] for name, tensor in inputs.items()}


def logits_of(out: Any) -> Tensor | None:
    """The logits in what a model of transformers gave; None where it has none.

    (batch, tokens, vocabulary or classes), (batch, classes) of a classifier of whole texts, and of one that answers
    questions (batch, tokens, 2): start and end. A model that chooses gives (1, choices), a discriminator
    (batch, tokens).
    """
    logits: Tensor | None = getattr(out, "logits", None)
    if logits is None:
        logits = getattr(out, "prediction_logits", None)  # beside those of a head for pairs
    start = getattr(out, "start_logits", None)
    if logits is None and start is not None:
        return torch.stack([start, out.end_logits], dim=-1)
    return logits


def pair_logits_of(out: Any) -> Tensor | None:
    """What a head for pairs says beside one for masks, (batch, 2); None where there is none."""
    for name in ("seq_relationship_logits", "sop_logits"):
        logits: Tensor | None = getattr(out, name, None)
        if logits is not None:
            return logits
    return None


def spread_over_tokens(out: Any, head: ClassHead, shape: torch.Size) -> None:
    """Give `out` logits of (batch, tokens, classes), where the inputs' `shape` is (batch, tokens).

    What is said of the text as a whole stands at every token. So do the logits of all choices, in each of their texts.
    """
    logits = logits_of(out)
    if logits is None:
        return
    if head.of in ("text", "choice"):
        logits = logits[:, None].expand(*shape, -1)
    elif logits.dim() == 2:  # one number a token
        logits = logits[..., None]
    out.logits = logits
