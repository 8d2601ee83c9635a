"""What a model says at a position, likeliest first: next tokens, the token behind a mask, or classes."""

from __future__ import annotations

import numpy as np
import torch

from attention_models.forward.classes import classes_at, labels_of
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.values import Candidate

CANDIDATES = 10
"""How many of the likeliest a view names."""


def likeliest(model: Model, trace: Trace, stack: str, position: int) -> tuple[Candidate, ...]:
    """At most `CANDIDATES` of what it says; none where it says nothing there."""
    if not trace.has_logits or (model.info.family == "seq2seq" and stack == "encoder"):
        return ()
    if model.info.class_head is not None:
        return classes_at(model, trace, position)[:CANDIDATES]
    logits = trace.logits_at([position])[0].float().cpu()  # (vocabulary,)
    best = torch.topk(logits, min(CANDIDATES, len(logits)))
    row = logits.numpy().astype(np.float64)
    largest = row.max()
    total = np.exp(row - largest).sum()
    logits_of_best: list[float] = best.values.tolist()
    return tuple(
        Candidate(
            id=id_,
            label=model.piece_label(id_),
            piece=model.piece(id_),
            probability=float(np.exp(row[id_] - largest) / total),
            logit=logit,
            rank=1 + sum(other > logit for other in logits_of_best),
        )
        for logit, id_ in zip(logits_of_best, best.indices.tolist(), strict=True)
    )


def label_of(model: Model, trace: Trace, answer: int | None) -> str:
    """What to call a vocabulary id or a class; "" for None."""
    if answer is None:
        return ""
    head = model.info.class_head
    return model.piece_label(answer) if head is None else labels_of(head, trace)[answer]
