from __future__ import annotations

from dataclasses import replace

import pytest

from attention_explorer.session.defaults import ENOUGH, default_selection, followed_query, goes_on, last_token
from attention_explorer.session.examples import examples_of
from attention_explorer.session.intents import SelectCell, SelectHead, SetText, ShowExample
from attention_explorer.session.state import Document, Selection, State
from attention_models.protocol.head import AttentionPeak, AttentionPeaks
from attention_models.protocol.running import Ran
from attention_models.protocol.values import SiteRef, Token
from tests.explorer.session import answers
from tests.explorer.session.answers import after
from tests.models.asking import forward, opened


def looking(ran: Ran, query: int, **heads: tuple[int, float]) -> Ran:
    """`ran` with what some heads give most: d5_3=(key, weight). All others give 0.01 to key 0."""
    of_heads = tuple(
        tuple(AttentionPeak(*heads.get(f"d{site.layer}_{head}", (0, 0.01))) for head in range(site.heads))
        for site in ran.sites
    )
    return replace(ran, looks=AttentionPeaks(query, of_heads))


def test_story_gpt_starts_with_the_head_that_finds_the_name_in_its_example():
    selection = default_selection(answers.ran(text="Tom and Anna went"), "story-gpt", is_example=True)
    assert selection == Selection(site=SiteRef("decoder", 5), head=5, query=3, key=0)


def test_a_listed_head_that_did_not_run_gives_way_to_the_rule():
    assert default_selection(answers.ran(layers=4), "story-gpt").site == SiteRef("decoder", 3)


@pytest.mark.parametrize(("layers", "layer"), [(1, 0), (2, 1), (6, 4), (12, 8), (48, 31)])
def test_where_no_head_gives_a_word_anything_it_is_at_two_thirds_of_the_stack(layers, layer):
    selection = default_selection(answers.ran(layers=layers, stack="encoder"), "somebody's")
    assert (selection.site, selection.head) == (SiteRef("encoder", layer), 0)


def test_a_recurrent_model_starts_at_its_one_cross_head_on_a_letter_of_the_month():
    ran = answers.ran(text="t h u r s d a y , _ 5 _ m a r c h", layers=1, heads=1, stack="cross")
    selection = default_selection(ran, "dates-bahdanau", is_example=True)
    assert selection == Selection(site=SiteRef("cross", 0), head=0, query=6, key=14)
    assert default_selection(ran, "somebody's").site == SiteRef("cross", 0)


def test_a_recurrent_translator_starts_where_the_adjective_waits():
    ran = answers.ran(text="he is reading an old book . end extra", layers=1, heads=1, stack="cross")
    selection = default_selection(ran, "recurrent-en-es-bahdanau", is_example=True)
    assert selection == Selection(SiteRef("cross", 0), head=0, query=6, key=4)


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


# --------------------------------------------------------------------------- a head that does something there


def test_the_head_that_gives_a_word_most_is_selected_with_that_cell():
    ran = looking(answers.ran(), 3, d2_1=(1, 0.4), d6_7=(2, 0.6), d0_0=(1, 0.99))  # in layer 0 nothing is known yet
    assert default_selection(ran) == Selection(SiteRef("decoder", 6), 7, query=3, key=2)


def test_a_model_of_one_layer_has_no_later_ones():
    ran = looking(answers.ran(layers=1), 3, d0_4=(1, 0.5))
    assert default_selection(ran) == Selection(SiteRef("decoder", 0), 4, query=3, key=1)


def test_of_equal_heads_it_is_the_one_that_reaches_further_and_then_the_later_one():
    ran = looking(answers.ran(), 3, d2_1=(0, 0.5), d6_7=(1, 0.5), d4_1=(0, 0.5), d4_3=(0, 0.5))
    assert default_selection(ran) == Selection(SiteRef("decoder", 4), 1, query=3, key=0)


def test_the_listed_head_comes_first_where_it_does_something():
    ran = looking(answers.ran(), 3, d6_7=(2, 0.9), d5_5=(0, ENOUGH))
    assert default_selection(ran, "story-gpt") == Selection(SiteRef("decoder", 5), 5, query=3, key=0)
    less = looking(answers.ran(), 3, d5_5=(0, ENOUGH - 0.01), d6_7=(2, 0.9))
    assert default_selection(less, "story-gpt") == Selection(SiteRef("decoder", 6), 7, query=3, key=2)


def a_new_text(state: State, text: str = "She saw a dog", **heads: tuple[int, float]) -> State:
    return after(after(state, SetText(text)), looking(answers.ran(2, text), 3, **(heads or {"d6_7": (2, 0.9)})))


def test_a_new_text_moves_the_selection_and_one_that_was_chosen_stays(running: State) -> None:
    assert a_new_text(running).selection == Selection(SiteRef("decoder", 6), 7, query=3, key=2)
    chosen = after(running, SelectHead(SiteRef("decoder", 7), 1))
    state = a_new_text(chosen)
    assert (state.selection.site, state.selection.head) == (SiteRef("decoder", 7), 1)
    cell = a_new_text(after(running, SelectCell(2, 1)))
    assert (cell.selection.site, cell.selection.query, cell.selection.key) == (SiteRef("decoder", 5), 2, 1)


