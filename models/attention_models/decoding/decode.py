"""Lets a model write, one step at a time: greedy, sampling, beam search. A masked model fills its masks.

    for step in decode(model, "Once upon a time", steps=20, strategy="sample", top_p=0.9, seed=1):
        print(step.text)

Greedy and beam search write the same tokens as transformers' `generate` with the same settings (tested), by the rules
that the checkpoint brings along too (`attention_models.decoding.generation_config_processors`). Sampling takes
one uniform number a step from a generator seeded with (seed, step), and sample i > 0 of several from one seeded with
(seed, step, i), so that a step draws the same token whenever one comes back to it, alone or beside others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from attention_models.decoding.beam import BeamSearch
from attention_models.decoding.cached_run import Run, start_run
from attention_models.decoding.choosing import end_ids
from attention_models.decoding.filling import Filling
from attention_models.decoding.filters import apply, filters
from attention_models.decoding.generation_config import Filter, GenerationConfigProcessors, generation_config_processors
from attention_models.decoding.samples import Samples
from attention_models.decoding.spelling import Spelled
from attention_models.forward.model import Model
from attention_models.protocol.batch import Batch
from attention_models.protocol.chat import Chat, Pair
from attention_models.protocol.decoding import MOST_SAMPLES, Beam, DecodeCandidate, DecodeSettings, DecodeStepRequest
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.prompt import Prompt, plain_text
from attention_models.protocol.request import Cancelled, never
from attention_models.protocol.running import RunInputs


@dataclass(frozen=True, slots=True)
class Sample:
    """One of several texts that are written side by side."""

    number: int  # which of those that one seed gives
    text: str
    ids: tuple[int, ...]
    log_probability: float  # of all that was written, by the model
    ended: bool  # by the model: it is as it was in the step before


@dataclass(frozen=True, slots=True)
class DecodedStep:
    """What one step of decoding did."""

    number: int  # counts from 1
    text: str  # written so far, special tokens left out; of the best beam in a beam search, else of the first sample;
    # of a masked model the whole text
    ids: tuple[int, ...]  # written so far, without the prompt
    candidates: tuple[DecodeCandidate, ...]  # the likeliest by the model, and the chosen one; empty in a beam search
    chosen: DecodeCandidate | None  # None in a beam search, where `beams` tell
    log_probability: float  # of all that was written, by the model
    ended: bool  # the model ended the text (that of every sample), or the search is over
    cache_bytes: int
    beams: tuple[Beam, ...] = ()  # beam search: every continuation looked at in this step, the best first
    whole: Prompt | None = None  # of a masked model: `text` as it is to be read again, a pair of texts say
    samples: tuple[Sample, ...] = ()  # sampling: all that are written side by side


def decode(
    model: Model,
    text: Prompt | tuple[str, str] | Sequence[int] | Sequence[Mapping[str, object]],
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
    sample: int = 0,
    samples: int = 1,
    interventions: Sequence[Intervention] = (),
    top: int = 10,
    should_stop: Callable[[], bool] = never,
) -> Iterator[DecodedStep]:
    """Write up to `steps` tokens after `text` (the translation of `text`, in an encoder-decoder model).

    After a conversation (a `Chat`, or `[{"role": "user", "content": "Good morning."}]`) they are the assistant's turn.
    A masked model fills up to `steps` masks of `text` (or of a pair) instead, the one that it is most confident of
    first.

    Arguments as in `DecodeSettings`; `top` is how many candidates each step lists. With `samples` above 1, so many
    texts are written side by side, beginning with the one numbered `sample`. `interventions` act at every step
    (`attention_models.protocol.interventions`). Ends early where the model ends the text. The context's end stops it
    too: the last step then has `ended` False.

    Raises:
        ValueError: a setting out of range, or several samples where nothing is drawn.
        InputError: the text is empty or too long, has no mask that a masked model could fill, the model does not write,
            or cannot be changed in such a way.
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
        sample=sample,
    )
    if not 1 <= samples <= MOST_SAMPLES:
        raise ValueError(f"{samples} samples are not offered: 1 to {MOST_SAMPLES}.")
    if samples > 1 and not settings.draws:
        raise ValueError('Several samples need draws: choose strategy="sample" and a temperature above 0.')
    if top < 1:
        raise ValueError(f"{top} candidates cannot be listed: it is 1 or more.")
    if isinstance(text, tuple) and any(isinstance(part, str) for part in text):
        text = Pair.of(text)
    if model.info.family not in _WRITERS:
        raise InputError(f"{model.info.name} writes nothing: there is nothing to decode.")
    if isinstance(text, Batch):
        text = text.prompt
    if model.info.family == "masked":
        words = _with_masks(model, text)
        asked = DecodeStepRequest(
            inputs=RunInputs(words, interventions=tuple(interventions)),
            settings=settings,
            steps=steps,
            number=1,
            top=top,
        )
        return _filled(model, words, asked, tuple(range(sample, sample + samples)), should_stop)
    is_array = hasattr(text, "dtype")  # of NumPy or torch
    given: Any = text if isinstance(text, (str, Chat, Pair)) or is_array else list(text)
    encoded = model.encode(given)
    run, own = start_run(model, encoded, interventions), generation_config_processors(model, encoded)
    if settings.strategy == "beam":
        return _beam(model, run, settings, own, steps, should_stop)
    writing = Samples(model, run, settings, tuple(range(sample, sample + samples)), own)
    return _side_by_side(model, writing, steps, top, should_stop)


