"""Which blocks a map has, and what they are called."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attention_explorer.panels.head.panel import BlockBox, bands_of, cells_of
from attention_explorer.session.view_options import Block
from attention_explorer.widgets.heat_map.bands import Band, Bands
from attention_models.protocol.values import Token
from attention_models.protocol.word_spans import Words
from tests.explorer.session import answers

A, B = Band("A", range(3)), Band("B", range(3, 5))
BOTH = Bands((A, B), (A, B))


def of(*segments: int) -> Bands:
    tokens = tuple(Token(i, "x", "x", 0, 1, segment=segment) for i, segment in enumerate(segments))
    ran = answers.ran()
    site = replace(ran.sites[0], queries=len(tokens), keys=len(tokens))
    return bands_of(replace(ran, tokens=tokens, sites=(site,)), site)


def test_texts_are_told_apart_by_their_segments() -> None:
    assert of(0, 0, 0, 1, 1) == BOTH
    assert of(0, 0, 0) == Bands()
    assert of(0, 0, 0, 1, 1, 2) == BOTH  # XLNet's last token is of neither


def test_blocks_of_a_map_of_words_are_counted_in_words() -> None:
    tokens = tuple(Token(i, "x", "x", 0, 1, segment=i // 3) for i in range(5))
    ran = answers.ran()
    site = replace(ran.sites[0], queries=5, keys=5)
    words = Words((0, 1, 3), 5)
    assert bands_of(replace(ran, tokens=tokens, sites=(site,)), site, (words, words)) == Bands(
        *2 * ((Band("A", range(2)), Band("B", range(2, 3))),)
    )


def test_only_the_source_of_an_encoder_decoder_model_is_of_two_texts() -> None:
    ran = answers.ran()
    source = tuple(Token(i, "x", "x", 0, 1, segment=i // 3) for i in range(5))
    cross = replace(ran.sites[0], stack="cross", queries=len(ran.tokens), keys=5)
    assert bands_of(replace(ran, source=source), cross) == Bands((), (A, B))


@pytest.mark.parametrize(
    ("block", "cells"),
    [("all", None), ("ab", (range(3), range(3, 5))), ("ba", (range(3, 5), range(3))), ("bb", (range(3, 5),) * 2)],
)
def test_cells_of_a_block(block: Block, cells: tuple[range, range] | None) -> None:
    assert cells_of(BOTH, block, 5, 5) == cells
    assert cells_of(Bands(), block, 5, 5) is None


def test_an_axis_of_one_text_is_shown_whole() -> None:
    assert cells_of(Bands((), (A, B)), "ab", 7, 5) == (range(7), range(3, 5))


def test_what_can_be_chosen(qtbot) -> None:
    box = BlockBox()
    qtbot.addWidget(box)
    box.show_blocks(BOTH, "ab")
    assert [box.itemText(i) for i in range(box.count())] == ["All blocks", "A → A", "A → B", "B → A", "B → B"]
    assert (box.currentText(), box.currentData()) == ("A → B", "ab")
    box.show_blocks(Bands((), (A, B)), "bb")
    assert [box.itemText(i) for i in range(box.count())] == ["All blocks", "→ A", "→ B"]
    assert box.currentText() == "→ B"
    box.show_blocks(Bands(), "all")
    assert box.isHidden()
