"""Which logit, difference or loss an effect is measured on, and its value in a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from attention_models.forward.classes import labels_of
from attention_models.forward.model import Model
from attention_models.forward.predictions import answering_position
from attention_models.forward.trace import Trace
from attention_models.protocol.effects import Measure, Metric, MetricValue, MetricView
from attention_models.protocol.errors import InputError
from attention_models.views.candidates import label_of, likeliest
from attention_models.views.comparison import loss, next_ids


@dataclass(frozen=True, slots=True)
class ResolvedMetric:
    """An `Metric` with nothing left open."""

    measure: Measure
    position: int
    target: int | None  # None of a loss
    against: int | None  # None but of a difference


def resolve(model: Model, trace: Trace, aim: Metric) -> ResolvedMetric:
    """Say of `aim` what was left open.

    Raises:
        InputError: the model says nothing there, has no loss, or there is no such position or token.
    """
    if not trace.has_logits:
        raise InputError(f"{model.info.name} has no output head: there is no logit that a part of it could change.")
    position = answering_position(model, trace) if aim.position is None else aim.position
    if not 0 <= position < len(trace.tokens):
        raise InputError(f"There is no position {position}: the text has tokens 0 to {len(trace.tokens) - 1:,}.")
    if aim.measure == "loss":
        if loss_of_none(model, trace):
            raise InputError(
                f"{model.info.name} does not predict the next token of a text of two tokens or more: there is no loss. "
                "Choose the logit of one of its answers."
            )
        return ResolvedMetric("loss", position, None, None)
    logits = trace.logits_at([position])[0].float()  # (vocabulary,)
    named, against = (
        token_of(model, trace, said) if isinstance(said, str) else said for said in (aim.target, aim.against)
    )
    target = int(logits.argmax()) if named is None else named
    if aim.measure == "difference" and against is None:
        against = next(id_ for id_ in torch.topk(logits, min(2, len(logits))).indices.tolist() if id_ != target)
    for id_ in (target, against):
        if id_ is not None and not 0 <= id_ < len(logits):
            raise InputError(f"{model.info.name} has no answer {id_}: they go from 0 to {len(logits) - 1:,}.")
    if aim.measure == "difference" and target == against:
        raise InputError("A difference is one of two tokens: choose another for one of them.")
    return ResolvedMetric(aim.measure, position, target, against if aim.measure == "difference" else None)


def loss_of_none(model: Model, trace: Trace) -> bool:
    """Whether there is no mean over next tokens of its text."""
    return model.info.family != "causal" or model.info.class_head is not None or not next_ids(trace)


def view_of(model: Model, trace: Trace, aim: ResolvedMetric) -> MetricView:
    """What is shown of it."""
    return MetricView(
        measure=aim.measure,
        position=aim.position,
        target=aim.target,
        against=aim.against,
        target_label=label_of(model, trace, aim.target),
        against_label=label_of(model, trace, aim.against),
        value=value_of(model, trace, aim),
        candidates=likeliest(model, trace, model.info.predicting_stack, aim.position),
    )


def said(model: Model, trace: Trace, view: MetricView) -> MetricValue:
    """What a run says where an aim is measured; `view` is of that run."""
    best = next(iter(view.candidates), None)
    return MetricValue(
        value=view.value,
        best_label="" if best is None else best.label,
        best_share=float("nan") if best is None else best.probability,
        loss=None if loss_of_none(model, trace) else view.value if view.measure == "loss" else loss(model, trace),
    )


def value_of(model: Model, trace: Trace, aim: ResolvedMetric) -> float:
    """The run's own."""
    if aim.measure == "loss":
        value = loss(model, trace)
        assert value is not None
        return value
    return float(of_logits(trace.logits_at([aim.position]), aim)[0])


def of_logits(logits: Tensor, aim: ResolvedMetric) -> Tensor:
    """The logit or difference of each row of (rows, vocabulary), (rows,) float64 on the CPU; gradients pass."""
    assert aim.target is not None
    value = logits[:, aim.target].float().cpu().double()
    return value if aim.against is None else value - logits[:, aim.against].float().cpu().double()


def losses_of(logits: Tensor, wanted: Mapping[int, int]) -> Tensor:
    """The mean cross-entropy of each text's next tokens, (texts,) float64: `attention_models.views.comparison.loss`.

    `logits` are (texts, tokens, vocabulary); `wanted` the id after each position that has one.
    """
    ids = torch.tensor(list(wanted.values()), device=logits.device)
    said = logits[:, list(wanted)].float()  # (texts, wanted, vocabulary)
    each = F.cross_entropy(said.flatten(0, 1), ids.repeat(len(said)), reduction="none")
    return each.view(len(said), -1).mean(dim=1).cpu().double()


def token_of(model: Model, trace: Trace, words: str) -> int:
    """The id of what a person wrote: a token as it stands in a text, " Tom", or the name of a class.

    Raises:
        InputError: it is no single token, or no class.
    """
    head = model.info.class_head
    if head is not None:
        labels = labels_of(head, trace)
        if words not in labels:
            raise InputError(f"{model.info.name} has no class “{words}”: it has {', '.join(labels[:20])}.")
        return labels.index(words)
    if model.tokenizer is None:
        raise InputError(f"{model.info.name} reads no text, so that no word can be named. Give the number of a class.")
    ids = [token.id for token in model.tokenize(words, special=False)]
    if len(ids) != 1:
        pieces = ", ".join(f"“{model.piece_label(id_)}”" for id_ in ids)
        raise InputError(
            f"“{words}” is {len(ids)} tokens to {model.info.name} ({pieces}): name one. In the middle of a text most "
            "begin with a blank."
        )
    return ids[0]


def aimed(
    target: str | int | None,
    against: str | int | None,
    measure: Measure | None,
    position: int | None,
) -> Metric:
    """An `Metric` as a program says it: tokens by their words or ids; a difference where two are named."""
    kind: Literal["logit", "difference", "loss"] = measure or ("logit" if against is None else "difference")
    if kind == "loss" and (target is not None or against is not None):
        raise InputError("A loss is of the whole text: it goes with no target.")
    return Metric(measure=kind, position=position, target=target, against=against)
