"""How the settings choose one token from a distribution, and what they chose from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attention_models.decoding.filters import apply, filters, own_meanings, stages
from attention_models.decoding.generation_config import NO_RULES, GenerationConfigProcessors
from attention_models.forward.model import Model
from attention_models.protocol.decoding import DecodeCandidate, DecodeSettings, Stage
from attention_models.protocol.errors import InputError


@dataclass(frozen=True, slots=True)
class Choice:
    """One token, and why it was chosen."""

    token: int
    log_probability: float  # of the model
    candidates: tuple[DecodeCandidate, ...]
    stages: tuple[Stage, ...]
    drawn: float | None  # the uniform number that decided, None where nothing was drawn

    @property
    def chosen(self) -> DecodeCandidate:
        return next(candidate for candidate in self.candidates if candidate.id == self.token)


def end_ids(model: Model) -> tuple[int, ...]:
    """The tokens with which the model ends a text, and its turn in a conversation."""
    for config in (getattr(model.module, "generation_config", None), model.config):
        ids = getattr(config, "eos_token_id", None)
        if ids is not None and ids != []:
            found = (ids,) if isinstance(ids, int) else tuple(ids)
            return (*found, *(id_ for id_ in model.turn_end_ids if id_ not in found))
    return model.turn_end_ids


@torch.no_grad()
def choose(
    model: Model,
    logits: Tensor,
    ids: Tensor,
    settings: DecodeSettings,
    number: int,
    top: int = 10,
    forced: int | None = None,
    own: GenerationConfigProcessors = NO_RULES,
) -> Choice:
    """The token of step `number` (counts from 1) as `settings` choose it, or `forced`, with the candidates.

    Args:
        own: what the checkpoint says of how it writes.
        logits: (1, vocabulary) float32.
        ids: (1, tokens), all so far: what repetitions are counted in.

    Raises:
        InputError: the filters leave nothing to choose from.
    """
    # one copy: what follows asks for many single numbers, and in float64, which some devices lack
    logits, ids = logits.cpu(), ids.cpu()
    log_p = logits[0].double().log_softmax(dim=-1)  # (vocabulary,)
    chain = filters(settings, own)
    filtered = apply(chain, ids, logits.clone()) if chain else None
    scores = logits[0] if filtered is None else filtered.scores[0]
    # without filters what is kept is what the model says, needed in full only for a draw
    kept = scores.double().softmax(dim=-1) if filtered is not None or settings.draws else None
    drawn = None
    if forced is not None:
        token = forced
    elif not settings.draws:
        token = int(scores.argmax())
    else:
        assert kept is not None
        # without a third number for sample 0: its draws are those of a text that is written alone
        stream = (settings.seed, number, settings.sample) if settings.sample else (settings.seed, number)
        drawn = float(np.random.default_rng(stream).random())
        token = _drawn(kept, drawn)
    if not math.isfinite(float(scores[scores.argmax()])):
        raise InputError("The settings leave no token to choose from. Allow repetitions, or a shorter n-gram.")
    best = logits[0].topk(min(top, logits.shape[1])).indices
    if token not in best.tolist():
        best = torch.cat([best, best.new_tensor([token])])
    candidates = _candidates(model, best, logits[0], log_p, kept, filtered.cut_by if filtered is not None else {})
    done = stages(filtered, logits[0], best, own_meanings(settings, own)) if filtered is not None else ()
    return Choice(token, float(log_p[token]), candidates, done, drawn)


def _drawn(probabilities: Tensor, uniform: float) -> int:
    """The token in whose share of the unit interval `uniform` falls, shares laid out in the vocabulary's order."""
    ends = probabilities.double().cumsum(dim=0)
    # "right": a token of probability 0 has an empty share, in which nothing falls
    place = torch.searchsorted(ends, float(ends[-1]) * uniform, right=True)
    return min(int(place), int(probabilities.nonzero()[-1]))


def _candidates(
    model: Model, ids: Tensor, logits: Tensor, log_p: Tensor, kept: Tensor | None, cut_by: dict[str, Tensor]
) -> tuple[DecodeCandidate, ...]:
    probabilities = log_p[ids].exp()
    shares = probabilities if kept is None else kept[ids]
    numbers = torch.stack([logits[ids], probabilities, shares], dim=1).tolist()
    cut = {name: which[0, ids].tolist() for name, which in cut_by.items()}
    return tuple(
        DecodeCandidate(
            id=id_,
            label=model.piece_label(id_),
            logit=logit,
            probability=probability,
            kept=after,
            cut_by=next((name for name, which in cut.items() if which[row]), ""),
        )
        for row, (id_, (logit, probability, after)) in enumerate(zip(ids.tolist(), numbers, strict=True))
    )
