"""A word in two texts: cosines and components against their formulas on transformers' hidden states."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from models import open_checkpoint, word_in_context
from models.forward.model import Model
from models.protocol.errors import InputError
from tests.models import tiny
from tests.models.eager import hidden_states

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
        np.testing.assert_allclose(found.similarity[layer], unit[0] @ unit[1].T, atol=1e-5)
        both = np.concatenate([x, y])
        covariance = np.cov(both.T)
        values = np.linalg.eigvalsh(covariance)[::-1]
        np.testing.assert_allclose(found.explained[layer], values[:2] / values.sum(), rtol=1e-4)
        spread = found.plane[layer].var(axis=0, ddof=1)
        np.testing.assert_allclose(spread, values[:2], rtol=1e-4)
        means = [t.mean(axis=0) for t in (x, y)]
        cosine = means[0] @ means[1] / np.linalg.norm(means[0]) / np.linalg.norm(means[1])
        assert found.sentences[layer][1] == pytest.approx(cosine, abs=1e-5)


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


def test_a_recurrent_model_has_no_stream() -> None:
    with pytest.raises(InputError, match="has no residual stream"):
        word_in_context(open_checkpoint("dates-luong"), "1 May 2020", "2 May 2021", "May")
