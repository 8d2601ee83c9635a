"""What the input says of a text: remarks."""

from __future__ import annotations

from dataclasses import replace

from attention_explorer.panels.input.input_sentences import (
    chip,
    padding_remark,
    separator_remark,
    typed_separators,
    unknown_remark,
    word_chip,
)
from attention_models.protocol.values import Token
from tests.explorer.session import answers


def test_a_text_of_unknown_words_is_remarked_upon() -> None:
    info, ran = answers.loaded().info, answers.ran(framed=True)  # four words
    assert unknown_remark(replace(ran, unknown=2), info) == ""
    said = unknown_remark(replace(ran, unknown=3), info)
    assert said.startswith(f"3 of 4 tokens are unknown to {info.name}'s vocabulary")
    assert "lower-cases" in said


def test_so_is_one_whose_characters_are_mostly_in_an_unknown_word() -> None:
    """A molecule written without the spaces that its model's vocabulary needs: few tokens, most of the text."""
    info, ran = answers.loaded().info, answers.ran(text="( Oc1ccccc1C )")
    assert unknown_remark(replace(ran, unknown=1, unknown_characters=5), info) == ""
    said = unknown_remark(replace(ran, unknown=1, unknown_characters=10), info)
    assert said.startswith("10 of 12 characters stand in words that are unknown")


def test_a_chip_of_a_word_names_its_pieces() -> None:
    tokens = (
        Token(id=1, piece="un", text="un", start=0, end=2, label="un"),
        Token(id=2, piece="##able", text="able", start=2, end=6, label="‿able", continues=True),
    )
    word = word_chip(tokens, 3, tag="B-X")
    assert (word.label, word.tag) == ("unable", "B-X")
    assert word.tooltip.startswith("positions 3 to 4: the pieces “un”, “##able”")
    assert word_chip(tokens[:1], 3) == chip(tokens[0], 3)


def token(piece: str, start: int, end: int, segment: int = 0) -> Token:
    return Token(5, piece, piece if start < end else "", start, end, special=piece.startswith("["), segment=segment)


TYPED = (token("[CLS]", 0, 0), token("Tom", 0, 3), token("[SEP]", 4, 9), token("ran", 10, 13), token("[SEP]", 0, 0))


def test_a_typed_separator_is_remarked_upon_where_a_second_text_can_be_given() -> None:
    info = replace(answers.loaded().info, pairs=True)
    assert "“[SEP]” was typed" in separator_remark(TYPED, info)
    assert typed_separators(TYPED, info) == [2]
    assert separator_remark(TYPED, replace(info, pairs=False)) == ""
    assert separator_remark((*TYPED[:2], TYPED[4]), info) == ""  # the template's own
    assert separator_remark((*TYPED, token("Anna", 0, 4, segment=1)), info) == ""  # there is a second text


def test_typed_padding_is_remarked_upon() -> None:
    assert padding_remark(TYPED) == ""
    assert "“[PAD]” was typed" in padding_remark((*TYPED, token("[PAD]", 14, 19)))
    assert padding_remark((*TYPED, token("[PAD]", 0, 0))) == ""  # of a batch


def test_a_chip_says_which_text_it_is_of() -> None:
    chips = [chip(token("Tom", 0, 3, segment=segment), 1, in_pair=True) for segment in (0, 1, 2)]
    assert [made.turn for made in chips] == ["first", "second", ""]
    assert ["of text A" in made.tooltip for made in chips] == [True, False, False]
    assert "of text B" in chips[1].tooltip
    assert chip(token("Tom", 0, 3), 1).turn == ""
