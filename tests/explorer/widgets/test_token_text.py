"""How a token is written in a sentence or a tooltip."""

from __future__ import annotations

import pytest

from explorer.widgets.token_text import byte_note, shortened


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
