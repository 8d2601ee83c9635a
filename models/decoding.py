"""Lets a model write, one step at a time: greedy, sampling, beam search.

    for step in decode(model, "Once upon a time", steps=20, strategy="sample", top_p=0.9, seed=1):
        print(step.text)

Greedy and beam search write the same tokens as transformers' `generate` with the same settings (tested). Sampling takes
one uniform number a step from a generator seeded with (seed, step), so that a step draws the same token whenever one
comes back to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from models.beam import BeamSearch
from models.capture import never
from models.decode_requests import Beam, Cut, Offer
from models.decode_settings import DecodeSettings
from models.errors import InputError
from models.filters import Filter, apply, cuts, filters
from models.model import Model
from models.requests import Cancelled
from models.writer import Run, start_run


@dataclass(frozen=True, slots=True)
class DecodedStep:
    """What one step of decoding did."""

    number: int  # counts from 1
    text: str  # written so far, special tokens left out; of the best beam in a beam search
    ids: tuple[int, ...]  # written so far, without the prompt
    offers: tuple[Offer, ...]  # the likeliest by the model, and the chosen one; empty in a beam search
    chosen: Offer | None  # None in a beam search, where `beams` tell
    log_probability: float  # of all that was written, by the model
    ended: bool  # the model ended the text, or the search is over
    cache_bytes: int
    beams: tuple[Beam, ...] = ()  # beam search: every continuation looked at in this step, the best first


@dataclass(frozen=True, slots=True)
class Choice:
    """One token, and why it was chosen."""

    token: int
    log_probability: float  # of the model
    offers: tuple[Offer, ...]
    cuts: tuple[Cut, ...]
    drawn: float | None  # the uniform number that decided, None where nothing was drawn

    @property
    def offer(self) -> Offer:
        return next(offer for offer in self.offers if offer.id == self.token)


def decode(
    model: Model,
    text: str | Sequence[int],
    steps: int = 20,
    *,
    strategy: str = "greedy",
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    no_repeat_ngram: int = 0,
    beams: int = 4,
    length_penalty: float = 1.0,
    seed: int = 0,
    top: int = 10,
    should_stop: Callable[[], bool] = never,
) -> Iterator[DecodedStep]:
    """Write up to `steps` tokens after `text` (the translation of `text`, in an encoder-decoder model).

    Arguments as in `DecodeSettings`; `top` is how many candidates each step lists. Ends early where the model ends the
    text. The context's end stops it too: the last step then has `ended` False.

    Raises:
        ValueError: a setting out of range.
        InputError: the text is empty or too long, or the model does not write.
        Cancelled: `should_stop()` was true between two steps.
    """
    settings = DecodeSettings(
        strategy=strategy,  # type: ignore[arg-type]
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        repetition_penalty=repetition_penalty,
        no_repeat_ngram=no_repeat_ngram,
        beams=beams,
        length_penalty=length_penalty,
        seed=seed,
    )
    run = start_run(model, model.encode(text if isinstance(text, str) else list(text)))
    return (_beam if settings.strategy == "beam" else _one_by_one)(model, run, settings, steps, top, should_stop)


def end_ids(model: Model) -> tuple[int, ...]:
    """The tokens with which the model ends a text."""
    for config in (getattr(model.module, "generation_config", None), model.config):
        ids = getattr(config, "eos_token_id", None)
        if isinstance(ids, int):
            return (ids,)
        if ids:
            return tuple(ids)
    return ()


def room(model: Model, run: Run, steps: int) -> int:
    """How many of `steps` tokens the context has room for."""
    limit = model.info.context
    return steps if limit is None else max(0, min(steps, limit - run.prompt))


@torch.no_grad()
def choose(
    model: Model,
    logits: Tensor,
    ids: Tensor,
    settings: DecodeSettings,
    number: int,
    top: int = 10,
    forced: int | None = None,
) -> Choice:
    """The token of step `number` (counts from 1) as `settings` choose it, or `forced`, with the candidates.

    Args:
        logits: (1, vocabulary) float32.
        ids: (1, tokens), all so far: what repetitions are counted in.

    Raises:
        InputError: the filters leave nothing to choose from.
    """
    log_p = logits[0].log_softmax(dim=-1)  # (vocabulary,)
    chain = filters(settings)
    filtered = apply(chain, ids, logits.clone()) if chain else None
    scores = logits[0] if filtered is None else filtered.scores[0]
    # without filters what is kept is what the model says, needed in full only for a draw
    kept = scores.softmax(dim=-1) if filtered is not None or settings.draws else None
    drawn = None
    if forced is not None:
        token = forced
    elif not settings.draws:
        token = int(scores.argmax())
    else:
        assert kept is not None
        drawn = float(np.random.default_rng((settings.seed, number)).random())
        token = _drawn(kept, drawn)
    if not math.isfinite(float(scores[scores.argmax()])):
        raise InputError("The settings leave no token to choose from. Allow repetitions, or a shorter n-gram.")
    best = logits[0].topk(min(top, logits.shape[1])).indices
    if token not in best.tolist():
        best = torch.cat([best, best.new_tensor([token])])
    offers = _offers(model, best, logits[0], log_p, kept, filtered.cut_by if filtered is not None else {})
    cut = cuts(filtered, log_p.exp()) if filtered is not None else ()
    return Choice(token, float(log_p[token]), offers, cut, drawn)


def _drawn(probabilities: Tensor, uniform: float) -> int:
    """The token in whose share of the unit interval `uniform` falls, shares laid out in the vocabulary's order."""
    ends = probabilities.double().cumsum(dim=0)
    # "right": a token of probability 0 has an empty share, in which nothing falls
    place = torch.searchsorted(ends, float(ends[-1]) * uniform, right=True)
    return min(int(place), int(probabilities.nonzero()[-1]))


