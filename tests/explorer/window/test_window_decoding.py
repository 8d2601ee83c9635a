"""Beams, samples, filters and interventions of the player in the whole window, by keys and mouse."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from attention_explorer.panels.decoding.player_view import ATTENTION, CANDIDATES
from attention_explorer.panels.decoding.stages import FILTERS
from attention_explorer.session.intents import Place, PutIntervention, RestoreDocument
from attention_explorer.window.window import MainWindow
from attention_models.protocol.decoding import DecodeRowsView
from attention_models.protocol.interventions import Scale
from attention_models.protocol.values import Placement
from tests.explorer import documents
from tests.explorer.player_window import panel, pressed
from tests.explorer.real_window import back_to_start, click, press, settle
from tests.explorer.real_window import wait_until as wait

pytestmark = pytest.mark.x


@pytest.fixture
def window(opened: MainWindow) -> MainWindow:
    back_to_start(opened)
    opened.dock_host.raise_panel("decoding")
    settle(opened)
    pressed(opened, panel(opened).view.tabs.button(CANDIDATES))
    return opened


def texts(window: MainWindow) -> list[str]:
    """Those that are written side by side."""
    return [row.text for row in panel(window).view.texts.list.rows]


def typed(field: QWidget, text: str) -> None:
    click(field, field.rect().center())
    QTest.keyClick(field, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClicks(field, text)


def test_a_beam_picked_by_keys_shows_where_it_looked(window):
    decode = panel(window)
    pressed(window, decode.view.knobs.strategy_buttons.button(2))
    for _ in range(3):
        pressed(window, decode.view.transport.step_button)
    pressed(window, decode.view.tabs.button(ATTENTION))
    beams = decode.view.texts.list
    click(beams, beams.row_rect(0).center().toPoint())
    focus = QApplication.focusWidget()
    assert focus is beams
    seen = []
    for place in range(len(beams.rows)):
        settle(window)
        beam = decode.player.shown_beam
        rows = window.session.state.results.of(DecodeRowsView)
        assert beam is not None
        assert rows is not None
        assert rows.request.ids == beam.ids
        assert beams.rows[place].current
        seen.append(beam.ids)
        press(focus, Qt.Key.Key_Down)
    assert len(set(seen)) == 4


def test_samples_are_written_at_once_with_the_interventions_that_are_on(window):
    decode = panel(window)
    pressed(window, decode.view.knobs.strategy_buttons.button(1))
    typed(decode.view.knobs.fields["samples"], "3")
    typed(decode.view.knobs.fields["top_k"], "20")
    for _ in range(2):
        pressed(window, decode.view.transport.step_button)
    plain = texts(window)
    assert len(plain) == 3
    window.session.dispatch(PutIntervention(Scale(0.0)))
    settle(window)
    assert texts(window) == []
    for _ in range(2):
        pressed(window, decode.view.transport.step_button)
    assert texts(window) != plain
    window.session.dispatch(PutIntervention(Scale(1.0)))
    settle(window)
    assert texts(window) == plain


def test_filters_are_walked_through_with_the_arrow_keys(window):
    decode = panel(window)
    pressed(window, decode.view.knobs.strategy_buttons.button(1))
    typed(decode.view.knobs.fields["samples"], "1")
    typed(decode.view.knobs.fields["temperature"], "1.5")
    typed(decode.view.knobs.fields["top_k"], "5")
    pressed(window, decode.view.transport.step_button)
    stages = decode.view.candidates.stages
    click(stages.buttons.button(0), stages.buttons.button(0).rect().center())
    notes = []
    for _ in range(2):
        focus = QApplication.focusWidget()
        assert focus is not None
        press(focus, Qt.Key.Key_Right)
        notes.append(decode.view.candidates.note.text())
    assert notes[0].startswith("1 of 2. All logits are divided by 1.5.")
    assert notes[1].startswith("2 of 2. The 5 likeliest tokens stay. It cut 8,187 tokens")
    assert [bool(row.cut_by) for row in decode.view.candidates.bars.rows[:6]] == [False] * 5 + [True]


def test_a_long_text_pushes_neither_pause_nor_the_candidates_out_of_sight(window):
    decode = panel(window)
    pressed(window, decode.view.knobs.strategy_buttons.button(0))
    decode.view.knobs.set_number("steps", "60")
    decode.view.transport.speed.setValue(decode.view.transport.speed.maximum())
    click(decode.view.transport.play_button, decode.view.transport.play_button.rect().center())
    wait(lambda: decode.player.at >= 40)
    for button in (decode.view.transport.play_button, decode.view.tabs.button(ATTENTION)):
        seen = button.visibleRegion().boundingRect()
        assert seen == button.rect()
    chip = decode.view.timeline.step_rect(decode.view.timeline.current).toRect()
    assert decode.view.timeline.visibleRegion().contains(chip)
    click(decode.view.transport.play_button, decode.view.transport.play_button.rect().center())
    settle(window)
    assert decode.player.at < 60
    assert not decode.player.playing


def test_what_a_tab_or_a_filter_shows_is_brought_into_sight(window):
    decode = panel(window)
    pressed(window, decode.view.knobs.strategy_buttons.button(1))
    decode.view.knobs.set_number("top_k", "4")
    pressed(window, decode.view.transport.step_button)
    bars = decode.view.candidates.bars
    pressed(window, decode.view.candidates.stages.buttons.button(1 + FILTERS.index("top-k")))
    wait(lambda: bars.visibleRegion().contains(bars.row_rect(3).toRect()))
    pressed(window, decode.view.tabs.button(ATTENTION))
    wait(lambda: not window.bridge.busy and decode.view.attention.map.visibleRegion().boundingRect().height() > 250)
    assert (
        decode.view.tabs.button(ATTENTION).visibleRegion().boundingRect() == decode.view.tabs.button(ATTENTION).rect()
    )
    pressed(window, decode.view.transport.restart_button)
    wait(lambda: decode.view.attention.note.visibleRegion().boundingRect() == decode.view.attention.note.rect())
    assert decode.view.attention.note.text() == "Press Step: a row for each token appears here."
    assert not decode.view.attention.map.isVisible()
    pressed(window, decode.view.tabs.button(CANDIDATES))
    pressed(window, decode.view.knobs.strategy_buttons.button(0))


def test_another_number_format_while_it_plays_stops_it_and_shows_the_step_it_was_at(window):
    decode = panel(window)
    decode.view.transport.speed.setValue(decode.view.transport.speed.maximum())
    for dtype in ("bfloat16", "float32"):
        click(decode.view.transport.play_button, decode.view.transport.play_button.rect().center())
        wait(lambda: decode.player.at % 10 >= 3 and window.session.state.pending_step is not None)
        window.session.dispatch(Place(Placement("cpu", dtype)))
        assert window.session.state.pending_step is None
        settle(window)
        assert not decode.player.playing
        assert decode.view.status.text().startswith(f"Step {decode.player.at}: took")
        assert decode.view.candidates.bars.rows


def test_in_large_text_no_button_is_cut_and_what_is_wrong_with_a_setting_is_seen(window):
    decode = panel(window)
    window.scale_text(1.5)
    try:
        pressed(window, decode.view.knobs.strategy_buttons.button(1))
        assert decode.view.use.height() == decode.view.use.sizeHint().height()
        typed(decode.view.knobs.fields["temperature"], "-1")
        remark = decode.view.knobs.remark
        wait(lambda: remark.visibleRegion().boundingRect() == remark.rect())
        assert remark.text() == "A temperature of -1.0 makes no probabilities: it is 0 (greedy) or more."
    finally:
        typed(decode.view.knobs.fields["temperature"], "1")
        pressed(window, decode.view.knobs.strategy_buttons.button(0))
        window.scale_text(0)


@pytest.mark.parametrize("strategy", [0, 1])
def test_in_large_text_a_step_brings_its_candidates_into_sight_with_what_was_written(window, strategy):
    decode = panel(window)
    window.scale_text(1.5)
    try:
        pressed(window, decode.view.knobs.strategy_buttons.button(strategy))
        for _ in range(2):
            pressed(window, decode.view.transport.step_button)
        bars, timeline = decode.view.candidates.bars, decode.view.timeline
        wait(lambda: bars.visibleRegion().contains(bars.row_rect(0).toAlignedRect()))  # the map keeps its room, too
        wait(lambda: timeline.visibleRegion().contains(timeline.step_rect(2).toRect()))
        top = decode.view.area.verticalScrollBar().value()
        decode.view.area.verticalScrollBar().setValue(0)
        decode.view.knobs.more.setChecked(True)
        typed(decode.view.knobs.fields["steps"], "30")
        settle(window)
        assert decode.view.area.verticalScrollBar().value() == 0  # the settings stay where a person looks at them
        pressed(window, decode.view.transport.back_button)
        wait(lambda: abs(decode.view.area.verticalScrollBar().value() - top) < 40)
    finally:
        window.scale_text(0)


def test_settings_are_undone_and_saved_like_all_else(window, tmp_path):
    decode = panel(window)
    pressed(window, decode.view.knobs.strategy_buttons.button(2))
    typed(decode.view.knobs.fields["beams"], "2")
    typed(decode.view.knobs.fields["steps"], "2")
    for _ in range(2):
        pressed(window, decode.view.transport.step_button)
    found = texts(window)
    assert len(found) == 2
    saved = tmp_path / "search.json"
    documents.save(window.session.state.document, saved)
    pressed(window, decode.view.knobs.strategy_buttons.button(1))
    assert texts(window) == []
    decode.view.transport.setFocus()
    QTest.keyClick(window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    settle(window)
    assert decode.view.knobs.strategy_buttons.current == 2
    assert texts(window) == found
    back_to_start(window)
    assert decode.view.knobs.strategy == "greedy"
    window.session.dispatch(RestoreDocument(documents.load(saved)))
    settle(window)
    assert (decode.view.knobs.strategy, decode.view.knobs.fields["beams"].text()) == ("beam", "2")
    assert texts(window) == found


def test_no_button_moves_while_a_text_grows(window):
    decode = panel(window)
    decode.view.knobs.more.setChecked(False)  # with the numbers open the first step scrolls to its candidates

    def places() -> dict[str, QRect]:
        for _ in range(5):  # until all of it is laid out
            QApplication.processEvents()
        buttons = [button for button in decode.findChildren(QAbstractButton) if button.isVisible()]
        return {button.text(): QRect(button.mapTo(window, QPoint()), button.size()) for button in buttons}

    start = places()
    assert {"Restart", "Back", "Play", "Step", "Use this text", "Settings", "Candidates", "Cache"} <= set(start)
    for _ in range(20):  # to where the steps are used up, and the sentence is the longest
        pressed(window, decode.view.transport.step_button)
        settle(window)
        assert places() == start
    assert "All 20 steps are used up" in decode.view.status.text()
    assert not decode.view.transport.step_button.isEnabled()
    decode.view.transport.show_state(True, True, True, 20)
    assert places() == {"Pause" if name == "Play" else name: place for name, place in start.items()}
    decode.view.transport.show_state(False, True, False, 20)
