"""The alignment panel: which weights it asks for, what it says of them, and what its words select."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from attention_explorer.panels.alignment.panel import ALL, LAYER, AlignmentPanel, sentence, words
from attention_explorer.panels.selected_head import NEXT
from attention_explorer.session.hover import NOTHING, Pointed
from attention_explorer.session.intents import SelectCell, SelectHead, SelectQuery, SetView, UseWritten
from attention_explorer.session.state import State
from attention_models.protocol.alignment import AlignmentRequest
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.values import SiteRef
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown
from tests.explorer.widgets.pointer import move_pointer

CROSS = SiteRef("cross", 1)
WEIGHTS = np.array([[0.9, 0.06, 0.04], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]], np.float32)  # (El, gato, next) x source


@pytest.fixture
def session() -> SilentSession:
    session = SilentSession(answers.after(answers.TRANSLATING, answers.translator(), answers.translation()))
    session.dispatch(SelectHead(CROSS, 3))
    session.dispatch(SelectCell(1, 1))
    return session


@pytest.fixture
def panel(qtbot, session) -> AlignmentPanel:
    panel = shown(qtbot, AlignmentPanel, session)
    session.arrive(answers.alignment_view(WEIGHTS, CROSS, 3))
    return panel


def test_it_asks_for_one_head_its_layer_or_all_of_them(panel, session, qtbot):
    assert session.asked[-1] == AlignmentRequest(run=1, site=CROSS, head=3)
    assert not panel.is_waiting()
    qtbot.mouseClick(panel.modes.button(LAYER), Qt.MouseButton.LeftButton)
    assert session.asked[-1] == AlignmentRequest(run=1, site=CROSS)
    qtbot.mouseClick(panel.modes.button(ALL), Qt.MouseButton.LeftButton)
    assert session.asked[-1] == AlignmentRequest(run=1)


def test_the_row_before_a_word_is_the_one_that_wrote_it(panel, session):
    assert words(session.state.ran) == (["The", "cat", "⟨end⟩"], ["El", "gato", NEXT])
    assert panel.sentence.text() == (
        "The weights with which the model wrote “gato”: 80 % on “cat”, 10 % on “The”, 10 % on “⟨end⟩”. "
        "It was 50.0 % likely."
    )
    assert panel.table.accessibleDescription() == (
        "⟨start⟩ → El 90.0 % 0.90, El → gato 50.0 % 0.80, gato → ⟨next⟩ 0.80"
    )
    assert panel.ribbons.accessibleDescription() == (
        "⟨start⟩ → El from The 0.90, El → gato from cat 0.80, gato → ⟨next⟩ from ⟨end⟩ 0.80"
    )


def test_it_says_that_weights_are_no_reason(panel):
    assert panel.reading.isVisible()
    assert "not why it chose it" in panel.reading.text()


def test_words_select_the_query_and_the_key(panel, session):
    QTest.mouseClick(panel.ribbons, Qt.MouseButton.LeftButton, pos=panel.ribbons.word_rect(1, 2).center().toPoint())
    QTest.mouseClick(panel.ribbons, Qt.MouseButton.LeftButton, pos=panel.ribbons.word_rect(0, 0).center().toPoint())
    assert (session.state.selection.query, session.state.selection.key) == (2, 0)
    assert panel.sentence.text().startswith("The weights with which the model writes what comes next: 80 % on “⟨end⟩”")
    assert "likely" not in panel.sentence.text()  # nothing is written there yet
    QTest.mouseClick(panel.table, Qt.MouseButton.LeftButton, pos=panel.table.cell_rect(1).center().toPoint())
    assert (session.state.selection.query, session.state.selection.key) == (1, 1)


def test_the_pointer_is_shared_in_both_directions(panel):
    move_pointer(panel.ribbons, panel.ribbons.word_rect(1, 1).center().toPoint())
    assert panel.hover.pointed == Pointed(query=1)
    panel.hover.point(Pointed(query=0, key=1))
    assert panel.ribbons.ribbons() == [(0, 1)]
    panel.hover.point(NOTHING)
    assert len(panel.ribbons.ribbons()) == int((WEIGHTS >= 0.02).sum())


def test_a_head_of_another_stack_leaves_only_the_mean_and_says_so(panel, session):
    assert not panel.note.isVisible()
    session.dispatch(SelectHead(SiteRef("encoder", 0), 0))
    assert session.asked[-1] == AlignmentRequest(run=1)
    assert panel.note.isVisible()
    assert [panel.modes.button(i).isEnabled() for i in range(3)] == [False, False, True]
    session.arrive(answers.alignment_view(WEIGHTS))
    panel.hover.point(Pointed(query=0, key=1))  # two tokens of the encoder
    assert len(panel.ribbons.ribbons()) == int((WEIGHTS >= 0.02).sum())
    QTest.mouseClick(panel.ribbons, Qt.MouseButton.LeftButton, pos=panel.ribbons.word_rect(1, 1).center().toPoint())
    assert session.state.selection.site is not None
    assert session.state.selection.site.stack == "cross"
    assert session.state.selection.query == 1
    assert not panel.is_waiting()  # the mean stays on screen


def test_a_model_of_one_text_is_told_what_to_open(qtbot):
    session = SilentSession(answers.after(State(), answers.loaded(), answers.ran()))
    panel = shown(qtbot, AlignmentPanel, session)
    assert session.asked == []
    assert panel.pages.reason.text().startswith("This model reads one text")
    assert panel.pages.reason.isVisible()
    assert not panel.ribbons.isVisible()
    qtbot.mouseClick(panel.pages.button, Qt.MouseButton.LeftButton)
    assert session.asked == [LoadRequest(reference="en-es")]
    assert not panel.pages.button.isEnabled()


def test_a_model_of_two_texts_without_attention_is_told_so(qtbot):
    loaded = answers.translator()
    loaded = replace(loaded, info=replace(loaded.info, stacks=()))
    ran = replace(answers.translation(), sites=())
    panel = shown(qtbot, AlignmentPanel, SilentSession(answers.after(answers.TRANSLATING, loaded, ran)))
    assert panel.pages.reason.text().startswith("This model has no attention from its target to its source")
    assert panel.pages.reason.isVisible()
    assert not panel.is_waiting()


def test_another_run_replaces_the_last_picture_once_its_weights_are_here(panel, session):
    session.arrive(answers.translation(run=2, written="El gato negro"))
    assert "gato from cat 0.80" in panel.ribbons.accessibleDescription()
    assert session.asked[-1] == AlignmentRequest(run=2, site=CROSS, head=3)
    session.arrive(answers.alignment_view(np.full((4, 3), 1 / 3, np.float32), CROSS, 3, run=2))
    assert panel.ribbons.accessibleDescription().count(",") == 3


def test_before_a_run_there_is_a_sentence_and_no_table(qtbot):
    panel = shown(qtbot, AlignmentPanel, SilentSession(answers.after(answers.TRANSLATING, answers.translator())))
    assert panel.ribbons.isVisible()
    assert not any(part.isVisible() for part in (panel.table, panel.reading, panel.sentence, panel.note))


def test_weights_spread_thin_name_no_word():
    weights = np.full((1, 30), 1 / 30, np.float32)
    assert sentence(weights, [str(i) for i in range(30)], ["gato"], 0) == (
        "The weights with which the model wrote “gato” are spread thin: 3 % on one word at most."
    )
    assert sentence(weights, [], ["gato"], -1) == ""


def test_words_instead_of_pieces(panel, session):
    """“El ga|to”: the row of “El” and that of “ga” write one word; a click selects the first of them."""
    ran = session.state.ran
    tokens = (*ran.tokens, replace(ran.tokens[-1], piece="s", text="s", label="s", continues=True))
    sites = tuple(replace(site, queries=4) if site.stack != "encoder" else site for site in ran.sites)
    session.arrive(replace(ran, tokens=tokens, sites=sites))
    session.dispatch(SetView("words", True))
    request = session.asked[-1]
    assert isinstance(request, AlignmentRequest)
    assert request.words
    likelihoods = np.array([0.9, 0.4, np.nan], np.float32)
    view = answers.alignment_view(WEIGHTS, CROSS, 3)
    session.arrive(replace(view, request=request, likelihoods=likelihoods))
    assert words(session.state.ran, merged=True) == (["The", "cat", "⟨end⟩"], ["El", "gatos", NEXT])
    assert panel.table.accessibleDescription() == (
        "⟨start⟩ → El 90.0 % 0.90, El → gatos 40.0 % 0.80, gatos → ⟨next⟩ 0.80"
    )
    session.dispatch(SelectQuery(2))  # writes the second piece of “gatos”
    assert "wrote “gatos”" in panel.sentence.text()
    QTest.mouseClick(panel.ribbons, Qt.MouseButton.LeftButton, pos=panel.ribbons.word_rect(1, 2).center().toPoint())
    assert session.state.selection.query == 3


def test_of_a_typed_target_the_model_wrote_nothing(panel, session):
    assert "the model wrote “gato”" in panel.sentence.text()
    typed = answers.translation(2, target="El gato")
    session.dispatch(UseWritten("El gato"))
    session.arrive(typed)
    session.arrive(answers.alignment_view(WEIGHTS, CROSS, 3, run=2))
    shown = [panel.sentence.text(), panel.reading.text(), panel.table.accessibleDescription()]
    assert panel.sentence.text().startswith("The weights when “gato”, which was typed, was due: 80 % on “cat”")
    assert "This target was typed" in panel.reading.text()
    assert not any("wrote" in text for text in shown)
