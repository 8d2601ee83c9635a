"""The whole window with en-es and the real engine: two texts, three stacks, an alignment."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from attention_explorer.panels.alignment.panel import AlignmentPanel
from attention_explorer.panels.all_heads.panel import HeadAtlasPanel
from attention_explorer.panels.decoding.panel import DecodingPanel
from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.session.intents import OpenCheckpoint, RestoreDocument, SelectHead, SetText, SetView, Show
from attention_explorer.session.state import Document, Selection
from attention_explorer.window.window import MainWindow
from attention_models.protocol.alignment import AlignmentView
from attention_models.protocol.head import HeadView
from attention_models.protocol.values import SiteRef
from tests.explorer.real_window import click, opened_window, panel_of, paste, press, settle, wait_until

EXAMPLE = "The black cat is sleeping on the table."
START = Document("en-es", EXAMPLE, Selection(SiteRef("cross", 2), head=4, query=1, key=2))


@pytest.fixture(scope="module")
def opened(qapp) -> Iterator[MainWindow]:
    with opened_window("en-es", EXAMPLE) as window:
        assert window.session.state.document == START
        yield window


@pytest.fixture
def window(opened: MainWindow) -> MainWindow:
    opened.session.dispatch(RestoreDocument(START))
    opened.session.dispatch(Show(None))
    opened.dock_host.docks["next"].raise_()
    settle(opened)
    return opened


def raised(window: MainWindow, name: str) -> None:
    window.dock_host.docks[name].raise_()
    settle(window)


def test_it_starts_where_the_word_order_turns(window):
    assert window.input.target.text.text() == "El gato negro está durmiendo sobre la mesa."
    assert panel_of(window, HeadMapPanel).map.readout(1, 2).startswith("“El → gato” looks at “cat”: 0.99")
    assert panel_of(window, HeadAtlasPanel).stacks.current == 2
    assert window.input.caption.text().endswith("from “El → gato”")


def test_the_alignment_is_that_of_the_map(window):
    raised(window, "alignment")
    panel = panel_of(window, AlignmentPanel)
    assert panel.sentence.text() == (
        "The weights with which the model wrote “gato”: 99 % on “cat”. It was 94.0 % likely."
    )
    state = window.session.state
    np.testing.assert_allclose(state.results.of(AlignmentView).weights, state.results.of(HeadView).weights, atol=1e-6)
    click(panel.modes, panel.modes.button(2).geometry().center())
    QTest.mouseClick(panel.modes.button(2), Qt.MouseButton.LeftButton)
    settle(window)
    assert window.session.state.results.of(AlignmentView).description == "mean over all 32 cross-attention heads"
    panel.show_mode(0)


@pytest.mark.parametrize("text", [EXAMPLE, "The girls are tired."])
@pytest.mark.parametrize("words", [False, True], ids=["pieces", "words"])
def test_rows_of_the_map_and_of_the_alignment_are_the_same(window, text, words):
    """Of the same names, in the same order, with the same weights; pieces of “cansadas” are merged alike."""
    raised(window, "alignment")
    window.session.dispatch(SetText(text))
    window.session.dispatch(SetView("words", words))
    settle(window)
    window.session.dispatch(SelectHead(SiteRef("cross", 2), 4))
    settle(window)
    state, ribbons = window.session.state, panel_of(window, AlignmentPanel).ribbons
    rows, columns = panel_of(window, HeadMapPanel).map.labels
    assert (ribbons.words(1), ribbons.words(0)) == (rows, columns)
    if text == EXAMPLE:
        assert rows[:4] == ("⟨start⟩ → El", "El → gato", "gato → negro", "negro → está")
    elif words:
        assert rows == (
            "⟨start⟩ → Las",
            "Las → niñas",
            "niñas → están",
            "están → cansadas",
            "cansadas → .",
            ". → ⟨next⟩",
        )
    view, head = state.results.of(AlignmentView), state.results.of(HeadView)
    shown = head.by_word.weights if words else head.weights
    np.testing.assert_allclose(view.weights, shown, atol=1e-6)
    window.session.dispatch(SetView("words", False))


def test_a_forced_target_is_stepped_word_by_word_and_undone(window):
    target = window.input.target.text
    target.setFocus()
    press(target, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    press(target, Qt.Key.Key_Delete)
    settle(window)
    assert [token.label for token in window.session.state.ran.tokens] == ["⟨start⟩"]
    for written in ("El", "El gato"):
        window.input.step()
        settle(window)
        assert target.text() == written
    assert len(window.session.state.ran.tokens) == 3
    window.session.undo()
    settle(window)
    assert target.text() == "El"
    QTest.keyClicks(target, " perro")
    settle(window)
    assert [token.word for token in window.session.state.ran.tokens][:3] == ["⟨start⟩", "El", "perro"]
    QTest.mouseClick(window.input.target.writes_button, Qt.MouseButton.LeftButton)
    settle(window)
    assert target.text() == "El gato negro está durmiendo sobre la mesa."


@pytest.mark.parametrize("site", [SiteRef("encoder", 1), SiteRef("decoder", 1), SiteRef("cross", 1)])
@pytest.mark.parametrize("panel", ["next", "alignment", "cell", "masks", "positions", "lookup"])
def test_every_panel_shows_every_stack(window, site, panel):
    window.session.dispatch(SelectHead(site, 2))
    raised(window, panel)
    texts = [label.text() for label in window.dock_host.docks[panel].findChildren(QLabel) if label.isVisible()]
    assert window.session.state.notice is None
    assert not any("None" in text or "nan" in text for text in texts)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("", "The input is empty"), ("word " * 300, "This text is 302 tokens long; en-es takes 128")],
)
def test_a_source_that_can_not_run_leaves_all_as_it_was(window, text, sentence):
    before = window.session.state.ran
    window.input.text.selectAll()
    window.input.text.insertPlainText(text) if text else press(window.input.text, Qt.Key.Key_Delete)
    settle(window)
    assert window.session.state.notice.text.startswith(sentence)
    assert window.session.state.ran is before
    assert window.input.target.text.text() == "El gato negro está durmiendo sobre la mesa."


def test_a_target_that_is_too_long_is_cut_by_the_notices_button(window):
    window.input.target.text.selectAll()
    window.input.target.text.insertPlainText("gato " * 200)
    settle(window)
    notice = window.session.state.notice
    assert notice.text.startswith("The target is 201 tokens long")
    window.notice_bar.action_triggered.emit()
    settle(window)
    assert window.session.state.notice is None
    assert len(window.session.state.ran.tokens) == 128
    assert window.session.state.document.text == EXAMPLE


def test_a_model_of_one_text_takes_the_target_away_and_alignment_brings_it_back(window):
    window.session.dispatch(OpenCheckpoint("story-gpt"))
    settle(window)
    assert not window.input.target.text.isVisible()
    raised(window, "alignment")
    QTest.mouseClick(panel_of(window, AlignmentPanel).pages.button, Qt.MouseButton.LeftButton)
    settle(window)
    assert window.session.state.document == START
    assert window.input.target.text.isVisible()


def strategy_of(panel: DecodingPanel) -> str:
    return panel.view.knobs.strategy


def test_a_translator_begins_with_a_beam_search_until_a_person_chooses(window):
    raised(window, "decoding")
    decode = panel_of(window, DecodingPanel)
    assert strategy_of(decode) == "beam"
    click(decode.view.transport.step_button, decode.view.transport.step_button.rect().center())
    wait_until(lambda: window.session.state.pending_step is None and not window.bridge.busy)
    assert decode.view.texts.list.rows[0].text.startswith("El")
    assert (
        decode.view.texts.heading.text()
        == "Beams, the best first by log-probability / the length, the number beside each. Pick one to look at:"
    )
    window.session.dispatch(OpenCheckpoint("story-gpt"))
    settle(window)
    assert strategy_of(decode) == "greedy"
    click(decode.view.knobs.strategy_buttons.button(1), decode.view.knobs.strategy_buttons.button(1).rect().center())
    window.session.dispatch(OpenCheckpoint("en-es"))
    settle(window)
    assert strategy_of(decode) == "sample"


def test_a_source_of_blanks_is_told_to_be_empty(window):
    paste(window, "   ")
    settle(window)
    assert window.session.state.notice.text == "The input is empty. Type a sentence for the model to read."
    assert window.input.target.text.text() == "El gato negro está durmiendo sobre la mesa."
