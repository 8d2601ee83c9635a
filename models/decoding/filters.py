"""What settings cut from a next-token distribution, filter by filter.

The filters themselves are transformers' own, in the order in which `generate` applies them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from models.protocol.decoding import Stage
from models.protocol.decoding_settings import DecodeSettings

Filter = Callable[[Any, Any], Any]  # (ids so far, scores), each (sequences, ...)


@dataclass(frozen=True, slots=True, eq=False)
class Filtered:
    scores: Tensor  # (sequences, vocabulary) float32: -inf where cut
    cut_by: dict[str, Tensor]  # filter: (sequences, vocabulary) bool, what that one cut first
    after: dict[str, Tensor]  # filter: the scores that it left, (sequences, vocabulary) float32


def filters(settings: DecodeSettings) -> list[tuple[str, Filter]]:
    """The filters that `settings` switch on, named, in the order in which they act."""
    chain: list[tuple[str, Filter]] = []
    if settings.repetition_penalty != 1:
        chain.append(("repetition penalty", RepetitionPenaltyLogitsProcessor(settings.repetition_penalty)))
    if settings.no_repeat_ngram > 0:
        chain.append(("no repeated n-gram", NoRepeatNGramLogitsProcessor(settings.no_repeat_ngram)))
    if not settings.draws:
        return chain  # the rest only shapes what is drawn from
    if settings.temperature != 1:
        chain.append(("temperature", TemperatureLogitsWarper(settings.temperature)))
    if settings.top_k is not None:
        chain.append(("top-k", TopKLogitsWarper(settings.top_k)))
    if settings.top_p is not None and settings.top_p < 1:
        chain.append(("top-p", TopPLogitsWarper(settings.top_p)))
    if settings.min_p is not None and settings.min_p > 0:
        chain.append(("min-p", MinPLogitsWarper(settings.min_p)))
    return chain


def apply(chain: list[tuple[str, Filter]], ids: Tensor, scores: Tensor) -> Filtered:
    """Run `scores` (sequences, vocabulary) through the chain, noting what each filter cuts."""
    cut_by: dict[str, Tensor] = {}
    after: dict[str, Tensor] = {}
    for name, act in chain:
        before = torch.isneginf(scores)
        scores = after[name] = act(ids, scores)
        cut_by[name] = torch.isneginf(scores) & ~before
    return Filtered(scores, cut_by, after)


def stages(filtered: Filtered, logits: Tensor, candidates: Tensor) -> tuple[Stage, ...]:
    """What each filter did to the distribution that the one before it left, of one sequence.

    Args:
        filtered: what `apply` made of the logits.
        logits: the model's, (vocabulary,).
        candidates: the candidates whose shares are told, (candidates,) ids.
    """
    model = before = logits.double().softmax(dim=-1)  # (vocabulary,)
    found = []
    for name, scores in filtered.after.items():
        cut, after = filtered.cut_by[name][0], scores[0].double().softmax(dim=-1)
        found.append(
            Stage(
                filter=name,
                tokens=int(cut.sum()),
                probability=float(model[cut].sum()),
                moved=float((after - before).abs().sum()) / 2,
                left=int((~torch.isneginf(scores[0])).sum()),
                shares=tuple(after[candidates].tolist()),
                ahead=tuple((before * (before > before[candidates][:, None])).sum(dim=1).tolist()),
                peak=float(before.max()),
            )
        )
        before = after
    return tuple(found)
