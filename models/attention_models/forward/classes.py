"""What a classifier says of a run: classes, labels of tokens, ends of an answer, each with logit and share."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.chat import Chat, Pair
from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.prompt import plain_text
from attention_models.protocol.values import Candidate, ClassHead

_MOST_NAMED = 60  # characters of a choice


def head_of(model: Model) -> ClassHead:
    """The class head of `model`.

    Raises:
        ExplorerError: it has none.
    """
    head = model.info.class_head
    if head is None:
        raise ExplorerError(f"{model.info.name} tells no classes apart.")
    return head


def labels_of(head: ClassHead, trace: Trace) -> tuple[str, ...]:
    """What its classes are called; of a choice the texts that ran together, numbered, each by its second text."""
    if head.of != "choice":
        return head.labels
    batch = None if trace.origin is None else trace.origin.batch
    if batch is None:
        return ("choice 1",)
    return tuple(f"{place}: {_named(text)}" for place, text in enumerate(batch.texts, start=1))


def _named(text: str | Pair | Chat) -> str:
    words = " ".join((text.second if isinstance(text, Pair) else plain_text(text)).split())
    return words if len(words) <= _MOST_NAMED else words[: _MOST_NAMED - 1] + "…"


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
    labels = labels_of(head, trace)
    made = [_candidate(logits[at], shares[at], i, labels[i]) for i in range(logits.shape[1])]
    return tuple(made if head.of == "span" else sorted(made, key=lambda candidate: -candidate.logit))


@torch.no_grad()
def best_of_tokens(model: Model, trace: Trace) -> tuple[Candidate, ...]:
    """The class with the largest logit of each token; nothing but for a model that labels tokens.

    Of one class alone, a discriminator's, it is that of a positive logit, and else what the tokens are otherwise, whose
    share is the rest. The logit is that of the class.
    """
    head = model.info.class_head
    if head is None or head.of != "token" or not trace.has_logits:
        return ()
    logits = trace.logits_at(range(len(trace.tokens))).float().cpu()  # (tokens, classes)
    shares = shares_of(logits, head)
    if head.otherwise:
        both = torch.cat([shares, 1 - shares], dim=1)
        names = (*head.labels, head.otherwise)
        picked = [0 if float(z) > 0 else 1 for z in logits[:, 0]]
        return tuple(
            Candidate(i, names[i], names[i], float(p[i]), float(z[0]), 1)
            for z, p, i in zip(logits, both, picked, strict=True)
        )
    best = logits.argmax(dim=1).tolist()
    return tuple(_candidate(z, p, i, head.labels[i]) for z, p, i in zip(logits, shares, best, strict=True))


@torch.no_grad()
def said_of_pair(model: Model, trace: Trace, before: Trace | None = None) -> tuple[Candidate, ...]:
    """What a head beside that for masks says of two texts, the likelier first; nothing of one text.

    With `before`, the run of the same texts by the model as it is, each has its share there too.
    """
    head = model.info.pair_head
    if head is None or trace.pair_logits is None:
        return ()
    logits = trace.pair_logits.float().cpu()  # (2,)
    shares = shares_of(logits[None], head)[0]
    made = [_candidate(logits, shares, i, label) for i, label in enumerate(head.labels)]
    if before is not None and before.pair_logits is not None:
        were = shares_of(before.pair_logits.float().cpu()[None], head)[0]
        made = [replace(candidate, before=float(were[candidate.id])) for candidate in made]
    return tuple(sorted(made, key=lambda candidate: -candidate.logit))


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
