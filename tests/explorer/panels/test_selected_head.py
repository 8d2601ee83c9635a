"""The selected head: what is asked for, what it is called, and where its next token is read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attention_explorer.panels.selected_head import (
    head_name,
    predicting_position,
    site_words,
    token_word,
    wanted_comparison,
    wanted_head,
    wanted_matrices,
    why_first,
    why_no_matrices,
)
from attention_explorer.session.intents import SelectHead, SelectQuery
from attention_explorer.session.state import Document, State
from attention_models.protocol.head import AttentionPeak, AttentionPeaks
from attention_models.protocol.matrices import WINDOW
from attention_models.protocol.values import SiteRef
from tests.explorer.session import answers


@pytest.fixture
def running() -> State:
    return answers.after(State(), answers.loaded(), answers.ran())


def test_without_a_run_nothing_is_wanted():
    assert wanted_head(State()) is None
    assert head_name(State()) == "No head"
    assert token_word(State(), 0) == ""


def test_names_for_sentences(running):
    assert head_name(running) == "Layer 5, head 5"
    assert token_word(running, 1) == "and"
    assert token_word(running, 99) == ""


def test_why_a_head_is_shown_first_is_said_until_another_is_chosen():
    looks = AttentionPeaks(
        3, tuple(tuple(AttentionPeak(2, 0.625 if (n, h) == (6, 1) else 0.1) for h in range(8)) for n in range(8))
    )
    ran = replace(answers.ran(), looks=looks)
    state = answers.after(State(Document(text="Tom and Anna went")), answers.loaded("b", "another"), ran)
    assert why_first(state).startswith("Shown first: from “went” this head gives “Anna” 62.5 % of its row. A head")
    assert why_first(answers.after(state, SelectQuery(1))) == ""
    assert why_first(answers.after(state, SelectHead(SiteRef("decoder", 2), 1))) == ""
    assert why_first(answers.after(State(), answers.loaded(), answers.ran())) == ""


def test_the_words_of_each_stack_of_an_encoder_decoder_model():
    ran = answers.translation(text="The cat", written="El gato negro")
    source, target = ["The", "cat", "⟨end⟩"], ["⟨start⟩", "El", "gato", "negro"]
    found = {site.stack: site_words(ran, site) for site in ran.sites}
    assert found == {
        "encoder": (source, source),
        "decoder": (target, target),
        "cross": (["⟨start⟩ → El", "El → gato", "gato → negro", "negro → ⟨next⟩"], source),
    }


def test_a_site_with_other_tokens_than_the_texts_has_numbers():
    ran = answers.ran()
    words = ["Tom", "and", "Anna", "went"]
    assert site_words(ran, replace(ran.sites[0], keys=2)) == (words, ["0", "1"])


@pytest.mark.parametrize(("stack", "position"), [("encoder", 2), ("decoder", 1), ("cross", 1)])
def test_the_next_token_is_read_from_the_target(stack, position):
    state = answers.after(answers.TRANSLATING, answers.translator(), answers.translation())
    state = answers.after(state, SelectHead(SiteRef(stack, 1), 0), SelectQuery(1))
    assert state.ran is not None
    assert predicting_position(state, state.ran) == position
    wanted = wanted_comparison(state)
    assert wanted is not None
    assert wanted.position == position
    assert token_word(state, 1) == {"encoder": "cat", "decoder": "El", "cross": "El → gato"}[stack]


def test_a_comparison_that_comes_in_parts_is_asked_for_until_it_is_whole():
    state = answers.after(State(), answers.loaded(), answers.ran())
    first = wanted_comparison(state)
    assert first is not None
    assert first.have == 0
    part = answers.after(state, answers.comparison(first, done=0.25))
    assert wanted_comparison(part) == replace(first, have=0.25)
    moved = wanted_comparison(answers.after(part, SelectQuery(1)))
    assert moved is not None
    assert (moved.have, moved.position) == (0, 1)
    assert wanted_comparison(answers.after(part, answers.comparison(first, done=1.0))) is None


def test_of_a_long_text_the_matrices_of_a_window_about_the_selection_are_wanted(running):
    assert wanted_matrices(State()) is None
    wanted = wanted_matrices(running)
    assert wanted is not None
    assert (wanted.site, wanted.first_query, wanted.first_key) == (SiteRef("decoder", 5), 0, 0)
    long = answers.after(State(), answers.loaded(), answers.ran(text="a " * 200), SelectQuery(100))
    wanted = wanted_matrices(long)
    assert wanted is not None
    assert wanted.first_query <= 100 < wanted.first_query + WINDOW
    assert wanted_matrices(answers.after(long, SelectQuery(101))) == wanted


def test_why_a_model_has_no_matrices():
    info = answers.loaded().info
    assert why_no_matrices(info) == ""
    assert why_no_matrices(replace(info, weights_only="Only its weights.")) == "Only its weights."
    assert "one pair after the other" in why_no_matrices(replace(info, textbook=True))
