"""The glossary: what its entries hold, what is found in a text, and what a search leads to."""

from __future__ import annotations

import pytest

from attention_explorer.glossary import Entry, Glossary, decode, glossary
from attention_explorer.panels.registry import TITLES

ASKED = """
    logit, entropy, eval mode, rows sum to 1, W_O, stream, residual stream,
    CLS, nats, bits, ␣, ⏎, ‹D9›, softmax, norm,
    head, query, key, value, score, weight, mask, causal, layer, token, perplexity, loss, BLEU, beam, temperature,
    top-p, cache, embedding, LayerNorm, feed-forward network, cross-attention, encoder, decoder, bottleneck,
    sinusoids, RoPE, ALiBi
"""


@pytest.mark.parametrize("word", [word.strip() for word in ASKED.split(",")])
def test_every_word_that_a_lesson_needs_has_an_entry(word):
    entry = glossary().of(word)
    assert entry is not None
    assert entry.what.endswith((".", ".)"))
    assert entry.where.endswith(".")


def test_every_entry_leads_to_a_panel_that_there_is():
    for entry in glossary().entries:
        assert entry.panel in ("", *TITLES), entry.term
        named = [title for title in TITLES.values() if title in entry.where]
        assert not entry.panel or TITLES[entry.panel] in named or not named, entry.term


def test_formulas_are_where_there_are_some_and_sources_of_papers_have_a_year():
    with_formula = [entry.term for entry in glossary().entries if entry.formula]
    assert {"softmax", "entropy", "logit", "attention", "norm", "LayerNorm", "loss"} <= set(with_formula)
    for entry in glossary().entries:
        assert not entry.source or any(part[:4].isdigit() for part in entry.source.split()), entry.term


def test_words_are_found_in_their_order_and_each_once():
    found = [entry.term for entry in glossary().found_in("The weight is softmax's share of a score, and a weight.")]
    assert found == ["weight", "softmax", "score"]


def test_of_words_that_lie_over_each_other_the_longest_counts():
    assert [e.term for e in glossary().found_in("the residual stream")] == ["residual stream"]
    assert [e.term for e in glossary().found_in("the feed-forward network")] == ["feed-forward network"]


def test_a_part_of_a_word_is_no_term():
    assert glossary().found_in("headline, weightless, monkey, unmasked") == ()
    assert [e.term for e in glossary().found_in("× W_O")] == ["W_O"]


def test_single_letters_are_symbols_whose_size_matters():
    assert glossary().of("q") is glossary().of("Q")
    assert glossary().of("D") is None
    assert glossary().found_in("A d in it")[0].term == "dimension"
    assert glossary().found_in("A D in it") == ()


def test_the_marks_of_tokens_are_found_where_they_stand():
    assert [e.term for e in glossary().found_in("␣to")] == ["␣"]
    assert [e.term for e in glossary().found_in("⏎")] == ["⏎"]


def test_a_search_has_words_that_begin_so_first():
    assert [entry.term for entry in glossary().search("logi")][:1] == ["logit"]
    assert glossary().search("Jacob")[0].term == "gradient"
    assert glossary().search("") == glossary().entries
    assert glossary().search("xyzzy") == ()
    assert any(entry.term == "sink" for entry in glossary().search("nothing is to be found"))


def entry(term: str, *also: str) -> Entry:
    return Entry(term=term, also=also, what="What it is.", where="Here.")


def test_two_entries_with_one_word_are_refused():
    with pytest.raises(ValueError, match=r"“[Nn]orm”"):
        Glossary((entry("norm"), entry("length", "Norm")))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[[entry]]\nterm = 'a'\n",
        b"[[entry]]\nterm = ''\nwhat = 'x'\nwhere = 'y'\n",
        b"[[entry]]\nterm = 'a'\nwhat = 'x'\nwhere = 'y'\ncolour = 'red'\n",
        b"entry = 3",
        b"\xff",
    ],
)
def test_a_file_that_spells_none_is_refused(content):
    with pytest.raises(ValueError, match=r"."):
        decode(content)
