"""What the input says of a text: remarks."""

from __future__ import annotations

from dataclasses import replace

from explorer.panels.input.words import chip, unknown_remark, word_chip
from models.protocol.values import Token
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
