from __future__ import annotations

import pytest

from explorer.session.defaults import default_selection, followed_query, last_token
from explorer.session.state import Selection
from models.protocol.values import SiteRef
from tests.explorer.session import answers


def test_story_gpt_starts_with_the_head_that_finds_the_name():
    selection = default_selection(answers.ran(text="Tom and Anna went"), "story-gpt")
    assert selection == Selection(site=SiteRef("decoder", 5), head=5, query=3, key=0)


def test_a_listed_head_that_did_not_run_gives_way_to_the_rule():
    assert default_selection(answers.ran(layers=4), "story-gpt").site == SiteRef("decoder", 3)


@pytest.mark.parametrize(("layers", "layer"), [(1, 0), (2, 1), (6, 4), (12, 8), (48, 31)])
def test_any_other_model_starts_at_two_thirds_of_its_stack(layers, layer):
    selection = default_selection(answers.ran(layers=layers, stack="encoder"), "somebody's")
    assert (selection.site, selection.head) == (SiteRef("encoder", layer), 0)


def test_a_recurrent_model_starts_at_its_one_cross_head_on_a_letter_of_the_month():
    ran = answers.ran(text="t h u r s d a y , _ 5 _ m a r c h", layers=1, heads=1, stack="cross")
    assert default_selection(ran, "dates-bahdanau") == Selection(site=SiteRef("cross", 0), head=0, query=6, key=14)
    assert default_selection(ran, "somebody's").site == SiteRef("cross", 0)


def test_a_recurrent_translator_starts_where_the_adjective_waits():
    ran = answers.ran(text="he is reading an old book . end extra", layers=1, heads=1, stack="cross")
    assert default_selection(ran, "recurrent-en-es-bahdanau") == Selection(SiteRef("cross", 0), head=0, query=6, key=4)


def test_a_model_without_sites_has_no_default_site():
    assert default_selection(answers.ran(layers=0)) == Selection(site=None, query=3)


def test_a_masked_model_starts_on_its_first_mask_and_the_first_word():
    ran = answers.ran(text="Tom [MASK] to [MASK] today", stack="encoder", framed=True)
    selection = default_selection(ran)
    assert (selection.query, selection.key) == (2, 1)


def test_the_last_token_is_not_a_special_one():
    assert last_token(answers.ran(text="Tom went", framed=True)) == 2
    assert last_token(answers.ran(text="", framed=True)) == 1  # nothing but special tokens
    assert last_token(answers.ran(text="")) == 0


def test_a_query_follows_the_end_and_the_first_mask_and_otherwise_stays():
    before, after = answers.ran(text="a b c"), answers.ran(text="a b c d")
    assert followed_query(2, before, after) == 3
    assert followed_query(1, before, after) == 1
    masked, moved = answers.ran(text="a [MASK] c"), answers.ran(text="x a [MASK] c")
    assert followed_query(1, masked, moved) == 2
    assert followed_query(1, masked, after) == 1  # the mask was filled: stay on what filled it
