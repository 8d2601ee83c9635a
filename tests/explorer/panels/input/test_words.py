"""What the input says of a text: remarks."""

from __future__ import annotations

from dataclasses import replace

from explorer.panels.input.words import unknown_remark
from tests.explorer.session import answers


def test_a_text_of_unknown_words_is_remarked_upon() -> None:
    info, ran = answers.loaded().info, answers.ran(framed=True)  # four words
    assert unknown_remark(replace(ran, unknown=2), info) == ""
    said = unknown_remark(replace(ran, unknown=3), info)
    assert said.startswith(f"3 of 4 tokens are unknown to {info.name}'s vocabulary")
    assert "lower-cases" in said
