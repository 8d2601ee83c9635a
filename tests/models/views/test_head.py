"""One head's weights between words: merged from those between tokens, with rows that sum to 1."""

from __future__ import annotations

import numpy as np
import pytest

from models.protocol.head import HeadRequest, HeadView
from models.protocol.run_inputs import RunInputs
from models.protocol.running import ForwardRequest, Ran
from models.protocol.values import SiteRef
from models.protocol.words import Words, site_words
from tests.models.asking import ask, opened

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
