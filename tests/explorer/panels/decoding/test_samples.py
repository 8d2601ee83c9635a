"""Several samples side by side in the Decode panel."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Qt

from attention_explorer.panels.decoding.panel import DecodingPanel
from attention_explorer.panels.decoding.player_view import ATTENTION, BRANCHES
from attention_explorer.panels.decoding.situation import log_text
from attention_explorer.session import files
from attention_explorer.session.intents import (
    OpenCheckpoint,
)
from attention_models.protocol.decoding import DecodeRowsView, DecodeSamplesRequest
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.running import ForwardRequest, RunInputs
from tests.explorer.panels.decoding.answered import (
    DECODING,
    LEFT,
    Answered,
    click_row,
    press,
    press_without_answer,
    shown_rows,
    steps,
    words,
)
from tests.explorer.silent import shown


def test_another_sample_is_one_step_of_undo(qtbot, session, panel):
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(1), LEFT)
    panel.view.knobs.set_number("steps", "2")
    panel.view.transport.speed.setValue(panel.view.transport.speed.maximum())
    steps(qtbot, session, panel, 2)
    first = words(panel)
    qtbot.mouseClick(panel.view.again, LEFT)

    def ended() -> bool:
        session.answer()
        return len(panel.player.branches.path()) == 2 and panel.view.transport.play_button.text() == "Play"

    qtbot.waitUntil(lambda: ended() and words(panel) != first)
    session.undo()
    assert words(panel) == first


def test_samples_stay_side_by_side_until_others_are_drawn(qtbot, session, panel):
    draw(qtbot, session, panel, 3, 2)
    before = [row.text for row in panel.view.texts.list.rows]
    panel.view.knobs.set_number("temperature", "0.7")
    panel.view.knobs.set_number("top_k", "5")
    panel.view.knobs.set_number("seed", "9")
    panel.view.knobs.set_number("samples", "2")
    assert [row.text for row in panel.view.texts.list.rows] == before
    assert panel.view.texts.otherwise.text().startswith(
        "Made with samples 3, temperature 1.3, seed 0. Step goes on from here"
    )
    click_row(qtbot, session, panel.view.texts.list, 2)
    assert panel.player.shown_view().request.settings.sample == 2
    assert panel.player.shown_view().request.settings.temperature == 1.3
    steps(qtbot, session, panel, 1)  # two others go on from the one that is looked at
    assert len(panel.view.texts.list.rows) == 2
    assert panel.view.timeline.count == 3
    assert not panel.view.texts.otherwise.isVisible()
    session.undo()
    assert [row.text for row in panel.view.texts.list.rows] == before
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(0), LEFT)
    steps(qtbot, session, panel, 2)  # greedy goes its own way
    assert panel.view.texts.list.rows == ()
    assert panel.player.branches.path()[-1].settings.strategy == "greedy"


def draw(qtbot, session, panel, samples: int, count: int) -> None:
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(1), LEFT)
    panel.view.knobs.set_number("samples", str(samples))
    panel.view.knobs.set_number("temperature", "1.3")
    steps(qtbot, session, panel, count)


def test_several_samples_are_written_side_by_side(qtbot, session, panel):
    draw(qtbot, session, panel, 4, 4)
    rows = panel.view.texts.list.rows
    assert [row.text[:2] for row in rows] == ["1:", "2:", "3:", "4:"]
    assert len({row.text for row in rows}) == 4
    for sample, row in enumerate(rows):
        click_row(qtbot, session, panel.view.texts.list, sample)
        view = panel.player.shown_view()
        assert view.request.settings.sample == sample
        assert view.request.number == panel.view.timeline.current == panel.view.timeline.count == 4
        assert row.text == f"{sample + 1}: {words(panel).replace('␣', ' ').strip()}"
        assert row.value == log_text(panel.player.branches.log_probability(), "bits")
        assert f"The draw was {view.drawn:.4f}" in panel.view.candidates.note.text()
        drawn = np.random.default_rng((0, 4, sample) if sample else (0, 4)).random()
        assert view.drawn == drawn
    press(qtbot, session, panel.view.tabs.button(ATTENTION))
    shown_rows(session, panel.player.branches.ids())
    assert session.state.results.of(DecodeRowsView).from_steps
    qtbot.keyClick(panel.view.texts.list, Qt.Key.Key_Up)
    session.answer()
    assert panel.player.shown_view().request.settings.sample == 2
    shown_rows(session, panel.player.branches.ids())


def test_going_back_shows_each_samples_own_draw_and_stepping_asks_nothing_known(qtbot, session, panel):
    draw(qtbot, session, panel, 3, 3)
    click_row(qtbot, session, panel.view.texts.list, 2)
    press(qtbot, session, panel.view.transport.restart_button)
    assert len(panel.view.texts.list.rows) == 3
    for number in (1, 2, 3):
        press_without_answer(qtbot, panel.view.transport.step_button)
        assert not any(isinstance(request, DECODING) for request in session.asked)
        assert panel.player.shown_view().drawn == np.random.default_rng((0, number, 2)).random()
    press_without_answer(qtbot, panel.view.transport.step_button)
    assert [len(request.samples) for request in session.asked if isinstance(request, DecodeSamplesRequest)] == [3]


def test_samples_are_branches_undone_and_brought_back(qtbot, session, panel):
    draw(qtbot, session, panel, 3, 2)
    before = [row.text for row in panel.view.texts.list.rows]
    press(qtbot, session, panel.view.tabs.button(BRANCHES))
    assert len(panel.player.branches.leaves()) == 3
    session.undo()
    assert panel.view.timeline.count == 1
    assert len(panel.view.texts.list.rows) == 3
    session.redo()
    assert [row.text for row in panel.view.texts.list.rows] == before
    assert len(panel.player.branches.leaves()) == 3
    saved = files.decode(files.encode(session.state.document))
    assert saved.branches == panel.player.branches
    assert {node.settings.sample for node in saved.branches.nodes} >= {1, 2}


def test_samples_go_on_from_what_is_looked_at(qtbot, session, panel):
    steps(qtbot, session, panel, 2)
    written = words(panel)
    draw(qtbot, session, panel, 2, 2)
    assert words(panel).startswith(written)
    assert panel.view.timeline.count == 4
    assert all(panel.player.branches.ids(leaf.id)[:2] for leaf in panel.player.branches.leaves())
    press(qtbot, session, panel.view.again)
    assert panel.view.knobs.settings.seed == 1
    panel.player.play(False)
    session.answer()
    assert panel.view.timeline.count == 1  # from the prompt


def test_samples_play_until_the_steps_are_used_up(qtbot, session, panel):
    draw(qtbot, session, panel, 2, 0)
    panel.view.knobs.set_number("steps", "3")
    panel.view.transport.speed.setValue(panel.view.transport.speed.maximum())
    qtbot.mouseClick(panel.view.transport.play_button, LEFT)

    def ended() -> bool:
        session.answer()
        played: int = panel.view.timeline.count
        return played == 3 and not panel.player.playing

    qtbot.waitUntil(ended)
    assert "All 3 steps are used up" in panel.view.status.text()
    session.undo()
    assert panel.player.branches.nodes == ()  # one playing, one step of undo


def test_samples_of_a_masked_model_are_words_apart(qtbot, engine):
    text = "Tom and [MASK] went to the [MASK]."
    session = Answered(engine, text)
    session.dispatch(OpenCheckpoint("story-bert"))
    session.run(LoadRequest(ticket=30, reference="story-bert"))
    session.run(ForwardRequest(inputs=RunInputs(text), ticket=31))
    panel = shown(qtbot, DecodingPanel, session)
    draw(qtbot, session, panel, 3, 2)
    assert panel.player.samples_in_view is not None
    filled = [[node.label for node in panel.player.branches.path(node)] for node in panel.player.samples_in_view.nodes]
    assert [row.text for row in panel.view.texts.list.rows] == [
        f"{number}: {', '.join(labels)}  (ended)" for number, labels in enumerate(filled, 1)
    ]
    assert panel.view.status.text().endswith("All samples have ended.")


def test_nothing_drawn_is_one_text(qtbot, session, panel):
    draw(qtbot, session, panel, 4, 0)
    panel.view.knobs.set_number("temperature", "0")
    steps(qtbot, session, panel, 1)
    assert not panel.view.texts.isVisible()
    assert words(panel) == "␣Tom"