def test_after_an_example_it_is_the_programs_again(running: State) -> None:
    chosen = after(running, SelectHead(SiteRef("decoder", 7), 1), ShowExample(examples_of("story-gpt")[0]))
    shown = after(chosen, answers.ran(2, chosen.document.text))
    assert shown.selection == Selection(SiteRef("decoder", 5), 5, query=11, key=0)
    text = "He has no hat"
    state = after(shown, SetText(text))
    state = after(state, looking(answers.ran(3, text), 3, d6_7=(2, 0.9)))
    assert state.selection == Selection(SiteRef("decoder", 6), 7, query=3, key=2)


def test_tokens_that_the_model_writes_into_a_text_make_it_no_new_one(running: State) -> None:
    wrote = after(running, *answers.stepping())
    ran = looking(answers.ran(2, wrote.document.text), 4, d6_7=(2, 0.9))
    state = after(wrote, replace(ran, request=replace(ran.request, inputs=wrote.inputs)))
    assert (state.selection.site, state.selection.head, state.selection.query) == (SiteRef("decoder", 5), 5, 4)


FINAL = "Tom and Anna went to the park"


def head_of(text: str) -> dict[str, tuple[int, float]]:
    """Which head does something in a text, made up: another one for each."""
    return {f"d{1 + len(text) % 7}_{len(text) % 5}": (1, 0.9)}


@pytest.mark.parametrize(
    "typed", [(), ("Tom",), ("Tom", "Tom and", "Tom and Anna went to"), ("She saw",), (FINAL[:-1],)]
)
def test_while_one_types_the_head_is_that_of_the_final_text_whatever_ran_on_the_way(running: State, typed) -> None:
    state = running
    for number, text in enumerate((*typed, FINAL), start=2):
        state = after(state, SetText(text))
        state = after(state, looking(answers.ran(number, text), text.count(" "), **head_of(text)))
    ((name, (key, _)),) = head_of(FINAL).items()
    site, head = SiteRef("decoder", int(name[1])), int(name[3])
    assert state.selection == Selection(site, head, query=FINAL.count(" "), key=key)


def test_what_goes_on_is_the_same_text():
    def of(text: str, masks: tuple[int, ...] = ()) -> Ran:
        return replace(answers.ran(text=text), masks=masks)

    assert goes_on(of("a b"), of("a b c"))
    assert not goes_on(of("a b"), of("a c d"))
    assert not goes_on(of("a b"), of("a"))
    assert goes_on(of("a [MASK] c", (1,)), of("a b c"))
    assert not goes_on(of("a [MASK] c", (1,)), of("a b d"))
    source = (Token(id=1, piece="x", text="x", start=0, end=1),)
    assert goes_on(replace(of("a"), source=source), replace(of("b"), source=source))
    assert not goes_on(replace(of("a"), source=source), of("a"))


STORIES = (
    "The animal didn't cross the street because it was too tired",
    "Once upon a time there was a little girl named Lily. She loved to",
    "The cat sat on the",
    'Ben had a red car. Mia had a blue car. Ben said, "This is my',
    'Mom said, "Do not touch the hot stove!" But Tim',
    "One day, the dog ran into the forest. The dog saw a big",
    "It was a rainy day and Sara wanted to play outside, but her mom said",
    "The quick brown fox jumps over the lazy",
    "Jack climbed the tall tree. At the top of the tree he saw a",
    "She was very sad because she lost her favorite",
)
ENGLISH = (
    "I do not like the red wine.",
    "He wants to buy a new car.",
    "The girls are tired.",
    "Good morning.",
    "My brother lives in a big city.",
    "She gave me an interesting book.",
    "We are going to the beach tomorrow.",
    "The old man opened the door.",
)
TEXTS = {
    "story-gpt": STORIES,
    "story-bert": ("Tom [MASK] to the park.", "The dog barked at the [MASK] in the tree.", "The cat is black."),
    "en-es": ENGLISH,
    "recurrent-en-es-bahdanau": ("She has a new car.", "I want to go home.", "I like red wine."),
    "dates-luong": ("5/6/2001", "October 3 1970", "12 May 1999"),
}


@pytest.mark.short("story-gpt")
@pytest.mark.parametrize("checkpoint", TEXTS)
def test_on_the_shipped_models_it_is_never_a_sink(checkpoint: str) -> None:
    engine = opened(checkpoint)
    for ticket, text in enumerate(TEXTS[checkpoint], start=2):
        ran = forward(engine, text, ticket)
        state = State(Document(checkpoint=checkpoint, text=text))
        chosen = after(state, answers.loaded(checkpoint), ran).selection
        assert chosen.site is not None
        run = engine.workspace.run
        assert run is not None
        row = run.trace.weights(chosen.site, chosen.head)[chosen.query]
        keys = ran.source or ran.tokens
        assert row[chosen.key] >= ENOUGH, text
        assert not keys[chosen.key].special
        if not ran.source:
            assert chosen.key not in (0, chosen.query)
            assert row[0] < row[chosen.key]
