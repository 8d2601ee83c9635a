"""What two runs say, side by side: each in its own words, and what is likeliest in either as both have it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from attention_models.forward.classes import classes_at, ends_of_span, labels_of, shares_of
from attention_models.forward.model import Model
from attention_models.forward.predictions import predict
from attention_models.forward.trace import Trace
from attention_models.protocol.information import entropy
from attention_models.protocol.two_runs import RunOutput, SaidByBoth
from attention_models.protocol.values import Candidate
from attention_models.views.comparison import loss


@dataclass(frozen=True, slots=True, eq=False)
class Saying:
    """What a run says at a position, and all that it might have said."""

    output: RunOutput
    model: Model
    logits: Tensor | None = None  # (vocabulary or classes,) float32; None where it says nothing, or an answer's ends
    shares: Tensor | None = None  # float64
    labels: tuple[str, ...] = ()  # of classes


@torch.no_grad()
def said_at(model: Model, trace: Trace, position: int, top: int) -> Saying:
    """Raises IndexError where there is no such position."""
    if not 0 <= position < len(trace.tokens):
        raise IndexError(f"Position {position} does not exist: the run has {len(trace.tokens)} tokens.")
    info = model.info
    if not trace.has_logits:
        why = info.wordless or f"{info.name} has no output head: it gives vectors, not words."
        return Saying(RunOutput(kind="none", why=why, position=position), model)
    head = info.class_head
    if head is not None and head.of == "span":
        return Saying(_span(model, trace, position, top), model)
    logits = trace.logits_at([position])[0].float().cpu()
    if head is not None:
        shares = shares_of(logits[None], head)[0]
        bits = float(entropy(shares.numpy())) if head.scale == "softmax" else math.nan
        output = RunOutput(
            kind="classes", position=position, candidates=classes_at(model, trace, position)[:top], entropy=bits
        )
        return Saying(output, model, logits, shares, labels_of(head, trace))
    prediction = predict(model, trace, [position], top)[0]
    shares = logits.double().softmax(dim=-1)
    if info.family == "vision":
        output = RunOutput(
            kind="classes", position=position, candidates=prediction.candidates, entropy=prediction.entropy
        )
        return Saying(output, model, logits, shares, tuple(model.piece_label(i) for i in range(len(logits))))
    output = RunOutput(kind="words", position=position, candidates=prediction.candidates, entropy=prediction.entropy)
    return Saying(output, model, logits, shares)


def loss_of(model: Model, trace: Trace) -> float | None:
    """As `RunOutput.loss`."""
    is_long = any(site.is_long for site in trace.sites)
    return None if is_long or model.info.class_head is not None else loss(model, trace)


def _span(model: Model, trace: Trace, position: int, top: int) -> RunOutput:
    """The likeliest ends of an answer, wherever they stand."""
    ends = zip(("start", "end"), ends_of_span(model, trace, top), strict=True)
    named = [
        Candidate(found.id, f"{end}: {found.label}", found.piece, found.probability, found.logit, found.rank)
        for end, candidates in ends
        for found in candidates
    ]
    return RunOutput(kind="classes", position=position, candidates=tuple(named))


def said_by_both(a: Saying, b: Saying) -> tuple[SaidByBoth, ...]:
    """What is likeliest in either, by the larger of the two probabilities.

    Tokens are the same by id where both have one vocabulary; else where the other's tokenizer makes one token of the
    word. Classes are the same by name. Nothing where one says words and one classes, or no class is in both.
    """
    if a.output.kind != b.output.kind or a.logits is None or b.logits is None:
        return ()
    to_b, to_a = _translation(a, b), _translation(b, a)
    if a.output.kind == "classes" and all(to_b(i) is None for i in range(len(a.labels))):
        return ()
    pairs: list[tuple[int | None, int | None]] = [(c.id, to_b(c.id)) for c in a.output.candidates]
    pairs += [(to_a(c.id), c.id) for c in b.output.candidates]
    found = []
    for i, j in dict.fromkeys(pairs):
        saying, id_ = (a, i) if i is not None else (b, j)
        assert id_ is not None
        numbers = (*_share(a, i), *_share(b, j), *_logit(a, i), *_logit(b, j))
        found.append(SaidByBoth(_label(saying, id_), *numbers, i, j))
    return tuple(sorted(found, key=lambda both: -_likelier(both)))


def _likelier(both: SaidByBoth) -> float:
    return max((p for p in (both.probability_a, both.probability_b) if p == p), default=0.0)


def _share(saying: Saying, id_: int | None) -> tuple[float]:
    return (math.nan if id_ is None or saying.shares is None else float(saying.shares[id_]),)


def _logit(saying: Saying, id_: int | None) -> tuple[float]:
    return (math.nan if id_ is None or saying.logits is None else float(saying.logits[id_]),)


def _label(saying: Saying, id_: int) -> str:
    return saying.labels[id_] if saying.labels else saying.model.piece_label(id_)


def _translation(a: Saying, b: Saying) -> Callable[[int], int | None]:
    """From an id of A to that of B; None where B has no such token or class."""
    if a.output.kind == "classes":
        place = {label: i for i, label in enumerate(b.labels)}
        return lambda id_: place.get(a.labels[id_])
    if a.model is b.model or _vocabulary(a.model) == _vocabulary(b.model):
        return lambda id_: id_
    return lambda id_: token_in(b.model, a.model.piece_label(id_))


def _vocabulary(model: Model) -> tuple[int, dict[str, int]]:
    return model.info.vocabulary, model.tokenizer.get_vocab()


def token_in(model: Model, label: str) -> int | None:
    """The id of the token that `model` reads the word of another's `label` as; None where that is not one token.

    A word in the middle of a text and one without a mark for the space before it are taken for the same, and so are
    letters that the tokenizer does not tell apart: of one without capitals "Tom" is "tom".
    """
    tokenizer = model.tokenizer
    special = {model.piece_label(id_): int(id_) for id_ in tokenizer.all_special_ids}
    if label in special:
        return special[label]
    word = label.lstrip("␣")
    if not word or word[0] in "⟨‹‿":
        return None
    for text in (f" {word}", word):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(ids) == 1 and ids[0] != tokenizer.unk_token_id:
            return int(ids[0])
    return None
