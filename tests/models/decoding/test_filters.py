"""What each filter cuts and moves, told from random logits, and the sentences of wrong settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
import torch
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from attention_models.decoding.filters import apply, filters, stages
from attention_models.protocol.decoding import DecodeSettings, Strategy

IDS = torch.tensor([[3, 7, 3, 7, 5, 3]])
SINGLE: list[tuple[str, dict[str, Any], Any]] = [
    ("repetition penalty", {"repetition_penalty": 1.7}, RepetitionPenaltyLogitsProcessor(1.7)),
    ("no repeated n-gram", {"no_repeat_ngram": 2}, NoRepeatNGramLogitsProcessor(2)),
    ("temperature", {"temperature": 0.6}, TemperatureLogitsWarper(0.6)),
    ("top-k", {"top_k": 9}, TopKLogitsWarper(9)),
    ("top-p", {"top_p": 0.8}, TopPLogitsWarper(0.8)),
    ("min-p", {"min_p": 0.1}, MinPLogitsWarper(0.1)),
]


def random_logits(seed: int) -> torch.Tensor:
    return 3 * torch.randn(1, 60, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("seed", range(3))
def test_all_together_act_in_generates_order_and_each_cut_is_booked_once(seed):
    settings = DecodeSettings(
        strategy="sample",
        temperature=1.4,
        top_k=20,
        top_p=0.9,
        min_p=0.05,
        repetition_penalty=1.3,
        no_repeat_ngram=2,
    )
    filtered = apply(filters(settings), IDS, random_logits(seed))
    scores = random_logits(seed)
    for processor in (
        RepetitionPenaltyLogitsProcessor(1.3),
        NoRepeatNGramLogitsProcessor(2),
        TemperatureLogitsWarper(1.4),
        TopKLogitsWarper(20),
        TopPLogitsWarper(0.9),
        MinPLogitsWarper(0.05),
    ):
        scores = processor(IDS, scores)  # type: ignore[arg-type]
    assert torch.equal(filtered.scores, scores)
    booked = torch.stack([cut[0] for cut in filtered.cut_by.values()]).sum(dim=0)
    assert torch.equal(booked, filtered.scores[0].isneginf().long())
    p = random_logits(seed)[0].softmax(dim=-1)
    told = stages(filtered, random_logits(seed)[0], torch.arange(3))
    assert [cut.filter for cut in told] == list(filtered.cut_by)
    assert sum(cut.tokens for cut in told) == int(booked.sum())
    gone = sum(cut.probability for cut in told)
    assert gone == pytest.approx(float(p.double()[filtered.scores[0].isneginf()].sum()), abs=1e-6)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("last", range(6))
def test_each_stage_tells_what_the_processors_up_to_it_make_of_the_logits(seed, last):
    """Against transformers' processors, with softmax and sums in float64."""
    chain = filters(DecodeSettings(strategy="sample", **{k: v for _, setting, _ in SINGLE for k, v in setting.items()}))
    offered = random_logits(seed)[0].topk(10).indices
    told = stages(apply(chain, IDS, random_logits(seed)), random_logits(seed)[0], offered)
    assert [stage.filter for stage in told] == [name for name, *_ in SINGLE]
    before, scores = random_logits(seed), random_logits(seed)
    for _, _, processor in SINGLE[: last + 1]:
        before, scores = scores, processor(IDS, scores)
    model, earlier, after = (shares(random_logits(seed)), shares(before), shares(scores))
    cut = np.isneginf(scores[0].numpy()) & ~np.isneginf(before[0].numpy())
    stage = told[last]
    np.testing.assert_allclose(stage.shares, after[offered.numpy()], atol=1e-6, rtol=0)
    assert (stage.tokens, stage.left) == (cut.sum(), np.isfinite(scores[0].numpy()).sum())
    assert stage.peak == pytest.approx(earlier.max(), abs=1e-6)
    ahead = [earlier[earlier > earlier[id_]].sum() for id_ in offered.tolist()]
    np.testing.assert_allclose(stage.ahead, ahead, atol=1e-6, rtol=0)
    assert stage.probability == pytest.approx(model[cut].sum(), abs=1e-6)
    assert stage.moved == pytest.approx(np.abs(after - earlier).sum() / 2, abs=1e-6)
    if cut.any():  # what a filter that only cuts moves is what it cut
        assert stage.moved == pytest.approx(earlier[cut].sum(), abs=1e-6)


def shares(scores: torch.Tensor) -> np.ndarray:
    exponentials = np.exp(scores[0].double().numpy() - float(scores.max()))
    found: np.ndarray = exponentials / exponentials.sum()
    return found


@pytest.mark.parametrize("strategy", ["greedy", "beam"])
def test_what_shapes_a_draw_is_off_where_nothing_is_drawn(strategy):
    settings = DecodeSettings(strategy=strategy, temperature=2.0, top_k=3, top_p=0.5, min_p=0.2, repetition_penalty=2.0)
    assert [name for name, _ in filters(settings)] == ["repetition penalty"]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"temperature": -1.0}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_k": 0}, "keeps no token: it is 1 or more"),
        ({"top_p": 0.0}, "above 0, at most 1"),
        ({"top_p": 1.5}, "above 0, at most 1"),
        ({"min_p": -0.1}, "between 0 and 1"),
        ({"repetition_penalty": 0.0}, "1 changes nothing"),
        ({"no_repeat_ngram": -1}, "0 \\(off\\) or more"),
        ({"beams": 0}, "1 to 32"),
        ({"sample": -1}, "count from 0"),
        ({"beams": 33}, "1 to 32"),
        ({"length_penalty": float("inf")}, "-10 to 10"),
        ({"length_penalty": float("nan")}, "-10 to 10"),
        ({"length_penalty": -1000.0}, "-10 to 10"),
        ({"temperature": 1e-40}, "0 \\(greedy\\), or 0.000001"),
        ({"temperature": 1e30}, "0 \\(greedy\\), or 0.000001"),
        ({"repetition_penalty": 1e-40}, "0.000001 to 1,000,000"),
        ({"top_k": 10**30}, "1,000,000,000 at most"),
        ({"no_repeat_ngram": 10**30}, "1,000,000,000 at most"),
        ({"seed": -1}, "A seed of -1 is not offered"),
        ({"seed": 10**30}, "is not offered"),
        ({"strategy": "best"}, "greedy, sample or beam"),
    ],
)
def test_a_value_out_of_range_is_refused_in_a_sentence(setting, said):
    with pytest.raises(ValueError, match=said) as caught:
        DecodeSettings(**setting)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize("strategy", get_args(Strategy))
def test_settings_of_a_strategy_say_nothing_of_what_it_leaves_alone(strategy):
    every = DecodeSettings(
        temperature=0.5,
        top_k=3,
        top_p=0.5,
        min_p=0.1,
        repetition_penalty=1.5,
        no_repeat_ngram=2,
        beams=7,
        length_penalty=0.0,
        seed=4,
        sample=2,
    )
    expected = {
        "greedy": DecodeSettings(repetition_penalty=1.5, no_repeat_ngram=2),
        "sample": replace(every, strategy="sample", beams=4, length_penalty=1.0),
        "beam": DecodeSettings("beam", repetition_penalty=1.5, no_repeat_ngram=2, beams=7, length_penalty=0.0),
    }
    assert every.of_strategy(strategy) == expected[strategy]
