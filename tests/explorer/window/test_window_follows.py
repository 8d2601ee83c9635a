"""While Decode writes, the whole window shows the text with what was written: real engine, buttons and keys."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt

from attention_explorer.panels.alignment.panel import AlignmentPanel
from attention_explorer.panels.flow.panel import FlowPanel
from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.panels.next_token.panel import NextTokenPanel
from attention_explorer.session.examples import examples_of
from attention_explorer.session.intents import (
    PutIntervention,
    RestoreDocument,
    SelectQuery,
    SetText,
    SetView,
    ShowExample,
)
from attention_explorer.session.state import State
from attention_explorer.window.window import MainWindow
from attention_models import open_checkpoint, run
from attention_models.protocol.decoding import DecodeStepView
from attention_models.protocol.flow import BlockView, FlowView
from attention_models.protocol.head import HeadView
from attention_models.protocol.interventions import Mask
from attention_models.protocol.prediction import PredictionView
from tests.explorer.player_window import panel
from tests.explorer.real_window import EXAMPLE, back_to_start, click, opened_window, panel_of, press, settle, wait_until

SAME = 5e-6  # a row that ran alone, beside the row of a whole pass


@pytest.fixture
def window(opened: MainWindow) -> MainWindow:
    back_to_start(opened)
    opened.dock_host.raise_panel("decoding")
    settle(opened)
    return opened


def pressed(window: MainWindow, name: str) -> None:
    """Press one of the player's buttons, and wait until the window shows what came of it."""
    button = getattr(panel(window).view.transport, f"{name}_button")
    click(button, button.rect().center())
    wait_until(lambda: panel(window).player.pending is None and window.is_settled())


def stepped(window: MainWindow, times: int) -> tuple[int, ...]:
    for _ in range(times):
        pressed(window, "step")
    return window.session.state.document.branches.ids()


def ids_shown(window: MainWindow) -> list[int]:
    ran = window.session.state.ran
    assert ran is not None
    return [token.id for token in ran.tokens]


def test_every_panel_shows_what_was_written(window: MainWindow) -> None:
    before = ids_shown(window)
    written = stepped(window, 4)
    state = window.session.state
    assert ids_shown(window) == [*before, *written]
    assert state.selection.query == len(before) + 3  # the row of the last one
    strip = window.input.strip
    assert strip.count == len(before) + 4
    assert [chip.role for chip in strip.chips] == [""] * len(before) + ["ok"] * 4
    assert window.input.more.isVisible()
    view = panel(window).player.shown_view()
    assert view is not None
    assert view.text.strip() in window.input.more.text()
    heat_map = panel_of(window, HeadMapPanel).map
    assert not heat_map.cell_rect(len(before) + 3, 0).isEmpty()
    head = state.results.of(HeadView)
    assert head is not None
    assert state.site is not None
    whole = run(open_checkpoint("story-gpt"), EXAMPLE + view.text)
    assert [token.id for token in whole.tokens] == ids_shown(window)
    expected = whole.weights(state.site, state.selection.head)
    assert np.abs(head.weights - expected).max() <= SAME
    assert window.input.text.text() == EXAMPLE  # what was typed is as it was


def test_flow_and_next_follow(window: MainWindow) -> None:
    window.dock_host.raise_panel("flow")
    window.dock_host.raise_panel("decoding")
    stepped(window, 2)
    window.dock_host.raise_panel("flow")
    settle(window)
    ran = window.session.state.ran
    assert ran is not None
    flow = panel_of(window, FlowPanel)
    assert not flow.is_waiting()
    window.dock_host.raise_panel("next")
    settle(window)
    view = window.session.state.results.of(PredictionView)
    assert view is not None
    assert view.request.run == ran.run
    assert view.predictions[0].position == len(ran.tokens) - 1


