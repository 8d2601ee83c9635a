"""The Decode panel, driven by mouse and keyboard, with answers of the real engine: steps, playing, undo."""

from __future__ import annotations

from PySide6.QtCore import Qt

from attention_explorer.look.theme import DARK
from attention_explorer.panels.decoding.player_view import BRANCHES
from attention_explorer.session.intents import (
    Arrived,
    Busy,
    SetText,
)
from attention_models.protocol.decoding import DecodeStepRequest
from attention_models.protocol.values import SiteRef
from tests.explorer.panels.decoding.answered import DECODING, LEFT, TEXT, press, steps, words
from tests.models.asking import ask


def test_a_step_asks_once_and_shows_what_it_chose_from(qtbot, session, panel):
    qtbot.mouseClick(panel.view.transport.step_button, LEFT)
    asked = [request for request in session.asked if isinstance(request, DecodeStepRequest)]
    assert [(r.inputs.prompt, r.number, r.ids, r.site, r.head) for r in asked] == [
        (TEXT, 1, (), SiteRef("decoder", 5), 5)
    ]
    assert not panel.view.transport.step_button.isEnabled()  # one at a time
    session.answer()
    assert words(panel) == "␣Tom"
    rows = panel.view.candidates.bars.rows
    assert (rows[0].label, rows[0].chosen) == ("␣Tom", True)
    assert sum(row.probability for row in rows) < 1
    assert "took “␣Tom” with 67.9 %" in panel.view.status.text()
    assert panel.view.timeline.count == panel.view.timeline.current == 1


def test_back_and_the_timeline_lose_nothing(qtbot, session, panel):
    steps(qtbot, session, panel, 3)
    written = words(panel)
    press(qtbot, session, panel.view.transport.back_button)
    assert panel.view.timeline.current == 2
    assert panel.view.timeline.count == 3
    qtbot.mouseClick(panel.view.timeline, LEFT, pos=panel.view.timeline.step_rect(1).center().toPoint())
    assert words(panel) == "␣Tom"
    qtbot.keyClick(panel.view.timeline, Qt.Key.Key_End)
    assert words(panel) == written
    press(qtbot, session, panel.view.transport.restart_button)
    assert words(panel) == ""
    assert panel.view.timeline.count == 3


def test_play_goes_on_until_the_steps_are_used_up_and_says_so(qtbot, session, panel):
    panel.view.knobs.set_number("steps", "3")
    panel.view.transport.speed.setValue(panel.view.transport.speed.maximum())
    qtbot.mouseClick(panel.view.transport.play_button, LEFT)
    assert panel.view.transport.play_button.text() == "Pause"

    def ended() -> bool:
        session.answer()
        return len(panel.player.branches.path()) == 3 and panel.view.transport.play_button.text() == "Play"

    qtbot.waitUntil(ended)
    assert "All 3 steps are used up" in panel.view.status.text()
    assert not panel.view.transport.step_button.isEnabled()
    panel.view.knobs.set_number("steps", "4")
    steps(qtbot, session, panel, 1)
    assert panel.view.timeline.count == 4


def test_one_playing_is_undone_at_once_and_undo_pauses_it(qtbot, session, panel):
    panel.view.transport.speed.setValue(panel.view.transport.speed.maximum())
    qtbot.mouseClick(panel.view.transport.play_button, LEFT)

    def written(count: int) -> bool:
        session.answer()
        return len(panel.player.branches.path()) >= count

    qtbot.waitUntil(lambda: written(3))
    session.undo()
    assert words(panel) == ""
    assert panel.view.transport.play_button.text() == "Play"
    session.answer()
    qtbot.wait(20)
    assert words(panel) == ""
    session.redo()
    assert len(panel.player.branches.path()) >= 3
    assert panel.view.transport.play_button.text() == "Play"


