"""What settings cut from a next-token distribution, filter by filter.

The filters themselves are transformers' own, in the order in which `generate` applies them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

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

from attention_models.decoding.generation_config import NGRAM, NO_RULES, REPETITION, Filter, GenerationConfigProcessors
from attention_models.protocol.decoding import DecodeSettings, Stage

NO_MEANINGS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Filtered:
    scores: Tensor  # (sequences, vocabulary) float32: -inf where cut
    cut_by: dict[str, Tensor]  # filter: (sequences, vocabulary) bool, what that one cut first
    after: dict[str, Tensor]  # filter: the scores that it left, (sequences, vocabulary) float32


def filters(settings: DecodeSettings, own: GenerationConfigProcessors = NO_RULES) -> list[tuple[str, Filter]]:
    """The filters that `settings` switch on, with the checkpoint's `own`, named, in the order in which they act.

    What a person sets counts in the place of the checkpoint's own.
    """
    chosen: dict[str, Filter] = {}
    if settings.repetition_penalty != 1:
        chosen[REPETITION] = RepetitionPenaltyLogitsProcessor(settings.repetition_penalty)
    if settings.no_repeat_ngram > 0:
        chosen[NGRAM] = NoRepeatNGramLogitsProcessor(settings.no_repeat_ngram)
    theirs = {rule.name: rule.act for rule in own.rules}
    first = {name: chosen.get(name) or theirs.get(name) for name in (REPETITION, NGRAM)}
    chain: list[tuple[str, Filter]] = [(name, act) for name, act in first.items() if act is not None]
    chain += [(name, act) for name, act in theirs.items() if name not in first]
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


def apply(chain: Sequence[tuple[str, Filter]], ids: Tensor, scores: Tensor) -> Filtered:
    """Run `scores` (sequences, vocabulary) through the chain, noting what each filter cuts."""
    cut_by: dict[str, Tensor] = {}
    after: dict[str, Tensor] = {}
    for name, act in chain:
        before = torch.isneginf(scores)
        scores = after[name] = act(ids, scores)
        cut_by[name] = torch.isneginf(scores) & ~before
    return Filtered(scores, cut_by, after)


def own_meanings(settings: DecodeSettings, own: GenerationConfigProcessors) -> dict[str, str]:
    """What the checkpoint's own filters do, by name; those that a person's stand in the place of are left out."""
    theirs = {rule.name: rule.meaning for rule in own.rules}
    if settings.repetition_penalty != 1:
        theirs.pop(REPETITION, None)
    if settings.no_repeat_ngram > 0:
        theirs.pop(NGRAM, None)
    return theirs


def stages(
    filtered: Filtered, logits: Tensor, candidates: Tensor, meanings: Mapping[str, str] = NO_MEANINGS
) -> tuple[Stage, ...]:
    """What each filter did to the distribution that the one before it left, of one sequence.

    Args:
        filtered: what `apply` made of the logits.
        logits: the model's, (vocabulary,).
        candidates: the candidates whose shares are told, (candidates,) ids.
        meanings: of filters that are the checkpoint's own (`own_meanings`).
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
                meaning=meanings.get(name, ""),
            )
        )
        before = after
    return tuple(found)