def test_back_restart_undo_and_another_branch(window: MainWindow) -> None:
    before = ids_shown(window)
    written = stepped(window, 3)
    pressed(window, "back")
    assert ids_shown(window) == [*before, *written[:2]]
    player = panel(window).player
    view = player.shown_view()
    assert view is not None
    other = next(c.id for c in view.candidates if c.id != written[1])
    player.branch_off(other)
    wait_until(lambda: player.pending is None and window.is_settled())
    assert ids_shown(window) == [*before, written[0], other]
    window.session.undo()
    settle(window)
    assert ids_shown(window) == [*before, *written[:2]]
    pressed(window, "restart")
    assert ids_shown(window) == before
    assert not window.input.more.isVisible()


def test_play_shows_each_token_and_pause_leaves_all_of_them(window: MainWindow) -> None:
    before = len(ids_shown(window))
    lengths: list[int] = []
    rows: set[int] = set()

    def note(old: object, new: object) -> None:
        state = window.session.state
        if state.ran is not None and (not lengths or lengths[-1] != len(state.ran.tokens)):
            lengths.append(len(state.ran.tokens))
        head = state.results.of(HeadView)
        if head is not None:
            rows.add(len(head.weights))

    window.dock_host.raise_panel("decoding")
    player = panel(window).player
    panel(window).view.transport.speed.setValue(10)  # no pause between steps
    window.session.changed.connect(note)
    try:
        click(panel(window).view.transport.play_button, panel(window).view.transport.play_button.rect().center())
        wait_until(lambda: len(window.session.state.document.branches.path()) >= 6)
        player.play(False)
        wait_until(lambda: player.pending is None and window.is_settled())
    finally:
        window.session.changed.disconnect(note)
        panel(window).view.transport.speed.setValue(7)
    written = window.session.state.document.branches.ids()
    assert ids_shown(window)[before:] == list(written)
    assert lengths[-len(written) :] == list(range(before + 1, before + 1 + len(written)))  # one token at a time
    assert rows >= set(range(before + 1, before + 1 + len(written)))  # and the map had each row


def test_switched_off_the_window_stays_with_what_was_typed(window: MainWindow) -> None:
    before, follow = ids_shown(window), panel(window).view.follow
    assert follow.isChecked()
    stepped(window, 2)
    press(follow, Qt.Key.Key_Space)
    settle(window)
    assert not window.session.state.document.view.follow
    assert ids_shown(window) == before
    stepped(window, 1)
    assert ids_shown(window) == before
    assert not window.session.state.document.view.lasting.follow  # remembered
    press(follow, Qt.Key.Key_Space)
    settle(window)
    assert ids_shown(window) == [*before, *window.session.state.document.branches.ids()]


def test_step_and_next_write_after_what_is_shown(window: MainWindow) -> None:
    stepped(window, 2)
    shown = ids_shown(window)
    window.input.step()
    wait_until(lambda: window.session.state.pending_step is None and window.is_settled())
    assert ids_shown(window)[:-1] == shown
    assert window.session.state.continuation == ()
    window.session.undo()
    settle(window)
    assert ids_shown(window) == shown
    window.dock_host.raise_panel("next")
    settle(window)
    view = window.session.state.results.of(PredictionView)
    assert view is not None
    bars = panel_of(window, NextTokenPanel).bars
    click(bars, bars.row_rect(1).center().toPoint())
    wait_until(lambda: window.session.state.pending_step is None and window.is_settled())
    assert ids_shown(window) == [*shown, view.predictions[0].candidates[1].id]


def test_an_edited_run_is_of_the_same_words(window: MainWindow) -> None:
    """What was written stays where a head is changed, so that before and after can be compared."""
    stepped(window, 3)
    shown = ids_shown(window)
    query, site = len(shown) - 1, window.session.state.selection.site
    blocked = Mask("painted", cells=((query, 1, False),), site=site, head=5)
    window.session.dispatch(PutIntervention(blocked))
    settle(window)
    state = window.session.state
    assert ids_shown(window) == shown
    assert state.ran is not None
    assert state.ran.inputs.interventions == (blocked,)
    assert state.selection.query == query
    head = state.results.of(HeadView)
    assert head is not None
    assert head.weights[query, 1] == 0
    stepped(window, 1)  # with its own way from the prompt on
    assert state.document.interventions
    assert len(ids_shown(window)) == len(shown) - 2
    window.session.undo()
    window.session.undo()
    settle(window)
    assert ids_shown(window) == shown


