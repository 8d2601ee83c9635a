"""The permutation property: without positions a bidirectional model's outputs move along with the words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_models import run
from attention_models.forward.model import Model
from attention_models.protocol.chat import Pair
from attention_models.protocol.interventions import Intervention, Mask, Positions
from attention_models.protocol.positions import Moved, ShuffleRequest, ShuffleView
from attention_models.protocol.request import Cancelled, never
from attention_models.views.order import new_order, shuffle_view, words_of

TEXT = "Tom and Anna went to the park."


def shuffled(model: Model, text: str = TEXT, seed: int = 0) -> ShuffleView:
    return shuffle_view(ShuffleRequest(run=1, seed=seed), model, run(model, text), text, never)


@pytest.mark.parametrize("seed", [0, 1, 7])
@pytest.mark.parametrize("text", [TEXT, "dog bites man"])
def test_bert_without_positions_sees_a_set(story_bert, text, seed):
    view = shuffled(story_bert, text, seed)
    assert view.off is not None
    assert view.off.largest < 1e-5
    assert view.on.largest > 1e-2
    assert view.off_open is None
    assert not view.causal


@pytest.mark.parametrize("seed", [0, 3])
def test_a_causal_mask_tells_order_until_it_is_opened(story_gpt, seed):
    view = shuffled(story_gpt, seed=seed)
    assert view.causal
    assert view.off is not None
    assert view.off_open is not None
    assert view.off.largest > 1e-2
    assert view.off_open.largest < 1e-4
    assert view.on.largest > 1e-2


@pytest.mark.parametrize("kind", ["t5", "marian"])
def test_encoders_of_two_stacks(tiny_model, kind):
    view = shuffled(tiny_model(kind))
    assert view.measured == "hidden states"
    assert view.off is not None
    assert view.off.largest < 1e-4 < view.on.largest


def test_rotations_are_all_that_tells_order_behind_an_open_mask(tiny_model):
    view = shuffled(tiny_model("llama"))
    assert view.off_open is not None
    assert view.off_open.largest < 1e-4 < view.on.largest


def test_en_es(en_es):
    view = shuffled(en_es)
    assert view.off is not None
    assert view.off.largest < 1e-5
    assert view.on.largest > 1e-2


def test_figures_are_those_of_two_runs(story_bert):
    view = shuffled(story_bert, seed=2)
    ids = [token.id for token in run(story_bert, TEXT).tokens]
    moved = [ids[place] for place in view.order]
    cases: list[tuple[list[Positions], Moved | None]] = [([], view.on), ([Positions("off")], view.off)]
    for edits, shown in cases:
        written = run(story_bert, ids, interventions=edits).logits.astype(np.float64)
        other = run(story_bert, moved, interventions=edits).logits.astype(np.float64)
        assert shown is not None
        expected = [np.abs(other[new] - written[old]).max() for new, old in enumerate(view.order)]
        assert shown.distances == pytest.approx(expected, abs=1e-6)


def test_the_open_mask_is_the_intervention(story_gpt):
    view = shuffled(story_gpt)
    ids = [token.id for token in run(story_gpt, TEXT).tokens]
    edits: list[Intervention] = [Positions("off"), Mask("none")]
    written, other = (
        run(story_gpt, some, interventions=edits).logits for some in (ids, [ids[place] for place in view.order])
    )
    assert view.off_open is not None
    assert view.off_open.largest == pytest.approx(np.abs(other - written[list(view.order)]).max(), abs=1e-6)


def test_man_bites_dog(story_bert):
    view = shuffled(story_bert, "dog bites man")
    assert [view.words[place] for place in view.order] == ["[CLS]", "man", "bite", "‿s", "dog", "[SEP]"]
    assert view.fixed == (True, False, False, False, False, True)


@pytest.mark.parametrize("text", ["dog", "a"])
def test_a_single_word_has_no_other_order(story_bert, text):
    view = shuffled(story_bert, text)
    assert view.note == "A single word has no other order. Type a second one."
    assert view.order == tuple(range(len(view.words)))
    assert not view.on.distances.any()


def test_work_can_be_called_off(story_bert):
    trace = run(story_bert, TEXT)
    with pytest.raises(Cancelled):
        shuffle_view(ShuffleRequest(run=1), story_bert, trace, TEXT, lambda: True)


def test_pieces_of_a_word_stay_together(tiny_model):
    text = "walking talking  park"
    for kind in ("bert", "gpt2", "t5"):
        model = tiny_model(kind)
        trace = run(model, text)
        tokens = trace.source or trace.tokens
        words = words_of(tokens, text)
        assert ["".join(tokens[i].text for i in word).strip() for word in words] == ["walking", "talking", "park"]


@given(sizes=st.lists(st.integers(1, 4), min_size=0, max_size=9), seed=st.integers(0, 50), first=st.integers(0, 2))
def test_an_order_is_a_permutation_that_leaves_the_rest(sizes, seed, first):
    words, place = [], first
    for size in sizes:
        words.append(list(range(place, place + size)))
        place += size
    order = new_order(words, place + 1, seed)
    assert sorted(order) == list(range(place + 1))
    assert order[:first] == list(range(first))
    assert order[-1] == place
    assert (order == sorted(order)) == (len(words) < 2)
    assert order == new_order(words, place + 1, seed)


def test_words_of_a_pair_stay_in_their_texts(story_bert):
    trace = run(story_bert, ("Tom went home.", "Anna has a ball."))
    pair = Pair("Tom went home.", "Anna has a ball.")
    view = shuffle_view(ShuffleRequest(run=1, seed=3), story_bert, trace, pair, never)
    assert "Remove the second text" in view.note
    assert view.order == tuple(range(len(trace.tokens)))
    assert view.on.largest == 0
