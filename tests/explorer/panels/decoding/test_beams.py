"""A beam search in the Decode panel."""

from __future__ import annotations

import math

import pytest
from PySide6.QtCore import Qt

from attention_explorer.panels.decoding.player_view import ATTENTION
from attention_explorer.panels.decoding.situation import plain
from attention_models.protocol.decoding import DecodeRowsView
from tests.explorer.panels.decoding.answered import DECODING, LEFT, TEXT, click_row, press, shown_rows, steps


def test_a_beam_search_is_a_tree(qtbot, session, panel):
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(2), LEFT)
    panel.view.knobs.set_number("beams", "2")
    steps(qtbot, session, panel, 3)
    assert panel.view.candidates.tree.isVisible()
    beams = panel.player.work.search.views[-1].beams
    assert sum(beam.kept for beam in beams) == 2
    assert not panel.view.candidates.tree.node_rect(beams[0].node).isEmpty()
    assert "best so far" in panel.view.status.text()
    press(qtbot, session, panel.view.transport.back_button)
    steps(qtbot, session, panel, 1)
    assert len(panel.player.work.search.views) == 3  # known, not searched again
    assert not panel.view.texts.otherwise.isVisible()


def test_a_search_stays_until_another_is_begun_and_is_there_again_with_its_settings(qtbot, session, panel):
    beam_search(qtbot, session, panel, 2, 3)
    texts = [row.text for row in panel.view.texts.list.rows]
    first = panel.player.work.search
    panel.view.knobs.set_number("beams", "3")
    panel.view.knobs.set_number("steps", "7")
    assert [row.text for row in panel.view.texts.list.rows] == texts
    assert panel.view.candidates.heading.text().startswith("A line is a step: 2 beams go on")
    made_with = "Made with beams 2, length penalty 1, steps 20. Step begins another search, with what is set now."
    assert panel.view.texts.otherwise.text() == made_with
    assert panel.view.texts.otherwise.isVisible()
    press(qtbot, session, panel.view.transport.back_button)  # it can still be walked through
    assert panel.view.timeline.current == 2
    assert panel.view.transport.step_button.isEnabled()
    steps(qtbot, session, panel, 1)
    assert panel.view.timeline.count == 1
    assert len(panel.view.texts.list.rows) == 3
    assert not panel.view.texts.otherwise.isVisible()
    session.undo()  # the numbers, typed within a second
    assert panel.view.knobs.fields["beams"].text() == "4"
    while session.state.document.decoding.settings.beams != 2:
        session.redo() if session.can_redo else panel.view.knobs.set_number("beams", "2")
    panel.view.knobs.set_number("steps", "20")
    assert panel.player.work.search is first
    assert panel.view.timeline.current == 2  # where it was left
    steps(qtbot, session, panel, 1)  # which is known
    assert [row.text for row in panel.view.texts.list.rows] == texts


def test_undo_of_another_strategy_shows_a_finished_search_as_it_was(qtbot, session, panel):
    panel.view.knobs.set_number("steps", "3")
    beam_search(qtbot, session, panel, 2, 3)
    status, texts = panel.view.status.text(), [row.text for row in panel.view.texts.list.rows]
    assert "The search is over" in status
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(0), LEFT)
    assert panel.view.texts.list.rows == ()
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(2), LEFT)
    panel.view.knobs.set_number("steps", "12")
    assert "The search is over" not in panel.view.status.text()  # another can be begun
    assert panel.view.transport.step_button.isEnabled()
    for _ in range(3):
        session.undo()
    assert panel.view.knobs.strategy == "beam"
    assert panel.view.knobs.fields["steps"].text() == "3"
    assert panel.view.status.text() == status
    assert [row.text for row in panel.view.texts.list.rows] == texts
    assert not panel.view.texts.otherwise.isVisible()
    assert not [request for request in session.asked if isinstance(request, DECODING)]


def beam_search(qtbot, session, panel, width: int, count: int) -> None:
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(2), LEFT)
    panel.view.knobs.set_number("beams", str(width))
    steps(qtbot, session, panel, count)


