"""What a classifier says of a run: classes, labels of tokens, ends of an answer, each with logit and share."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from models.forward.model import Model
from models.forward.trace import Trace
from models.protocol.errors import ExplorerError
from models.protocol.values import Candidate, ClassHead


def head_of(model: Model) -> ClassHead:
    """The class head of `model`.

    Raises:
        ExplorerError: it has none.
    """
    head = model.info.class_head
    if head is None:
        raise ExplorerError(f"{model.info.name} tells no classes apart.")
    return head


def shares_of(logits: Tensor, head: ClassHead) -> Tensor:
    """The share of each class, (tokens, classes) float64, of logits of that shape; NaN where they are plain numbers.

    Of a span each column is a softmax over the tokens: where the answer starts, and where it ends.
    """
    z = logits.double()
    if head.scale == "number":
        return torch.full_like(z, math.nan)
    return z.sigmoid() if head.scale == "sigmoid" else z.softmax(dim=0 if head.of == "span" else 1)


@torch.no_grad()
def classes_at(model: Model, trace: Trace, position: int) -> tuple[Candidate, ...]:
    """Every class at a token, the largest logit first; of a span its start and end there, in this order.

    Raises:
        ExplorerError: the model tells no classes apart.
    """
    head = head_of(model)
    rows = range(len(trace.tokens)) if head.of == "span" else [position]
    logits = trace.logits_at(rows).float().cpu()  # (rows, classes)
    shares, at = shares_of(logits, head), position if head.of == "span" else 0
    made = [_candidate(logits[at], shares[at], i, head.labels[i]) for i in range(logits.shape[1])]
    return tuple(made if head.of == "span" else sorted(made, key=lambda candidate: -candidate.logit))


@torch.no_grad()
def best_of_tokens(model: Model, trace: Trace) -> tuple[Candidate, ...]:
    """The class with the largest logit of each token; nothing but for a model that labels tokens."""
    head = model.info.class_head
    if head is None or head.of != "token" or not trace.has_logits:
        return ()
    logits = trace.logits_at(range(len(trace.tokens))).float().cpu()  # (tokens, classes)
    shares = shares_of(logits, head)
    best = logits.argmax(dim=1).tolist()
    return tuple(_candidate(z, p, i, head.labels[i]) for z, p, i in zip(logits, shares, best, strict=True))


@torch.no_grad()
def ends_of_span(model: Model, trace: Trace, top: int) -> tuple[tuple[Candidate, ...], tuple[Candidate, ...]]:
    """The likeliest tokens for the start and for the end of an answer, by position (`id`) and label."""
    head = head_of(model)
    logits = trace.logits_at(range(len(trace.tokens))).float().cpu()  # (tokens, 2)
    shares = shares_of(logits, head)
    ends = []
    for column in range(2):
        best = torch.topk(logits[:, column], min(top, len(logits))).indices.tolist()
        ends.append(tuple(_candidate(logits[:, column], shares[:, column], i, trace.tokens[i].label) for i in best))
    return ends[0], ends[1]


def _candidate(logits: Tensor, shares: Tensor, id_: int, label: str) -> Candidate:
    return Candidate(
        id=id_,
        label=label,
        piece=label,
        probability=float(shares[id_]),
        logit=float(logits[id_]),
        rank=1 + int((logits > logits[id_]).sum()),
    )