def test_what_was_written_is_on_screen_again_with_the_session(window: MainWindow) -> None:
    written = stepped(window, 3)
    window.session.dispatch(SelectQuery(len(ids_shown(window)) - 2))
    document = window.session.state.document
    window.session.dispatch(SetText("A cat"))
    settle(window)
    assert len(ids_shown(window)) < 6
    window.session.dispatch(RestoreDocument(document))
    settle(window)
    assert tuple(ids_shown(window)[-3:]) == written
    assert window.session.state.selection == document.selection


def test_a_beam_search_and_its_ribbons(qapp) -> None:
    with opened_window("en-es", "The black cat sleeps on the table.") as window:
        whole = ids_shown(window)
        window.dock_host.raise_panel("decoding")
        settle(window)
        pressed(window, "step")
        pressed(window, "step")
        player = panel(window).player
        assert player.is_beam
        assert tuple(ids_shown(window)[1:]) == player.shown_ids()
        assert player.work.search is not None
        player.pick(player.work.search.shown[-1].beams[1].node)
        settle(window)
        assert tuple(ids_shown(window)[1:]) == player.shown_ids()
        assert window.input.target.text.text()
        window.dock_host.raise_panel("alignment")
        settle(window)
        assert not panel_of(window, AlignmentPanel).is_waiting()
        window.dock_host.raise_panel("decoding")
        pressed(window, "restart")
        assert ids_shown(window) == whole  # its whole translation


def test_masks_are_filled_on_screen(qapp) -> None:
    with opened_window("story-bert", "Tom [MASK] to the [MASK].") as window:
        window.dock_host.raise_panel("decoding")
        settle(window)
        pressed(window, "step")
        answer = window.session.state.results.decoded
        assert isinstance(answer, DecodeStepView)
        state = window.session.state
        assert state.ran is not None
        assert answer.place is not None
        assert state.ran.continued == (answer.place,)
        assert state.ran.tokens[answer.place].id == answer.ids[0]
        assert state.selection.query == answer.place
        # the word that is masked next is one of the text that is read
        window.session.dispatch(SelectQuery(answer.place))
        window.input.mask_word()
        settle(window)
        assert window.session.state.document.text == "Tom [MASK] to the [MASK]."


def test_the_example_menu_begins_at_its_own_text(window: MainWindow) -> None:
    stepped(window, 2)
    assert window.session.state.continuation
    example = next(e for e in examples_of("story-gpt") if e.text == EXAMPLE)
    window.session.dispatch(ShowExample(example))
    settle(window)
    assert window.session.state.continuation == ()


@pytest.mark.full
@pytest.mark.parametrize("distance", ["model", "block"])
def test_flow_keeps_up_with_a_text_that_is_written_at_full_speed(qapp, distance: str) -> None:
    with opened_window(text=EXAMPLE, arrangement="flow") as window:
        window.dock_host.raise_panel("decoding")
        window.session.dispatch(SetView("distance", distance))
        settle(window)
        here: dict[int, set[type]] = {}  # by tokens: what of that run was here before the next one came
        kinds = (FlowView, PredictionView, HeadView, *((BlockView,) if distance == "block" else ()))

        def note(_old: object, new: State) -> None:
            ran = new.ran
            assert ran is not None
            views = [view for kind in kinds if (view := new.results.of(kind)) is not None]
            here.setdefault(len(ran.tokens), set()).update(type(v) for v in views if v.request.run == ran.run)

        player, transport = panel(window).player, panel(window).view.transport
        transport.speed.setValue(10)  # no pause between steps
        window.session.changed.connect(note)
        click(transport.play_button, transport.play_button.rect().center())
        wait_until(lambda: len(window.session.state.document.branches.path()) >= 8)
        player.play(False)
        wait_until(lambda: player.pending is None and window.is_settled())
        window.session.changed.disconnect(note)
        assert len(here) >= 8
        behind = [tokens for tokens, seen in here.items() if seen != set(kinds)]
        assert not behind