_WRITERS = ("causal", "seq2seq", "masked")


def _with_masks(model: Model, text: Any) -> str | Pair:
    if isinstance(text, (str, Pair)):
        return text
    raise InputError(f"{model.info.name} fills masks of a text. Give it as words rather than as tokens.")


def _filled(
    model: Model, text: str | Pair, asked: DecodeStepRequest, numbers: tuple[int, ...], should_stop: Callable[[], bool]
) -> Iterator[DecodedStep]:
    """As `_side_by_side`: each sample fills the same masks, maybe in another order."""
    fillings = [Filling(model, text, asked.inputs.interventions) for _ in numbers]
    samples = [Sample(number, plain_text(text), (), 0.0, False) for number in numbers]
    for number in range(1, asked.steps + 1):
        views = []
        for place, (filling, before) in enumerate(zip(fillings, samples, strict=True)):
            settings = replace(asked.settings, sample=before.number)
            view = filling.step(replace(asked, settings=settings, number=number, ids=before.ids), should_stop)
            total = before.log_probability + view.log_probability
            if view.misread:
                label = model.piece_label(view.ids[-1])
                raise InputError(Spelled(view.whole, view.misread).unwritable(f"“{label}”"))
            samples[place] = Sample(before.number, view.text, view.ids, total, view.ending == "masks")
            views.append(view)
        first, shown = samples[0], views[0]
        yield DecodedStep(
            number=number,
            text=first.text,
            whole=shown.whole,
            ids=first.ids,
            candidates=shown.candidates,
            chosen=shown.chosen,
            log_probability=first.log_probability,
            ended=first.ended,
            cache_bytes=0,
            samples=tuple(samples) if asked.settings.draws else (),
        )
        if first.ended:  # all have as many masks
            return


def room(model: Model, run: Run, steps: int) -> int:
    """How many of `steps` tokens the context has room for."""
    limit = model.info.context
    return steps if limit is None else max(0, min(steps, limit - run.prompt))


def _side_by_side(
    model: Model,
    writing: Samples,
    steps: int,
    top: int,
    should_stop: Callable[[], bool],
) -> Iterator[DecodedStep]:
    run, ends = writing.run, end_ids(model)
    samples = {number: Sample(number, "", (), 0.0, False) for number in writing.writing}
    first = writing.writing[0]
    for number in range(1, room(model, run, steps) + 1):
        if should_stop():
            raise Cancelled
        choices = writing.advance(number, top)
        for which, choice in choices.items():
            before = samples[which]
            ids = (*before.ids, choice.token)
            total = before.log_probability + choice.log_probability
            samples[which] = Sample(which, written_text(model, list(ids)), ids, total, choice.token in ends)
        shown = choices.get(first)
        yield DecodedStep(
            number=number,
            text=samples[first].text,
            ids=samples[first].ids,
            candidates=shown.candidates if shown is not None else (),
            chosen=shown.chosen if shown is not None else None,
            log_probability=samples[first].log_probability,
            ended=not writing.writing,
            cache_bytes=run.cache_bytes,
            samples=tuple(samples.values()) if writing.settings.draws else (),
        )
        if not writing.writing:
            return


def beam_step(
    model: Model,
    run: Run,
    search: BeamSearch,
    chain: Sequence[tuple[str, Filter]],
    text_of: Callable[[tuple[int, ...]], str],
) -> tuple[tuple[Beam, ...], int]:
    """Advance the search and `run` by one token; every continuation looked at, and the bytes that were cached."""
    logits, cached = run.logits(), run.cache_bytes  # (running, vocabulary)
    log_p = apply(chain, run.ids, logits.log_softmax(dim=-1)).scores
    looked_at = search.advance(log_p, model.piece_label, text_of)
    if not search.is_over:
        tokens, sources = search.next_tokens()
        run.append(tokens.to(logits.device), sources.to(logits.device))
    return looked_at, cached


@torch.no_grad()
def _beam(
    model: Model,
    run: Run,
    settings: DecodeSettings,
    own: GenerationConfigProcessors,
    steps: int,
    should_stop: Callable[[], bool],
) -> Iterator[DecodedStep]:
    chain, steps = filters(settings, own), room(model, run, steps)
    search = BeamSearch(settings.beams, settings.length_penalty, end_ids(model), steps)
    for number in range(1, steps + 1):
        if should_stop():
            raise Cancelled
        looked_at, cached = beam_step(model, run, search, chain, lambda ids: written_text(model, list(ids)))
        best = search.best()
        yield DecodedStep(
            number=number,
            text=written_text(model, list(best.ids)),
            ids=best.ids,
            candidates=(),
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
