"""Decoding writes what transformers' `generate` writes, and draws as often as it says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from attention_models import decode
from attention_models.decoding.cached_run import CachedRun
from attention_models.decoding.choosing import choose, end_ids
from attention_models.forward.model import Model
from attention_models.protocol.decoding import MOST_SEED, DecodeSettings
from attention_models.protocol.errors import InputError
from attention_models.protocol.request import Cancelled
from tests.models.sentences import ENGLISH, STORIES

STEPS = 12
PENALTIES = (0.0, 1.0, 2.0)  # of length


def generated(model: Model, texts: Sequence[str], **settings: Any) -> list[list[int]]:
    """What transformers writes after each text, cut after its first end, without padding.

    Texts of one length go through `generate` together: nothing has to be padded.
    """
    encoded = [model.encode(text) for text in texts]
    found: dict[int, list[int]] = {}
    lengths = [each.inputs["input_ids"].shape[1] for each in encoded]
    for length in sorted(set(lengths)):
        alike = [i for i, other in enumerate(lengths) if other == length]
        inputs = {
            name: torch.cat([encoded[i].inputs[name] for i in alike])
            for name in encoded[0].inputs
            if not name.startswith("decoder_")
        }
        out = model.module.generate(  # type: ignore[operator]
            **inputs, max_new_tokens=STEPS, min_length=0, do_sample=False, pad_token_id=0, **settings
        ).tolist()
        for i, ids in zip(alike, out, strict=True):
            written: list[int] = ids[1:] if model.seq2seq else ids[length:]
            ends = [place for place, id_ in enumerate(written) if id_ in end_ids(model)]
            found[i] = written[: ends[0] + 1] if ends else written[:STEPS]
    return [found[i] for i in range(len(texts))]


def written(model: Model, text: str, **settings: Any) -> list[int]:
    return list(list(decode(model, text, STEPS, **settings))[-1].ids)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Models this small gain nothing from a second thread, and lose much where another program has the core."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(params=["story-gpt", "en-es"])
def model(request: pytest.FixtureRequest, story_gpt: Model, en_es: Model) -> Model:
    return story_gpt if request.param == "story-gpt" else en_es


def texts(model: Model) -> tuple[str, ...]:
    return ENGLISH if model.seq2seq else STORIES


@pytest.mark.full
def test_greedy_writes_what_generate_writes(model):
    expected = generated(model, texts(model), num_beams=1)
    assert [written(model, text) for text in texts(model)] == expected


@pytest.mark.short("en-es-0.0-4")
@pytest.mark.parametrize("width", [2, 4])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_beam_search_writes_what_generate_writes(model, width, penalty):
    some = texts(model)[PENALTIES.index(penalty) :: len(PENALTIES)]  # each text with each width, and with one penalty
    expected = generated(model, some, num_beams=width, length_penalty=penalty)
    found = [written(model, text, strategy="beam", beams=width, length_penalty=penalty) for text in some]
    assert found == expected


@pytest.mark.short("settings0")
@pytest.mark.parametrize("settings", [{"repetition_penalty": 1.8}, {"no_repeat_ngram": 2}])
def test_greedy_with_a_filter_writes_what_generate_writes(story_gpt, settings):
    theirs = {"no_repeat_ngram_size" if key == "no_repeat_ngram" else key: value for key, value in settings.items()}
    expected = generated(story_gpt, STORIES[:8], num_beams=1, **theirs)
    assert [written(story_gpt, text, **settings) for text in STORIES[:8]] == expected


def test_cached_logits_agree_with_a_whole_pass(model):
    encoded = model.encode(texts(model)[3])
    run = CachedRun(model, encoded)
    for _ in range(STEPS):
        logits = run.logits()
        name = "decoder_input_ids" if model.seq2seq else "input_ids"
        inputs = {**encoded.inputs, name: run.ids}
        if not model.seq2seq:
            inputs.pop("attention_mask", None)
        with torch.no_grad():
            whole = model.module(**inputs, use_cache=False).logits[:, -1].float()
        torch.testing.assert_close(logits, whole, atol=1e-4, rtol=0)
        run.append(logits.argmax(dim=-1))


def test_a_step_tells_what_it_chose_from(story_gpt):
    step = next(decode(story_gpt, "Tom and Anna went to the", 1, top=5))
    logits = CachedRun(story_gpt, story_gpt.encode("Tom and Anna went to the")).logits()[0].double().numpy()
    p = np.exp(logits - logits.max())
    p /= p.sum()
    assert [candidate.id for candidate in step.candidates] == np.argsort(-p)[:5].tolist()
    for candidate in step.candidates:
        assert candidate.probability == pytest.approx(p[candidate.id], abs=1e-6)
        assert candidate.kept == candidate.probability
        assert candidate.logit == pytest.approx(logits[candidate.id], abs=1e-5)
    assert step.chosen == step.candidates[0]
    assert step.log_probability == pytest.approx(np.log(p.max()), abs=1e-5)


def test_the_chosen_token_is_listed_also_where_it_is_no_favourite(story_gpt):
    logits = torch.zeros(1, 100)
    logits[0, :10] = 5.0
    choice = choose(story_gpt, logits, torch.zeros(1, 1, dtype=torch.long), DecodeSettings(), 1, top=3, forced=77)
    assert choice.chosen.id == 77
    assert len(choice.candidates) == 4
    assert choice.drawn is None


@pytest.mark.full
def test_draws_come_as_often_as_their_probability(story_gpt):
    """Chi-square over 4,000 seeds, the rare tokens in one class; fails by chance once in 10,000 programs."""
    logits = torch.tensor([[2.0, 1.5, 1.0, 0.0, -1.0, -2.0, 3.0]])
    settings = DecodeSettings(strategy="sample", temperature=1.3, top_k=5)
    scores = logits[0].double().numpy() / 1.3
    scores[np.argsort(-scores)[5:]] = -np.inf
    expected = np.exp(scores) / np.exp(scores).sum()
    ids = torch.zeros(1, 1, dtype=torch.long)
    draws = 4000
    seen = Counter(
        choose(story_gpt, logits, ids, DecodeSettings(**{**_fields(settings), "seed": seed}), 1, top=1).token
        for seed in range(draws)
    )
    assert set(seen) == set(np.flatnonzero(expected))
    statistic = sum((seen[i] - draws * p) ** 2 / (draws * p) for i, p in enumerate(expected) if p)
    assert statistic < 23.51  # the 0.9999 quantile of chi-square with 4 degrees of freedom


def test_samples_of_one_seed_draw_as_often_as_their_probability_and_apart_from_one_another(story_gpt):
    """Chi-square over 8 samples of 500 steps; and the draws of any two samples do not go together."""
    logits = torch.tensor([[2.0, 1.5, 1.0, 0.0]])
    p = np.exp(logits[0].double().numpy()) / np.exp(logits[0].double().numpy()).sum()
    ids = torch.zeros(1, 1, dtype=torch.long)
    choices = [
        [
            choose(story_gpt, logits, ids, DecodeSettings(strategy="sample", seed=5, sample=sample), step, top=1)
            for sample in range(8)
        ]
        for step in range(1, 501)
    ]
    seen = Counter(choice.token for step in choices for choice in step)
    statistic = sum((seen[i] - 4000 * share) ** 2 / (4000 * share) for i, share in enumerate(p))
    assert statistic < 21.11  # the 0.9999 quantile of chi-square with 3 degrees of freedom
    drawn = np.array([[choice.drawn for choice in step] for step in choices], dtype=float)  # (steps, samples)
    apart = np.corrcoef(drawn.T) - np.eye(8)
    assert np.abs(apart).max() < 0.2  # 4.5 standard deviations


def _fields(settings: DecodeSettings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in settings.__slots__}


def test_the_same_seed_draws_the_same_text_and_another_one_another(story_gpt):
    first = written(story_gpt, STORIES[0], strategy="sample", seed=1)
    assert written(story_gpt, STORIES[0], strategy="sample", seed=1) == first
    assert written(story_gpt, STORIES[0], strategy="sample", seed=2) != first


def test_several_samples_are_those_that_each_number_gives_alone(story_gpt):
    steps = list(decode(story_gpt, STORIES[0], STEPS, strategy="sample", seed=3, samples=4))
    assert [sample.number for sample in steps[-1].samples] == [0, 1, 2, 3]
    for sample in steps[-1].samples:
        alone = list(decode(story_gpt, STORIES[0], STEPS, strategy="sample", seed=3, sample=sample.number))[-1]
        assert (sample.ids, sample.text) == (alone.ids, alone.text)
        assert sample.log_probability == pytest.approx(alone.log_probability, abs=1e-4)
    assert steps[-1].ids == steps[-1].samples[0].ids
    assert len({sample.ids for sample in steps[-1].samples}) == 4


def test_a_sample_that_has_ended_stays_as_it_is_and_the_others_go_on(en_es):
    steps = list(decode(en_es, "Good morning.", 40, strategy="sample", temperature=1.5, seed=2, samples=3))
    ends = {s.number: step.number for step in reversed(steps) for s in step.samples if s.ended}
    assert len(set(ends.values())) > 1
    assert steps[-1].ended
    for step in steps:
        for sample in step.samples:
            assert len(sample.ids) == min(step.number, ends[sample.number])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"strategy": "sample", "samples": 0}, "1 to 8"),
        ({"strategy": "sample", "samples": 9}, "1 to 8"),
        ({"samples": 2}, "need draws"),
        ({"strategy": "sample", "temperature": 0.0, "samples": 2}, "need draws"),
    ],
)
def test_samples_that_can_not_be_drawn_are_refused(story_gpt, settings, said):
    with pytest.raises(ValueError, match=said):
        decode(story_gpt, "Tom", 2, **settings)


def test_sampling_at_temperature_0_is_greedy(story_gpt):
    assert written(story_gpt, STORIES[1], strategy="sample", temperature=0.0) == written(story_gpt, STORIES[1])


def test_one_beam_is_greedy(story_gpt):
    beam = written(story_gpt, STORIES[1], strategy="beam", beams=1)
    assert beam == written(story_gpt, STORIES[1])


@pytest.mark.parametrize(
    "settings",
    [
        {"strategy": "beam", "length_penalty": -10.0},
        {"strategy": "beam", "length_penalty": 10.0},
        {"strategy": "sample", "temperature": 1e-6},
        {"strategy": "sample", "temperature": 1e6, "top_k": 10**9, "seed": MOST_SEED},
        {"strategy": "beam", "repetition_penalty": 1e-6},
        {"repetition_penalty": 1e6},
    ],
)
def test_the_outermost_settings_write(story_gpt, settings):
    *_, last = decode(story_gpt, "Tom and Anna", 4, **settings)
    assert len(last.ids) == 4
    assert math.isfinite(last.log_probability)


def test_a_masked_model_fills_its_most_confident_mask_first(story_bert):
    text = "Tom [MASK] to the [MASK]."
    steps = list(decode(story_bert, text, 5))
    assert [step.text for step in steps] == ["Tom went to the [MASK].", "Tom went to the station."]
    assert [step.ended for step in steps] == [False, True]
    tokenizer, module = story_bert.tokenizer, story_bert.module.double()
    try:
        total = 0.0
        for step, before in zip(steps, [text, steps[0].text], strict=True):
            ids = torch.tensor([tokenizer(before)["input_ids"]])
            log_p = module(ids).logits[0].log_softmax(dim=-1)  # (tokens, vocabulary)
            masks = (ids[0] == tokenizer.mask_token_id).nonzero()[:, 0].tolist()
            place = max(masks, key=lambda mask: float(log_p[mask].max()))
            assert int(log_p[place].argmax()) == step.ids[-1]
            total += float(log_p[place].max())
            assert step.log_probability == pytest.approx(total, abs=1e-5)
    finally:
        module.float()


def test_several_samples_fill_the_same_masks(story_bert):
    *_, last = decode(story_bert, "Tom [MASK] to the [MASK].", 5, strategy="sample", samples=3, seed=4)
    *_, alone = decode(story_bert, "Tom [MASK] to the [MASK].", 5, strategy="sample", seed=4, sample=2)
    assert [sample.number for sample in last.samples] == [0, 1, 2]
    assert all(sample.ended and len(sample.ids) == 2 and "[MASK]" not in sample.text for sample in last.samples)
    assert last.samples[2].text == alone.text


@pytest.mark.parametrize("text", ["", " ", "\n\n"])
def test_an_empty_source_is_refused(en_es, text):
    with pytest.raises(InputError, match="The input is empty"):
        decode(en_es, text, 2)


def test_a_list_of_no_candidates_is_refused(story_gpt):
    with pytest.raises(ValueError, match="1 or more"):
        decode(story_gpt, "Tom", 2, top=0)


def test_settings_that_leave_no_token_are_refused(story_gpt):
    logits = torch.full((1, 3), float("-inf"))
    with pytest.raises(InputError, match="leave no token"):
        choose(story_gpt, logits, torch.zeros(1, 1, dtype=torch.long), DecodeSettings(), 1)


def test_it_stops_when_it_is_told_to(story_gpt):
    with pytest.raises(Cancelled):
        next(decode(story_gpt, "Tom", 3, should_stop=lambda: True))


def test_beams_form_a_tree(story_gpt):
    steps = list(decode(story_gpt, "Tom and Anna", 5, strategy="beam", beams=3))
    nodes = {beam.node: beam for step in steps for beam in step.beams}
    for number, step in enumerate(steps, 1):
        assert sum(beam.kept for beam in step.beams) == (3 if number < len(steps) else 0)
        for beam in step.beams:
            assert len(beam.ids) == number
            before = nodes[beam.parent].ids if beam.parent >= 0 else ()
            assert beam.ids == (*before, beam.token)
            assert beam.parent < 0 or nodes[beam.parent].kept
    assert steps[-1].ended
    best = max((beam for beam in steps[-1].beams if beam.finished), key=lambda beam: beam.log_probability)
    assert steps[-1].ids == best.ids
