"""The pages of the Decode panel that show attention, and the key/value cache."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from attention_explorer.panels.decoding.cache_page import cache_text
from attention_explorer.panels.decoding.player_view import ATTENTION, CACHE
from attention_explorer.panels.decoding.situation import log_text
from attention_explorer.session.intents import (
    SelectHead,
)
from attention_models.files.memory import in_bytes
from attention_models.protocol.decoding import DecodeRowsView
from attention_models.protocol.values import SiteRef
from tests.explorer.panels.decoding.answered import press, steps


def test_attention_grows_by_a_row_a_step(qtbot, session, panel):
    press(qtbot, session, panel.view.tabs.button(ATTENTION))
    assert panel.view.attention.note.text() == "Press Step: a row for each token appears here."
    steps(qtbot, session, panel, 1)
    assert panel.view.attention.note.text().startswith("The last row is where the head looked")
    first = session.state.results.of(DecodeRowsView)
    steps(qtbot, session, panel, 1)
    second = session.state.results.of(DecodeRowsView)
    assert second.weights.shape[0] == first.weights.shape[0] + 1
    np.testing.assert_allclose(second.weights.sum(axis=1), 1, atol=1e-5)
    session.dispatch(SelectHead(SiteRef("decoder", 2), 1))
    session.answer()
    assert session.state.results.of(DecodeRowsView).request.site == SiteRef("decoder", 2)


def test_the_cache_is_told_in_tokens_and_bytes(qtbot, session, panel):
    steps(qtbot, session, panel, 2)
    press(qtbot, session, panel.view.tabs.button(CACHE))
    assert [(bar.reused, bar.computed) for bar in panel.view.cache.bars.bars] == [(14, 1)] * 8
    assert panel.view.cache.words.text().startswith(in_bytes(8 * 15 * 2 * 8 * 32 * 4))
    assert panel.view.cache.words.text().endswith(
        "This step reused those of 14 tokens and computed those of 1 token, in each of 8 layers."
    )


def test_the_picture_says_which_rows_it_has(qtbot, session, panel):
    steps(qtbot, session, panel, 2)
    press(qtbot, session, panel.view.tabs.button(ATTENTION))
    view, page = session.state.results.of(DecodeRowsView), panel.view.attention
    last = "The last row is where the head looked to choose this step's token. "
    assert page.note.text() == last + "14 rows of the prompt and 1 of written tokens, one a step."

    def note(**changes) -> str:
        page.show_rows(replace(view, **changes), "Layer 5, head 5", "")
        return str(page.note.text())

    some = {"weights": view.weights[-3:], "masked": view.masked[-3:], "queries": view.queries[-3:], "first": 12}
    assert (
        note(**some, chose=2, prompt=2) == last + "The last 2 rows of the prompt and 1 of written tokens, one a step."
    )
    assert note(**some, chose=2, prompt=3, from_steps=False) == last + "The last 3 rows, from one pass over the text."
    framed = f"The framed row “{view.queries[-2]}” is where the head looked to choose this step's token. "
    assert note(**some, chose=1, prompt=3, from_steps=False) == framed + "3 rows about it, from one pass over the text."
    assert page.map.selection[0] == 1
    assert note(chose=-1, from_steps=False) == "All rows from one pass over the text."
    assert page.map.selection == (-1, -1)


def test_layers_that_look_through_a_window_are_told_apart(qtbot, session, panel):
    steps(qtbot, session, panel, 2)
    view = session.state.results.decoded
    full, window = view.cache[0], replace(view.cache[0], reused=7, computed=1, stored=7)
    text = cache_text(replace(view, cache=(window, full, window)))
    assert text.endswith(
        "This step computed those of 1 token and reused those of 14 tokens in 1 layer and of 7 in 2. "
        "A layer that looks through a sliding window keeps the last 7."
    )


def test_numbers_are_written_for_people():
    assert log_text(-1.234, "nats") == "−1.23"
    assert log_text(-0.004, "nats") == "−0.004"
    assert log_text(-0.0000212, "nats") == "−2e-5"
    assert log_text(-math.log(2), "bits") == "−1.00"
    assert log_text(-math.log(2), "nats") == "−0.69"