def _offers(
    model: Model, ids: Tensor, logits: Tensor, log_p: Tensor, kept: Tensor | None, cut_by: dict[str, Tensor]
) -> tuple[Offer, ...]:
    probabilities = log_p[ids].exp()
    shares = probabilities if kept is None else kept[ids]
    numbers = torch.stack([logits[ids], probabilities, shares], dim=1).tolist()
    cut = {name: which[0, ids].tolist() for name, which in cut_by.items()}
    return tuple(
        Offer(
            id=id_,
            label=model.piece_label(id_),
            logit=logit,
            probability=probability,
            kept=after,
            cut_by=next((name for name, which in cut.items() if which[row]), ""),
        )
        for row, (id_, (logit, probability, after)) in enumerate(zip(ids.tolist(), numbers, strict=True))
    )


@torch.no_grad()
def _one_by_one(
    model: Model, run: Run, settings: DecodeSettings, steps: int, top: int, should_stop: Callable[[], bool]
) -> Iterator[DecodedStep]:
    ends = end_ids(model)
    total = 0.0
    for number in range(1, room(model, run, steps) + 1):
        if should_stop():
            raise Cancelled
        logits, cached = run.logits(), run.cache_bytes  # (1, vocabulary)
        choice = choose(model, logits, run.ids, settings, number, top)
        run.append(torch.tensor([choice.token], device=logits.device))
        total += choice.log_probability
        written = run.ids[0, run.prompt :].tolist()
        yield DecodedStep(
            number=number,
            text=written_text(model, written),
            ids=tuple(written),
            offers=choice.offers,
            chosen=choice.offer,
            log_probability=total,
            ended=choice.token in ends,
            cache_bytes=cached,
        )
        if choice.token in ends:
            return


def beam_step(
    model: Model, run: Run, search: BeamSearch, chain: list[tuple[str, Filter]]
) -> tuple[tuple[Beam, ...], int]:
    """Advance the search and `run` by one token; every continuation looked at, and the bytes that were cached."""
    logits, cached = run.logits(), run.cache_bytes  # (running, vocabulary)
    log_p = apply(chain, run.ids, logits.log_softmax(dim=-1)).scores
    looked_at = search.advance(log_p, model.piece_label)
    if not search.is_over:
        tokens, sources = search.next_tokens()
        run.append(tokens.to(logits.device), sources.to(logits.device))
    return looked_at, cached


@torch.no_grad()
def _beam(
    model: Model, run: Run, settings: DecodeSettings, steps: int, top: int, should_stop: Callable[[], bool]
) -> Iterator[DecodedStep]:
    chain, steps = filters(settings), room(model, run, steps)
    search = BeamSearch(settings.beams, settings.length_penalty, end_ids(model), steps)
    for number in range(1, steps + 1):
        if should_stop():
            raise Cancelled
        looked_at, cached = beam_step(model, run, search, chain)
        best = search.best()
        yield DecodedStep(
            number=number,
            text=written_text(model, list(best.ids)),
            ids=best.ids,
            offers=(),
            chosen=None,
            log_probability=best.log_probability,
            ended=search.is_over,
            cache_bytes=cached,
            beams=looked_at,
        )
        if search.is_over:
            return


def written_text(model: Model, ids: list[int]) -> str:
    """What `ids` say, special tokens left out."""
    text: str = model.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return text