def test_every_beam_can_be_picked_and_its_attention_is_shown(qtbot, session, panel):
    beam_search(qtbot, session, panel, 3, 4)
    press(qtbot, session, panel.view.tabs.button(ATTENTION))
    alive = [beam for beam in panel.player.work.search.views[-1].beams if beam.kept]
    assert len(panel.view.texts.list.rows) == len(alive) == 3
    assert [row.current for row in panel.view.texts.list.rows] == [True, False, False]
    for place, beam in enumerate(alive):
        click_row(qtbot, session, panel.view.texts.list, place)
        shown_rows(session, beam.ids)
        assert f"beam “{beam.text.strip()}”" in panel.view.attention.heading.text()
        assert session.state.results.of(DecodeRowsView).from_steps
    qtbot.keyClick(panel.view.texts.list, Qt.Key.Key_Up)
    session.answer()
    shown_rows(session, alive[1].ids)


def test_the_tree_is_walked_with_mouse_and_keys(qtbot, session, panel):
    beam_search(qtbot, session, panel, 2, 3)
    tree, player = panel.view.candidates.tree, panel.player
    second = next(beam for beam in player.work.search.views[1].beams if beam.node != player.shown_beam.parent)
    qtbot.mouseClick(tree, LEFT, pos=tree.node_rect(second.node).center().toPoint())
    assert player.shown_beam == second
    qtbot.keyClick(tree, Qt.Key.Key_Up)
    assert player.shown_beam.node == second.parent
    qtbot.keyClick(tree, Qt.Key.Key_Right)
    assert player.shown_beam.node not in (second.parent, second.node)
    assert f"Selected: {player.shown_beam.label}." in tree.accessibleDescription()
    pruned = next(beam for beam in player.work.search.views[0].beams if not beam.kept)
    qtbot.mouseClick(tree, LEFT, pos=tree.node_rect(pruned.node).center().toPoint())
    assert player.shown_beam == pruned  # given up, and still there to be looked at
    steps(qtbot, session, panel, 1)
    assert player.shown_beam.ids == player.work.search.views[-1].ids  # nothing came of it: the best again


def test_a_picked_beam_is_followed_and_its_text_can_be_used(qtbot, session, panel):
    beam_search(qtbot, session, panel, 3, 2)
    player = panel.player
    click_row(qtbot, session, panel.view.texts.list, 1)
    picked = player.shown_beam
    steps(qtbot, session, panel, 1)
    followed = [beam for beam in player.work.search.views[-1].beams if beam.kept and beam.ids[:2] == picked.ids]
    assert player.shown_beam == (followed[0] if followed else player.shown_beam)
    press(qtbot, session, panel.view.transport.back_button)
    assert player.shown_beam.ids == (picked.ids if followed else player.work.search.views[1].ids)
    text = player.shown_beam.text
    qtbot.mouseClick(panel.view.use, LEFT)
    assert session.state.document.text == TEXT + text


@pytest.mark.short("0-by log-probability,")
@pytest.mark.parametrize(("penalty", "heading"), [("1", "/ the length"), ("0", "by log-probability,"), ("2", "of 2,")])
def test_beams_show_what_they_are_ranked_by(qtbot, session, panel, penalty, heading):
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(2), LEFT)
    panel.view.knobs.set_number("length_penalty", penalty)
    steps(qtbot, session, panel, 4)
    shown = panel.view.texts
    assert heading in shown.heading.text()
    numbers = [float(row.value.replace("−", "-")) for row in shown.list.rows]
    assert numbers == sorted(numbers, reverse=True)
    by_text = {plain(beam.text): beam for view in panel.player.work.search.views for beam in view.beams}
    for row, number in zip(shown.list.rows, numbers, strict=True):
        beam = by_text[row.text.split("  (")[0]]
        bits = beam.log_probability / math.log(2)
        assert number == pytest.approx(bits / len(beam.ids) ** float(penalty), abs=0.0051)
        assert f"{bits:.4f} bits".replace("-", "−") in row.tooltip
    assert f"= {shown.list.rows[0].value}" in panel.view.status.text() or penalty == "0"
