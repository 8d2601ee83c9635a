"""How a token is written in a sentence or a tooltip."""

from __future__ import annotations

from typing import cast

import pytest
from PySide6.QtGui import QFont, QTextLayout

from attention_explorer.widgets.token_text import (
    apart,
    byte_note,
    in_and_out,
    in_lines,
    isolated,
    piece_note,
    shortened,
)


def test_a_word_of_thousands_of_letters_is_cut():
    assert shortened("x" * 41) == "x" * 40 + "…"
    assert shortened("x" * 40) == "x" * 40


@pytest.mark.parametrize(
    ("label", "note"),
    [
        ("␣Tom", ""),
        ("‹D9›", "\n‹D9›: byte D9 of a character that several tokens share"),
        ("␣‹F0·9F›", "\n‹F0·9F›: bytes F0 9F of a character that several tokens share"),
        ("‹x›", ""),
    ],
)
def test_marks_of_bytes_are_explained(label, note):
    assert byte_note(label) == note


ARABIC = "\N{ARABIC LETTER QAF}\N{ARABIC LETTER TAH}\N{ARABIC LETTER TEH MARBUTA}"
HEBREW = "\N{HEBREW LETTER HET}\N{HEBREW LETTER TAV}"


def places(text: str, *parts: str) -> list[float]:
    """Where each of `parts` begins on the line, by Qt's own layout."""
    layout = QTextLayout(text, QFont("DejaVu Sans", 12))
    layout.beginLayout()
    line = layout.createLine()
    line.setLineWidth(10_000)
    layout.endLayout()
    return [cast("tuple[float, int]", line.cursorToX(text.index(part)))[0] for part in parts]


@pytest.mark.parametrize("word", [ARABIC, HEBREW])
def test_numbers_stay_beside_a_word_that_is_written_from_right_to_left(qapp, word):
    sentence = f"“{word}” 0.51, “{word}” 0.30"
    assert places(sentence, "0.51", "0.30") != sorted(places(sentence, "0.51", "0.30"))  # what is to be mended
    mended = isolated(sentence)
    assert places(mended, "0.51", "0.30") == sorted(places(mended, "0.51", "0.30"))
    assert mended.replace("\u2068", "").replace("\u2069", "") == sentence
    assert isolated(mended) == mended


@pytest.mark.parametrize(("read", "wrote"), [(ARABIC, HEBREW), (ARABIC, "gato"), ("El", ARABIC), ("El", "gato")])
def test_what_went_in_stands_before_what_came_out_in_any_script(qapp, read, wrote):
    sentence = isolated(f"“{in_and_out(read, wrote)}” looks at “cat”: 0.51, “{in_and_out(read, wrote)}” 0.30")
    found = places(sentence, read, "→", wrote, "looks", "cat", "0.51", "0.30")
    assert found[1:2] + found[3:] == sorted(found[1:2] + found[3:])
    assert found[0] < found[1] < found[2]
    assert found[2] < found[3]


def test_the_arrow_alone_is_added_to_words_of_one_direction():
    assert in_and_out("El", "gato") == "El → gato"


def test_a_long_sentence_is_broken_into_lines_for_a_tooltip():
    lines = in_lines("“to” attends to ⟨start⟩. " * 9).splitlines()
    assert len(lines) > 2
    assert max(map(len, lines)) <= 80
    assert in_lines("short") == "short"


def test_other_sentences_are_left_alone():
    for sentence in ("“Tom” 0.51, “Привет” 0.3", "no word at all", ARABIC, "“open"):
        assert isolated(sentence) == sentence


@pytest.mark.parametrize(
    ("piece", "label", "note"),
    [
        ("Ġto", "␣to", " (Ġ: a space)"),
        ("▁to", "␣to", " (▁: a space)"),
        ("ĊĠ", "⏎␣", " (Ġ: a space, Ċ: a line break)"),
        ("##ing", "‿ing", " (##: goes on with the word before it)"),
        ("to", "to", ""),
        ("Ġurnata", "Ġurnata", ""),  # the Maltese letter, in a vocabulary of words
    ],
)
def test_marks_of_a_vocabulary_are_explained(piece, label, note):
    assert piece_note(piece, label) == note


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Asked again, كتاب's own", "Asked again, \u2068كتاب\u2069's own"),
        ("after שלום עולם comes 0.5", "after \u2068שלום עולם\u2069 comes 0.5"),
        ("القط", "القط"),
        ("“القط” 0.5", "“\u2068القط\u2069” 0.5"),
        ("“a” to القط", "“a” to \u2068القط\u2069"),
    ],
)
def test_a_bare_name_in_a_sentence_keeps_its_direction(sentence, expected):
    assert isolated(sentence) == expected
    assert isolated(expected) == expected


def test_a_name_is_kept_whole():
    """With its number and its ending, which are neutral."""
    assert isolated(f"Keep {apart('كتاب 2.attn')} here") == "Keep \u2068كتاب 2.attn\u2069 here"
    assert apart("notes.attn") == "notes.attn"
