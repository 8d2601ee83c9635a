"""Lets a model write, one step at a time: greedy, sampling, beam search.

    for step in decode(model, "Once upon a time", steps=20, strategy="sample", top_p=0.9, seed=1):
        print(step.text)

Greedy and beam search write the same tokens as transformers' `generate` with the same settings (tested). Sampling draws
from its own seeded generator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from models.beam import Beam, BeamSearch
from models.capture import never
from models.decode_settings import DecodeSettings
from models.filters import apply, filters
from models.model import Model
from models.requests import Cancelled
from models.writer import Run, start_run


@dataclass(frozen=True, slots=True)
class Offer:
    """One candidate of a step, before and after the settings acted."""

    id: int
    label: str
    logit: float
    probability: float  # of the model
    kept: float  # after the filters, 0 where one cut it
    cut_by: str = ""  # the filter that did


@dataclass(frozen=True, slots=True)
class DecodedStep:
    """What one step of decoding did."""

    number: int  # counts from 1
    text: str  # written so far, special tokens left out; of the best beam in a beam search
    ids: tuple[int, ...]  # written so far, without the prompt
    offers: tuple[Offer, ...]  # the likeliest by the model, and the chosen one
    chosen: Offer | None  # None in a beam search, where `beams` tell
    log_probability: float  # of all that was written, by the model
    ended: bool  # the model ended the text, or the search is over
    cache_bytes: int
    beams: tuple[Beam, ...] = ()  # beam search: every continuation looked at in this step, the best first


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


def _room(model: Model, run: Run, steps: int) -> int:
    limit = model.info.context
    return steps if limit is None else max(0, min(steps, limit - run.prompt))


@torch.no_grad()
def _one_by_one(
    model: Model, run: Run, settings: DecodeSettings, steps: int, top: int, should_stop: Callable[[], bool]
) -> Iterator[DecodedStep]:
    chain, ends = filters(settings), end_ids(model)
    generator = torch.Generator(device="cpu").manual_seed(settings.seed)
    total = 0.0
    for number in range(1, _room(model, run, steps) + 1):
        if should_stop():
            raise Cancelled
        logits, cached = run.logits(), run.cache_bytes  # (1, vocabulary)
        filtered = apply(chain, run.ids, logits.clone())
        if settings.draws:
            p = torch.softmax(filtered.scores[0], dim=-1).cpu()
            token = int(torch.multinomial(p, 1, generator=generator))
        else:
            token = int(filtered.scores[0].argmax())
        run.append(torch.tensor([token], device=logits.device))
        log_p = logits[0].log_softmax(dim=-1)
        total += float(log_p[token])
        offers = _offers(model, logits[0], log_p, filtered.scores[0], filtered.cut_by, token, top)
        written = run.ids[0, run.prompt :].tolist()
        yield DecodedStep(
            number=number,
            text=written_text(model, written),
            ids=tuple(written),
            offers=offers,
            chosen=next(offer for offer in offers if offer.id == token),
            log_probability=total,
            ended=token in ends,
            cache_bytes=cached,
        )
        if token in ends:
            return


def _offers(
    model: Model,
    logits: Tensor,
    log_p: Tensor,
    scores: Tensor,
    cut_by: dict[str, Tensor],
    chosen: int,
    top: int,
) -> tuple[Offer, ...]:
    ids = logits.topk(min(top, len(logits))).indices.tolist()
    if chosen not in ids:
        ids.append(chosen)
    kept = torch.softmax(scores, dim=-1)
    return tuple(
        Offer(
            id=id_,
            label=model.piece_label(id_),
            logit=float(logits[id_]),
            probability=math.exp(float(log_p[id_])),
            kept=float(kept[id_]),
            cut_by=next((name for name, cut in cut_by.items() if bool(cut[0, id_])), ""),
        )
        for id_ in ids
    )


@torch.no_grad()
def _beam(
    model: Model, run: Run, settings: DecodeSettings, steps: int, top: int, should_stop: Callable[[], bool]
) -> Iterator[DecodedStep]:
    chain, room = filters(settings), _room(model, run, steps)
    if room == 0:
        return
    search = BeamSearch(settings.beams, settings.length_penalty, end_ids(model), room)
    sources = torch.zeros(1, dtype=torch.long, device=run.ids.device)
    for number in range(1, room + 1):
        if should_stop():
            raise Cancelled
        logits, cached = run.logits(), run.cache_bytes  # (running, vocabulary)
        log_p = logits.log_softmax(dim=-1)
        looked_at = search.advance(apply(chain, run.ids, log_p).scores, model.piece_label)
        tokens, sources = search.next_tokens()
        run.append(tokens.to(logits.device), sources.to(logits.device))
        best = search.best()
        yield DecodedStep(
            number=number,
            text=written_text(model, list(best.ids)),
            ids=best.ids,
            offers=_offers(model, logits[0], log_p[0], log_p[0], {}, int(log_p[0].argmax()), top),
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
