"""One head's weights between words: merged from those between tokens, with rows that sum to 1."""

from __future__ import annotations

import numpy as np
import pytest

from attention_models import run
from attention_models.protocol.cell import CellRequest
from attention_models.protocol.head import HeadRequest, HeadView, ScoresRequest
from attention_models.protocol.interventions import Scale
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.values import SiteRef
from attention_models.protocol.word_spans import Words, site_words
from attention_models.views.cell import cell_view
from attention_models.views.head import scores_view
from tests.models.asking import ask, failure_of, opened
from tests.models.tiny import SENTENCE

TEXT = "The unbelievably mischievous cat didn't sit, on the mat."


def runs(lengths: list[int]) -> list[list[int]]:
    ends = np.cumsum(lengths).tolist()
    return [list(range(end - length, end)) for end, length in zip(ends, lengths, strict=True)]


@pytest.mark.parametrize(
    ("name", "target", "stacks"),
    [
        ("story-gpt", None, ["decoder"]),
        ("story-bert", None, ["encoder"]),
        ("en-es", "El gato increíblemente travieso.", ["encoder", "decoder", "cross"]),
    ],
)
def test_words_are_merged_as_written_out_and_rows_sum_to_1(name, target, stacks):
    engine = opened(name)
    ran = ask(engine, ForwardRequest(inputs=RunInputs(TEXT, target=target), ticket=2))
    assert isinstance(ran, Ran)
    assert len(Words.of(ran.source or ran.tokens)) < len(ran.source or ran.tokens)
    assert {site.stack for site in ran.sites} == set(stacks)
    for site in ran.sites:
        view = ask(engine, HeadRequest(run=2, site=site.ref, head=1, words=True))
        assert isinstance(view, HeadView)
        assert view.by_word is not None
        queries, keys = (runs([len(w.tokens(i)) for i in range(len(w))]) for w in site_words(ran, site))
        for a, pieces in enumerate(queries):
            for b, of_key in enumerate(keys):
                block = view.weights[np.ix_(pieces, of_key)].astype(np.float64)
                assert view.by_word.weights[a, b] == pytest.approx(block.sum(axis=1).mean(), abs=1e-7)
                if view.by_word.masked is not None:
                    assert view.masked is not None
                    assert view.by_word.masked[a, b] == view.masked[np.ix_(pieces, of_key)].all()
        assert (view.by_word.masked is None) == (view.masked is None)
        np.testing.assert_allclose(view.by_word.weights.sum(axis=1), 1.0, atol=1e-6)
        assert not view.by_word.weights.flags.writeable


def test_unasked_there_are_none():
    engine = opened("story-gpt")
    ask(engine, ForwardRequest(inputs=RunInputs(TEXT), ticket=2))
    view = ask(engine, HeadRequest(run=2, site=SiteRef("decoder", 0), head=0))
    assert isinstance(view, HeadView)
    assert view.by_word is None


def test_where_every_piece_is_a_word_both_are_the_same():
    engine = opened("story-gpt")
    ran = ask(engine, ForwardRequest(inputs=RunInputs("The cat sat on the mat."), ticket=2))
    assert isinstance(ran, Ran)
    assert Words.of(ran.tokens).are_tokens
    view = ask(engine, HeadRequest(run=2, site=SiteRef("decoder", 3), head=2, words=True))
    assert isinstance(view, HeadView)
    assert view.by_word is not None
    np.testing.assert_array_equal(view.by_word.weights, view.weights)


@pytest.mark.parametrize(
    ("name", "site", "head"),
    [
        ("story-gpt", SiteRef("decoder", 5), 5),
        ("llama", SiteRef("decoder", 1), 3),  # shares its key head
        ("t5", SiteRef("encoder", 0), 1),  # a bias
        ("gemma2", SiteRef("decoder", 0), 2),  # a soft cap and a window
    ],
)
def test_scores_from_queries_and_keys_and_as_cell_has_them(tiny_model, story_gpt, name, site, head):
    model = story_gpt if name == "story-gpt" else tiny_model(name)
    target = "to the park" if model.seq2seq else None
    trace = run(model, SENTENCE, target=target, interventions=[Scale(0.5)])
    view, x = scores_view(ScoresRequest(run=1, site=site, head=head), trace), trace.at(site, head)
    key_head = head // (x.heads // x.key.shape[1])
    raw = x.query[0, head].double().numpy() @ x.key[0, key_head].double().numpy().T
    scaled = raw * x.scale * 0.5 + (0.0 if x.bias is None else x.bias[0, head].double().numpy())
    scaled = 1.5 * np.tanh(scaled / 1.5) if name == "gemma2" else scaled
    np.testing.assert_allclose(view.raw, raw, atol=1e-5 * np.abs(raw).max())
    np.testing.assert_allclose(view.scaled, scaled, atol=1e-5 * max(1.0, np.abs(scaled).max()))
    hidden = np.zeros(raw.shape, bool) if view.masked is None else view.masked
    powers = np.where(hidden, 0.0, np.exp(view.scaled.astype(np.float64)))
    np.testing.assert_allclose(powers / powers.sum(axis=1, keepdims=True), trace.weights(site, head), atol=1e-5)
    query, key = len(raw) - 1, 1
    cell = cell_view(CellRequest(run=1, site=site, head=head, query=query, key=key), model, trace)
    assert view.raw[query, key] == pytest.approx(cell.raw, rel=1e-5)
    assert view.scaled[query, key] == pytest.approx(cell.score, rel=1e-5)
    assert hidden[query].tolist() == cell.row_masked.tolist()


def test_a_model_that_shows_no_scores_says_why(tiny_folder):
    engine = opened(str(tiny_folder("bloom")))
    ask(engine, ForwardRequest(inputs=RunInputs("Tom and Anna"), ticket=2))
    assert "bloom" in failure_of(engine, ScoresRequest(run=2, site=SiteRef("decoder", 0), head=0)).sentence
