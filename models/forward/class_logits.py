"""The logits in what a model gave, in one shape whatever its head."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from models.protocol.values import ClassHead


def logits_of(out: Any) -> Tensor | None:
    """The logits in what a model of transformers gave; None where it has none.

    (batch, tokens, vocabulary or classes), (batch, classes) of a classifier of whole texts, and of one that answers
    questions (batch, tokens, 2): start and end.
    """
    logits: Tensor | None = getattr(out, "logits", None)
    start = getattr(out, "start_logits", None)
    if logits is None and start is not None:
        return torch.stack([start, out.end_logits], dim=-1)
    return logits


def spread_over_tokens(out: Any, head: ClassHead, tokens: int) -> None:
    """Give `out` logits of (batch, tokens, classes): what is said of the text as a whole stands at every token."""
    logits = logits_of(out)
    if logits is not None:
        out.logits = logits[:, None].expand(-1, tokens, -1) if head.of == "text" else logits
