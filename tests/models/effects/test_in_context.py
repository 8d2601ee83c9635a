"""A word in two texts: cosines and components against their formulas on transformers' hidden states."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_models import open_checkpoint, run, word_in_context
from attention_models.forward.model import Model
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.effects import InContextRequest, InContextView, place_of_word
from attention_models.protocol.errors import InputError
from attention_models.protocol.request import Cancelled
from attention_models.protocol.values import SiteRef
from tests.models import tiny
from tests.models.asking import ask, failure_of, opened
from tests.models.eager import hidden_states
from tests.models.tiny import TinyModel

RIVER, MONEY = "They sat on the river bank.", "She has money in the bank."


@pytest.mark.parametrize("checkpoint", ["story-gpt", "story-bert"])
def test_it_is_the_cosine_of_transformers_states(checkpoint: str) -> None:
    model = open_checkpoint(checkpoint)
    found = word_in_context(model, RIVER, MONEY, "bank")
    states = []
    for text in (RIVER, MONEY):
        with torch.no_grad():
            out = tiny.eager(model)(**model.encode(text).inputs, output_hidden_states=True)
        states.append(next(iter(hidden_states(out, model).values())))
    layers = len(found.cosine)
    assert layers == len(states[0])
    for places, tokens in zip(found.positions, found.tokens, strict=True):
        assert "".join(tokens[i].text for i in places).strip() == "bank"
    for layer in range(layers - 1):  # transformers' last one is behind the final norm
        words = [s[layer][list(p)].double().mean(dim=0).numpy() for s, p in zip(states, found.positions, strict=True)]
        expected = words[0] @ words[1] / np.linalg.norm(words[0]) / np.linalg.norm(words[1])
        assert found.cosine[layer] == pytest.approx(expected, abs=1e-5)
        x, y = (s[layer].double().numpy() for s in states)
        unit = [t / np.linalg.norm(t, axis=1, keepdims=True) for t in (x, y)]
        both = np.concatenate(unit)
        np.testing.assert_allclose(found.similarity[layer], both @ both.T, atol=1e-5)
        both = np.concatenate([x, y])
        covariance = np.cov(both.T)
        values = np.linalg.eigvalsh(covariance)[::-1]
        np.testing.assert_allclose(found.explained[layer], values[:2] / values.sum(), rtol=1e-4)
        spread = found.plane[layer].var(axis=0, ddof=1)
        np.testing.assert_allclose(spread, values[:2], rtol=1e-4)
        for place, vectors in enumerate(([t[0] for t in (x, y)], [t.mean(axis=0) for t in (x, y)])):
            cosine = vectors[0] @ vectors[1] / np.linalg.norm(vectors[0]) / np.linalg.norm(vectors[1])
            assert found.sentences[layer][place] == pytest.approx(cosine, abs=1e-5)


def test_the_same_text_is_alike_throughout(story_gpt: Model) -> None:
    found = word_in_context(story_gpt, RIVER, RIVER, "bank")
    np.testing.assert_allclose(found.cosine, 1, atol=1e-9)
    np.testing.assert_allclose(found.sentences, 1, atol=1e-9)
    half = len(found.tokens[0])
    np.testing.assert_allclose(found.plane[:, :half], found.plane[:, half:], atol=1e-6)


def test_a_word_begins_alike_and_drifts_apart(story_gpt: Model) -> None:
    found = word_in_context(story_gpt, RIVER, MONEY, "bank")
    assert found.cosine[0] > found.cosine[len(found.cosine) // 2]


def test_two_words_and_a_translators_source(en_es: Model) -> None:
    found = word_in_context(en_es, "The cat sleeps.", "The dog sleeps.", "cat", "dog")
    assert found.tokens[0][found.positions[0][0]].text.strip().startswith("c")
    assert len(found.cosine) == 5


@pytest.mark.parametrize("word", ["river", "", "Bank"])
def test_a_word_that_is_not_there_is_said(story_gpt: Model, word: str) -> None:
    with pytest.raises(InputError, match=r"does not have “.*” in it. Name a word as it stands there"):
        word_in_context(story_gpt, RIVER, MONEY, word)


@pytest.mark.parametrize(
    ("text", "word", "start", "place"),
    [
        ("the embankment of a bank", "bank", None, (20, 24)),
        ("a bank, no embankment", "bank", None, (2, 6)),
        ("a bank by a bank", "bank", 2, (2, 6)),
        ("a bank by a bank", "bank", 3, (12, 16)),  # no such word there: its last place
        ("embankment", "bank", None, (2, 6)),
        ("aaa", "aa", None, (1, 3)),
        ("a bank", "shore", None, None),
        ("a bank", " ", None, None),
    ],
)
def test_which_place_of_a_word_is_meant(text: str, word: str, start: int | None, place: tuple[int, int] | None) -> None:
    assert place_of_word(text, word, start) == place


def test_texts_of_one_token(tiny_model: TinyModel) -> None:
    """There is one way in which two tokens differ; and nothing is undefined."""
    found = word_in_context(tiny_model("gpt2"), "T", "A", "T", "A")
    assert [len(tokens) for tokens in found.tokens] == [1, 1]
    np.testing.assert_allclose(found.explained, [[1, 0]] * len(found.cosine), atol=1e-9)
    np.testing.assert_allclose(found.cosine, found.sentences[:, 0], atol=1e-12)
    assert np.isfinite(found.plane).all()


def test_interventions_act_on_both_texts(story_gpt: Model) -> None:
    skip = Ablation("attention", SiteRef("decoder", 0))
    plain, edited = (word_in_context(story_gpt, RIVER, MONEY, "bank", interventions=i) for i in ((), (skip,)))
    assert edited.cosine[0] == plain.cosine[0]
    assert abs(edited.cosine[1] - plain.cosine[1]) > 1e-4
    streams = [run(story_gpt, text, interventions=(skip,)).residual["decoder"][1] for text in (RIVER, MONEY)]
    means = [s[list(p)].double().mean(dim=0) for s, p in zip(streams, edited.positions, strict=True)]
    assert edited.cosine[1] == pytest.approx(float(torch.cosine_similarity(means[0], means[1], dim=0)), abs=1e-9)


def test_an_engine_answers_without_a_run_and_says_what_it_refuses() -> None:
    engine = opened("story-gpt")
    view = ask(engine, InContextRequest(texts=(RIVER, MONEY), words=("bank", "bank")))
    assert isinstance(view, InContextView)
    assert view.layers == 9
    long = "the bank " * 70
    failure = failure_of(engine, InContextRequest(texts=(long, long), words=("bank", "bank")))
    assert "Take texts of 256 in all" in failure.sentence
    with pytest.raises(Cancelled):
        ask(engine, InContextRequest(texts=(RIVER, MONEY), words=("bank", "bank")), lambda: True)
    failure = failure_of(opened("vit-quickdraw"), InContextRequest(texts=(RIVER, MONEY), words=("bank", "bank")))
    assert "reads pictures and no words" in failure.sentence


def test_a_recurrent_model_has_no_stream() -> None:
    with pytest.raises(InputError, match="has no residual stream"):
        word_in_context(open_checkpoint("dates-luong"), "1 May 2020", "2 May 2021", "May")
