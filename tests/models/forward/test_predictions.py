"""What the model says, against the softmax of the same logits in float64 numpy."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from attention_models import run
from attention_models.forward.model import Model
from attention_models.forward.predictions import predict
from attention_models.forward.trace import Trace
from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.interventions import Scale
from attention_models.protocol.values import Prediction
from tests.models import tiny
from tests.models.tiny import TinyModel


def softmax(logits: np.ndarray) -> np.ndarray:
    e = np.exp(logits.astype(np.float64) - float(logits.max()))
    return np.asarray(e / e.sum())


def with_logits(trace: Trace, row: torch.Tensor) -> Trace:
    """The same run, had the model said `row` at every position."""
    assert trace.output_logits is not None
    return replace(trace, output_logits=row.expand(len(trace.tokens), -1))


@pytest.fixture(scope="module")
def trace(story_gpt: Model) -> Trace:
    return run(story_gpt, tiny.SENTENCE)


def test_probabilities_are_the_softmax(story_gpt: Model, trace: Trace) -> None:
    positions = range(len(trace.tokens))
    for prediction in predict(story_gpt, trace, positions, top=20):
        logits = trace.logits[prediction.position]
        p = softmax(logits)
        order = np.argsort(-p, kind="stable")
        assert [c.id for c in prediction.candidates] == order[:20].tolist()
        assert [c.rank for c in prediction.candidates] == list(range(1, 21))
        np.testing.assert_allclose([c.probability for c in prediction.candidates], p[order[:20]], rtol=1e-9)
        assert [c.logit for c in prediction.candidates] == logits[order[:20]].tolist()
        assert prediction.entropy == pytest.approx(-(p * np.log2(p)).sum(), rel=1e-9)


def test_candidates_are_named(story_gpt: Model, trace: Trace) -> None:
    (last,) = predict(story_gpt, trace, [len(trace.tokens) - 1], top=3)
    for candidate in last.candidates:
        assert story_gpt.tokenizer.convert_ids_to_tokens(candidate.id) == candidate.piece
        assert candidate.label == candidate.piece.replace("Ġ", "␣")
    assert last.candidates[0].label == "␣Tom"  # the sentence that the example was chosen for


def test_causal_model_says_the_next_token(story_gpt: Model, trace: Trace) -> None:
    predictions = predict(story_gpt, trace, range(len(trace.tokens)))
    for prediction, following in zip(predictions, trace.tokens[1:], strict=False):
        assert prediction.actual is not None
        assert prediction.actual.id == following.id
        logits = trace.logits[prediction.position]
        assert prediction.actual.rank == 1 + int((logits > logits[following.id]).sum())
        assert prediction.actual.probability == pytest.approx(softmax(logits)[following.id], rel=1e-9)
    assert predictions[-1].actual is None


def test_masked_model_says_the_token_itself(story_bert: Model) -> None:
    trace = run(story_bert, "Anna lost her [MASK] in the park.")
    predictions = predict(story_bert, trace, range(len(trace.tokens)))
    for prediction, token in zip(predictions, trace.tokens, strict=True):
        if token.piece == "[MASK]":
            assert prediction.actual is None
        else:
            assert prediction.actual is not None
            assert prediction.actual.id == token.id
    assert [p.position for p in predictions if p.actual is None] == [4]


def test_decoder_of_a_translator_says_the_next_token(en_es: Model) -> None:
    trace = run(en_es, "The house has three doors.", target="La casa")
    first, second, last = predict(en_es, trace, range(3))
    assert [p.actual.piece if p.actual else None for p in (first, second, last)] == ["▁La", "▁casa", None]


@pytest.mark.parametrize("top", [1, 2, 3])
def test_ties_share_a_rank(tiny_model: TinyModel, top: int) -> None:
    model = tiny_model("gpt2")
    trace = run(model, "Tom")
    row = torch.zeros(model.info.vocabulary)
    row[[7, 9]], row[11] = 5.0, 4.0
    (prediction,) = predict(model, with_logits(trace, row), [0], top=top)
    assert [c.rank for c in prediction.candidates] == [1, 1, 3][:top]
    assert {c.id for c in prediction.candidates} <= {7, 9, 11}


def said(model: Model, row: torch.Tensor) -> Prediction:
    return predict(model, with_logits(run(model, "Tom"), row), [0])[0]


def test_entropy_of_no_idea(tiny_model: TinyModel) -> None:
    model = tiny_model("gpt2")
    assert said(model, torch.zeros(model.info.vocabulary)).entropy == pytest.approx(math.log2(model.info.vocabulary))


def test_entropy_of_a_coin(tiny_model: TinyModel) -> None:
    model = tiny_model("gpt2")
    row = torch.full((model.info.vocabulary,), -torch.inf)
    row[[3, 4]] = 2.0
    prediction = said(model, row)
    assert prediction.entropy == pytest.approx(1.0)
    assert [c.probability for c in prediction.candidates[:3]] == [pytest.approx(0.5), pytest.approx(0.5), 0.0]


def test_entropy_of_certainty_is_plain_zero(tiny_model: TinyModel) -> None:
    model = tiny_model("gpt2")
    row = torch.zeros(model.info.vocabulary)
    row[5] = 1e4
    prediction = said(model, row)
    assert f"{prediction.entropy:.2f}" == "0.00"
    assert prediction.candidates[0].probability == 1.0
    assert prediction.candidates[1].probability == 0.0


def test_more_candidates_than_there_are(tiny_model: TinyModel) -> None:
    model = tiny_model("gpt2")
    (prediction,) = predict(model, run(model, "Tom"), [0], top=10_000)
    assert len(prediction.candidates) == model.info.vocabulary
    assert sum(c.probability for c in prediction.candidates) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("position", [-1, 14])
def test_unknown_position(story_gpt: Model, trace: Trace, position: int) -> None:
    with pytest.raises(IndexError, match="the run has 14 tokens"):
        predict(story_gpt, trace, [0, position])


def test_model_without_a_head(tiny_model: TinyModel) -> None:
    model = tiny_model("bert_bare")
    with pytest.raises(ExplorerError, match="no output head"):
        predict(model, run(model, "Tom"), [0])


@pytest.mark.parametrize("position", [4, 13])
def test_an_edited_run_is_told_with_what_the_model_as_it_is_says(story_gpt: Model, position: int) -> None:
    edited = run(story_gpt, tiny.SENTENCE, interventions=[Scale(0.0)])
    (prediction,) = predict(story_gpt, edited, [position], 5, run(story_gpt, tiny.SENTENCE))
    with torch.no_grad():
        own = tiny.eager(story_gpt)(**story_gpt.encode(tiny.SENTENCE).inputs).logits[0, position].double().softmax(-1)
    after = softmax(np.asarray(edited.logits_at([position])[0].float()))
    for candidate in prediction.candidates:
        assert candidate.before == pytest.approx(float(own[candidate.id]), rel=1e-4)
        assert candidate.probability == pytest.approx(float(after[candidate.id]), rel=1e-4)
    assert int(own.argmax()) in [candidate.id for candidate in prediction.candidates]
    (alone,) = predict(story_gpt, edited, [position], 5)
    assert [candidate.before for candidate in alone.candidates] == [None] * 5
