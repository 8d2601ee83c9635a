"""Tokens of two texts aligned: by hand, and against the textbook's own recursion for the number of edits."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_models.forward.model import Model
from attention_models.protocol.errors import InputError
from attention_models.protocol.request import Cancelled
from attention_models.protocol.two_runs import AlignedAxis
from attention_models.protocol.values import Token
from attention_models.text import aligning
from attention_models.text.aligning import align

STORY = "Tom and Anna went to the park. Anna gave the ball to"


def of_words(words: list[str]) -> list[Token]:
    """A text of these words, each one token."""
    tokens, start = [], 0
    for i, word in enumerate(words):
        tokens.append(Token(i, word, word, start, start + len(word), label=word))
        start += len(word) + 1
    return tokens


def labels(axis: AlignedAxis, a: list[Token], b: list[Token]) -> list[tuple[str, str]]:
    return [
        ("|".join(t.label for t in a[slice(*place.a)]), "|".join(t.label for t in b[slice(*place.b)]))
        for place in axis.places
    ]


def test_the_same_tokens_stand_for_each_other(story_gpt: Model) -> None:
    axis = align(story_gpt.tokenize(STORY), story_gpt.tokenize(STORY))
    assert axis.by == "place"
    assert axis.pairs == tuple((i, i) for i in range(14))
    assert all(place.same for place in axis.places)


def test_words_are_added_left_out_and_replaced(story_gpt: Model) -> None:
    a = list(story_gpt.tokenize("Tom and Anna went home."))
    b = list(story_gpt.tokenize("Tom and Lily went to the park!"))
    axis = align(a, b)
    assert axis.by == "words"
    assert labels(axis, a, b) == [
        ("⟨start⟩", "⟨start⟩"),
        ("Tom", "Tom"),
        ("␣and", "␣and"),
        ("␣Anna", "␣Lily"),
        ("␣went", "␣went"),
        ("␣home", "␣to"),
        (".", "␣the"),
        ("", "␣park"),
        ("", "!"),
    ]
    assert [place.same for place in axis.places] == [True, True, True, False, True, False, False, False, False]


def test_one_text_cut_by_two_tokenizers(story_gpt: Model, story_bert: Model) -> None:
    text = "Yesterday Tom saw 😀 twice"
    a, b = list(story_gpt.tokenize(text)), list(story_bert.tokenize(text))
    axis = align(a, b)
    assert axis.by == "characters"
    assert labels(axis, a, b) == [
        ("⟨start⟩", "[CLS]"),
        ("Yes|terday", "Yesterday"),
        ("␣Tom", "Tom"),
        ("␣saw", "saw"),
        ("␣", ""),  # a token of white space alone has none that stands for it
        ("‹F0·9F›|‹98›|‹80›", "⟨unk 😀⟩"),
        ("␣twice", "twice"),
        ("", "[SEP]"),
    ]


def test_capitals_make_no_other_text(story_bert: Model, en_es: Model) -> None:
    a, b = list(en_es.tokenize("The Café is old.")), list(story_bert.tokenize("the cafe IS old."))
    axis = align(a, b)
    assert axis.by == "characters"
    assert ("⟨end⟩", "[SEP]") in labels(axis, a, b)
    assert axis.alone_a == ()


def test_a_start_does_not_stand_for_an_end() -> None:
    word = Token(1, "a", "a", 0, 1)
    first, last = (Token(0, "<s>", "", at, at, special=True) for at in (0, 1))
    assert align([first, word], [word, last]).pairs == ((1, 0),)


def test_scripts_without_spaces_are_aligned_by_their_characters() -> None:
    a = [Token(i, c, c, i, i + 1) for i, c in enumerate("我们去公园")]
    b = [Token(i, c, c, i, i + 1) for i, c in enumerate("我去公园")]
    assert align(a, b).pairs == ((0, 0), (2, 1), (3, 2), (4, 3))


WORDS = st.lists(st.sampled_from(["ball", "park", "Tom", "red", "went"]), min_size=1, max_size=9)


@given(WORDS, WORDS)
def test_no_fewer_edits_would_do(left: list[str], right: list[str]) -> None:
    @cache
    def edits(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return i + j
        replaced = edits(i - 1, j - 1) + (left[i - 1] != right[j - 1])
        return min(replaced, edits(i - 1, j) + 1, edits(i, j - 1) + 1)

    axis = align(of_words(left), of_words(right))
    assert sum(not place.same for place in axis.places) == edits(len(left), len(right))
    assert [i for place in axis.places for i in range(*place.a)] == list(range(len(left)))
    assert [j for place in axis.places for j in range(*place.b)] == list(range(len(right)))
    for place in axis.places:
        if place.same:
            assert left[slice(*place.a)] == right[slice(*place.b)]


def pieces(text: str, cuts: set[int]) -> list[Token]:
    """`text`, cut at some of its characters."""
    places = [0, *sorted(cut for cut in cuts if 0 < cut < len(text)), len(text)]
    return [Token(i, text[a:b], text[a:b], a, b) for i, (a, b) in enumerate(pairwise(places))]


@given(st.sets(st.integers(1, 20)), st.sets(st.integers(1, 20)))
def test_places_begin_wherever_both_tokenizers_cut(cuts: set[int], other_cuts: set[int]) -> None:
    text = "internationalization"
    axis = align(pieces(text, cuts), pieces(text, other_cuts))
    both = {cut for cut in cuts & other_cuts if cut < len(text)}
    assert len(axis) == len(both) + 1
    assert axis.alone_a == axis.alone_b == ()
    assert all(place.same for place in axis.places)


def test_texts_that_differ_in_too_many_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aligning, "MOST_CELLS", 30)
    a, b = of_words([f"a{i}" for i in range(6)]), of_words([f"b{i}" for i in range(6)])
    with pytest.raises(InputError, match="differ in 6 and 6 words, too many to say which stands for which"):
        align(a, b)
    align([*a, *b], [*a, *b[:3]])  # what they have in common does not count


def test_aligning_can_be_called_off() -> None:
    with pytest.raises(Cancelled):
        align(of_words(["a", "b"]), of_words(["c", "d"]), lambda: True)
