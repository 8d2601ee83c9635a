"""The tree of what was written: other ways, names, deletions, trees from files, its limits."""

from __future__ import annotations

import math

import pytest
from PySide6.QtCore import Qt

from attention_explorer.panels.decoding.panel import DecodingPanel
from attention_explorer.panels.decoding.player_view import BRANCHES, times_text
from attention_explorer.panels.decoding.situation import log_text
from attention_explorer.session import files
from attention_explorer.session.branches import MOST_NODES, ROOT, Branches
from attention_explorer.session.intents import (
    RestoreDocument,
)
from attention_models.protocol.running import ForwardRequest, RunInputs
from tests.explorer.panels.decoding.answered import (
    LEFT,
    TEXT,
    Answered,
    click_row,
    press,
    press_without_answer,
    steps,
    words,
)
from tests.explorer.silent import shown


def test_a_click_on_a_candidate_goes_that_way_and_keeps_both(qtbot, session, panel):
    steps(qtbot, session, panel, 2)
    qtbot.keyClick(panel.view.timeline, Qt.Key.Key_Home)
    qtbot.keyClick(panel.view.timeline, Qt.Key.Key_Right)
    click_row(qtbot, session, panel.view.candidates.bars, 1)
    assert words(panel) == "␣Ben"
    assert "you chose “␣Ben”" in panel.view.status.text()
    steps(qtbot, session, panel, 1)
    press(qtbot, session, panel.view.tabs.button(BRANCHES))
    assert [row.text for row in panel.view.branches.list.rows] == ["Tom.", "Ben."]
    assert "times as likely" in panel.view.branches.comparison.text()
    expected = sum(
        view.log_probability
        for view in panel.player.work.views.values()
        if view.ids[0] == panel.player.branches.ids()[0]
    )
    assert panel.view.branches.list.rows[1].value == log_text(expected, "bits")
    click_row(qtbot, session, panel.view.branches.list, 0)
    assert words(panel) == "␣Tom."


def test_a_branch_is_named_deleted_and_brought_back(qtbot, session, panel):
    steps(qtbot, session, panel, 2)
    press(qtbot, session, panel.view.tabs.button(BRANCHES))
    qtbot.keyClicks(panel.view.branches.name, "first")
    qtbot.keyClick(panel.view.branches.name, Qt.Key.Key_Return)
    assert panel.view.branches.list.rows[0].text == "first: Tom."
    press(qtbot, session, panel.view.branches.delete)
    assert panel.view.branches.list.rows == ()
    assert words(panel) == ""
    assert "Ctrl+Z brings it back" in panel.view.status.text()
    session.undo()
    assert words(panel) == "␣Tom."
    assert panel.view.branches.list.rows[0].text == "first: Tom."
    assert "Ctrl+Z" not in panel.view.status.text()
    session.undo()
    assert panel.view.branches.list.rows[0].text == "Tom."


def test_a_branch_deleted_while_its_step_is_computed_stays_deleted(qtbot, session, panel):
    steps(qtbot, session, panel, 1)
    qtbot.mouseClick(panel.view.transport.step_button, LEFT)
    press_without_answer(qtbot, panel.view.tabs.button(BRANCHES))
    press_without_answer(qtbot, panel.view.branches.delete)
    assert panel.player.branches.nodes == ()
    assert "Deleted, while its next token was computed. Ctrl+Z brings it back." in panel.view.status.text()
    assert panel.view.transport.step_button.isEnabled()
    session.answer()
    assert panel.player.branches.nodes == ()
    session.undo()
    assert words(panel) == "␣Tom"
    steps(qtbot, session, panel, 1)
    assert words(panel) == "␣Tom."


def test_a_tree_from_a_file_shows_how_each_token_was_chosen(qtbot, engine, session, panel):
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(1), LEFT)
    panel.view.knobs.set_number("temperature", "2")
    panel.view.knobs.set_number("seed", "4")
    steps(qtbot, session, panel, 3)
    click_row(qtbot, session, panel.view.candidates.bars, 5)
    before, status = panel.player.shown_view(), panel.view.status.text()
    saved = files.decode(files.encode(session.state.document))
    loaded, session = session.state.results.loaded, Answered(engine, "Another text")  # as of a new window
    session.arrive(loaded)
    session.run(ForwardRequest(inputs=RunInputs("Another text"), ticket=4))
    panel = shown(qtbot, DecodingPanel, session)
    session.dispatch(RestoreDocument(saved))
    session.run(ForwardRequest(inputs=RunInputs(TEXT), ticket=5))
    session.answer()
    again = panel.player.shown_view()
    assert again is not before
    assert (again.candidates, again.stages, again.drawn, again.ids) == (
        before.candidates,
        before.stages,
        before.drawn,
        before.ids,
    )
    assert panel.view.status.text() == status
    press(qtbot, session, panel.view.transport.back_button)
    assert panel.player.shown_view().drawn is not None
    assert panel.player.shown_view().request.settings.temperature == 2
    assert panel.player.branches.nodes == saved.branches.nodes  # looking changes nothing


def test_a_token_that_this_model_would_not_choose_is_shown_and_said(qtbot, session, panel):
    foreign = Branches().grow(100, "x", -3.0)
    session.dispatch(RestoreDocument(session.state.document.with_branches(foreign)))
    session.answer()
    assert panel.player.shown_view().chosen.id == 100
    assert "Another version of the model wrote it" in panel.view.status.text()
    assert panel.player.branches.nodes == foreign.nodes
    steps(qtbot, session, panel, 1)
    assert panel.player.branches.ids()[0] == 100


def test_a_token_that_is_not_in_the_vocabulary_is_a_sentence(qtbot, session, panel):
    session.dispatch(RestoreDocument(session.state.document.with_branches(Branches().grow(1 << 30, "x", -3.0))))
    session.answer()
    assert "token 1,073,741,824" in session.state.notice.text
    assert "token 1,073,741,824" in panel.view.status.text()
    assert "computed again" not in panel.view.status.text()


@pytest.mark.full
def test_a_step_on_the_last_branch_of_a_full_tree_is_refused_with_a_sentence(qtbot, session, panel):
    full = Branches()
    for number in range(MOST_NODES):
        full = full.go(ROOT).grow(number, "a", -1.0)
    session.dispatch(RestoreDocument(session.state.document.with_branches(full)))
    session.answer()
    assert "hold 5,000 tokens, the most that are kept. Delete one to go on." in panel.view.status.text()
    assert not panel.view.transport.step_button.isEnabled()
    press(qtbot, session, panel.view.tabs.button(BRANCHES))
    press(qtbot, session, panel.view.branches.delete)
    assert panel.view.transport.step_button.isEnabled()


def test_use_this_text_fills_the_input_and_undo_brings_the_branches_back(qtbot, session, panel):
    steps(qtbot, session, panel, 2)
    qtbot.mouseClick(panel.view.use, LEFT)
    assert session.state.document.text == TEXT + " Tom."
    assert words(panel) == ""
    session.undo()
    assert session.state.document.text == TEXT
    assert words(panel) == "␣Tom."


@pytest.mark.parametrize(
    ("times", "words"),
    [
        (1.04, "1.0"),
        (2.72, "2.7"),
        (9.94, "9.9"),
        (26.4, "about 26"),
        (26_160.5, "about 26,000"),
        (1_449_999, "about 1,400,000"),
        (26_160_532.2, "about 26 million"),
        (3e15, "about 10^15"),
    ],
)
def test_how_many_times_likelier_has_no_more_digits_than_are_known(times, words):
    assert times_text(math.log(times)) == words