def test_undo_shows_a_step_as_it_was_without_asking_again(qtbot, session, panel):
    steps(qtbot, session, panel, 2)
    shown = panel.player.shown_view()
    press(qtbot, session, panel.view.tabs.button(BRANCHES))
    press(qtbot, session, panel.view.branches.delete)
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(1), LEFT)  # other settings, another first token
    panel.view.knobs.set_number("seed", "5")
    steps(qtbot, session, panel, 1)
    for _ in range(4):  # the step, the seed, the strategy, the deletion
        session.undo()
    assert panel.player.shown_view() is shown
    assert not [request for request in session.asked if isinstance(request, DECODING)]


def test_pause_asks_for_nothing_more(qtbot, session, panel):
    panel.view.transport.speed.setValue(panel.view.transport.speed.maximum())
    qtbot.mouseClick(panel.view.transport.play_button, LEFT)
    qtbot.mouseClick(panel.view.transport.play_button, LEFT)
    session.answer()
    qtbot.wait(50)
    assert not [request for request in session.asked if isinstance(request, DECODING)]
    assert panel.view.timeline.count == 1


def test_a_text_that_can_not_be_run_stops_it_with_a_sentence(qtbot, session, panel):
    session.dispatch(SetText(""))
    qtbot.mouseClick(panel.view.transport.step_button, LEFT)
    session.dispatch(Busy(frozenset({DecodeStepRequest.lane})))
    request = next(r for r in session.asked if isinstance(r, DecodeStepRequest))
    session.dispatch(Arrived(ask(session.engine, request)))
    session.dispatch(Busy(frozenset()))
    assert "The input is empty" in panel.view.status.text()
    assert panel.view.transport.step_button.isEnabled()


def test_it_fits_a_narrow_column_light_and_dark(qtbot, session, panel):
    steps(qtbot, session, panel, 2)
    panel.set_theme(DARK)
    for page in range(4):
        press(qtbot, session, panel.view.tabs.button(page))
        assert panel.minimumSizeHint().width() <= 440
        assert not panel.grab().toImage().isNull()


def test_another_strategy_begins_again_at_the_prompt_once_a_text_is_over(qtbot, session, panel):
    panel.view.knobs.set_number("steps", "3")
    assert "Play for up to 3 tokens" in panel.view.status.text()
    steps(qtbot, session, panel, 3)
    greedy = session.state.document.branches.path()
    assert "All 3 steps are used up" in panel.view.status.text()
    assert not panel.view.transport.play_button.isEnabled()
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(1), LEFT)
    assert panel.view.transport.play_button.isEnabled()
    assert "write another from the prompt" in panel.view.status.text()
    panel.view.transport.speed.setValue(panel.view.transport.speed.maximum())
    qtbot.mouseClick(panel.view.transport.play_button, LEFT)

    def ended() -> bool:
        session.answer()
        path = session.state.document.branches.path()
        return len(path) == 3 and panel.view.transport.play_button.text() == "Play" and path != greedy

    qtbot.waitUntil(ended)
    drawn = [node.settings.strategy for node in session.state.document.branches.path()]
    assert drawn == ["sample"] * 3
    assert "All 3 steps are used up" in panel.view.status.text()
    assert not panel.view.transport.play_button.isEnabled()
    assert {node.id for node in greedy} <= {node.id for node in session.state.document.branches.nodes}
    panel.view.knobs.set_number("samples", "2")
    assert panel.view.transport.step_button.isEnabled()
    steps(qtbot, session, panel, 1)
    assert panel.view.timeline.current == 1
    assert len(panel.view.texts.list.rows) == 2


def test_another_seed_begins_again_too_and_an_unfinished_text_goes_on(qtbot, session, panel):
    panel.view.knobs.set_number("steps", "3")
    steps(qtbot, session, panel, 2)
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(1), LEFT)
    steps(qtbot, session, panel, 1)
    strategies = [node.settings.strategy for node in session.state.document.branches.path()]
    assert strategies == ["greedy", "greedy", "sample"]
    assert not panel.view.transport.step_button.isEnabled()
    panel.view.knobs.set_number("seed", "7")
    assert panel.view.transport.step_button.isEnabled()
    steps(qtbot, session, panel, 1)
    assert [node.settings.seed for node in session.state.document.branches.path()] == [7]
