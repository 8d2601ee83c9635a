"""Compare in the whole window with the real engine, held against two eager runs of transformers' own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu

import attention_models as models
from attention_explorer.panels.all_heads.panel import HeadAtlasPanel
from attention_explorer.panels.compare.compare_sentences import SAME
from attention_explorer.panels.compare.linked_maps import DIFFERENCE, A, B
from attention_explorer.panels.compare.panel import INVITATION, ComparePanel
from attention_explorer.panels.decoding.player_view import BRANCHES, CANDIDATES
from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.panels.masks.panel import MaskScalePanel
from attention_explorer.session.comparing import BEFORE
from attention_explorer.session.intents import (
    BlockCell,
    CompareWith,
    OpenCheckpoint,
    PutIntervention,
    SelectCell,
    SelectHead,
    SetText,
)
from attention_explorer.session.kept import Kept
from attention_explorer.session.state import Compared
from attention_explorer.widgets.heat_map.heat_map import HeatMap
from attention_explorer.widgets.number_text import percent_text
from attention_explorer.window.window import MainWindow
from attention_models.files.catalogue import WEIGHTS
from attention_models.protocol.interventions import Scale
from attention_models.protocol.two_runs import TwoRunsRequest, TwoRunsView
from attention_models.protocol.values import SiteRef
from tests.explorer.player_window import panel as player_of
from tests.explorer.player_window import pressed
from tests.explorer.real_window import (
    EXAMPLE,
    START,
    back_to_start,
    click,
    click_cell,
    destroy,
    opened_window,
    panel_of,
    paste,
    press,
    requests_of,
    settle,
    wait_until,
)
from tests.explorer.widgets.pointer import move_pointer
from tests.models import tiny

pytestmark = pytest.mark.x

CONTROL, ALT_SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier(0x0A000000)
OTHER = "Tom and Anna went to the park. Tom gave the ball to"
LONGER = "Tom and Anna went to the big park. Anna gave the ball to"
FIVE = SiteRef("decoder", 5)


@pytest.fixture(scope="module")
def model() -> models.Model:
    return models.open_checkpoint("story-gpt")


@pytest.fixture
def window(opened: MainWindow) -> Iterator[MainWindow]:
    back_to_start(opened)
    opened.dock_host.raise_panel("compare")
    settle(opened)
    yield opened
    opened.session.dispatch(CompareWith(None))
    opened.sessions.states.open(Kept())


def compare(window: MainWindow) -> ComparePanel:
    return panel_of(window, ComparePanel)


def map_of(window: MainWindow, which: int) -> HeatMap:
    return compare(window).page.linked.maps[which]


def view_of(window: MainWindow) -> TwoRunsView:
    view = window.session.state.results.of(TwoRunsView)
    assert view is not None
    return view


def b_of(window: MainWindow) -> Compared:
    b = window.session.state.document.compared
    assert b is not None
    return b


def type_b(window: MainWindow, text: str) -> None:
    """Into the field of the panel, as a stranger does."""
    field = compare(window).chooser.text
    click(field, field.rect().center())
    press(field, Qt.Key.Key_A, CONTROL)
    QTest.keyClicks(field, text)
    press(field, Qt.Key.Key_Return)
    settle(window)


def click_place(window: MainWindow, which: int, query: int, key: int) -> None:
    one = map_of(window, which)
    click(one, one.cell_rect(query, key).center().toPoint())


def said(window: MainWindow) -> list[tuple[str, str]]:
    """What stands in large type over A and B."""
    return [output.said for output in compare(window).page.outputs[:DIFFERENCE]]


def likeliest(model: models.Model, text: str) -> tuple[str, str]:
    with torch.no_grad():
        shares = tiny.eager_run(model, text).logits[0, -1].double().softmax(-1)
    return model.piece_label(int(shares.argmax())).lstrip("␣"), percent_text(float(shares.max()))


def actions_of(menu: QMenu | None) -> dict[str, QAction]:
    assert menu is not None
    return {action.text(): action for action in menu.actions() if action.text()}


def test_one_key_makes_b_of_what_is_open_and_typing_moves_a_alone(window: MainWindow, model: models.Model) -> None:
    window.dock_host.raise_panel("flow")
    window.input.text.setFocus()
    press(window.input.text, Qt.Key.Key_B, CONTROL)
    assert "compare" in window.dock_host.front_panels()
    assert window.input.text.hasFocus()  # one types on
    assert b_of(window).inputs == window.session.state.inputs
    paste(window, OTHER)
    settle(window)
    assert said(window) == [likeliest(model, OTHER), likeliest(model, EXAMPLE)]
    assert said(window)[1] == ("Tom", "67.9 %")
    own = [tiny.eager_run(model, text).attentions[5][0, 5].numpy() for text in (OTHER, EXAMPLE)]
    maps = view_of(window).maps
    assert maps is not None
    np.testing.assert_allclose(maps.a, own[0], atol=1e-6, rtol=0)
    np.testing.assert_allclose(maps.b, own[1], atol=1e-6, rtol=0)
    np.testing.assert_allclose(maps.difference, own[0] - own[1], atol=2e-6, rtol=0)
    readout = map_of(window, DIFFERENCE).readout(13, 3)
    assert readout.startswith("“to” looks at “Anna”: A − B ")
    assert float(readout.rsplit(" ", 1)[1].replace("\N{MINUS SIGN}", "-")) == pytest.approx(
        float(own[0][13, 3] - own[1][13, 3]), abs=6e-4
    )


def test_a_stranger_reads_what_b_is_and_types_it(window: MainWindow, model: models.Model) -> None:
    pages = compare(window).pages
    assert pages.reason.text() == INVITATION
    type_b(window, OTHER)
    assert said(window) == [likeliest(model, EXAMPLE), likeliest(model, OTHER)]
    assert compare(window).card.findChild(QMenu) is None
    chooser = compare(window).chooser
    assert (chooser.text.text(), chooser.checkpoint.currentData()) == (OTHER, "story-gpt")
    press(chooser.text, Qt.Key.Key_X)
    press(chooser.text, Qt.Key.Key_Escape)
    assert (chooser.text.text(), b_of(window).document.text) == (OTHER, OTHER)


def test_the_button_of_the_invitation_makes_b(window: MainWindow) -> None:
    button = compare(window).pages.button
    click(button, button.rect().center())
    settle(window)
    assert b_of(window).inputs == window.session.state.inputs


def test_a_state_beside_itself_differs_by_nothing_and_says_so(window: MainWindow) -> None:
    window.menus["as_b"].trigger()
    settle(window)
    view = view_of(window)
    assert view.maps is not None
    assert float(np.abs(np.nan_to_num(view.maps.difference)).max()) == 0.0
    assert all(change.change == 0 for change in view.changes)
    assert compare(window).page.remarks.text() == SAME
    assert said(window)[0] == said(window)[1]
    assert compare(window).page.outputs[DIFFERENCE].said == ("0", "")


def test_before_and_after_the_blocked_cell(window: MainWindow) -> None:
    """The cell that the tour blocks: 67.9 % before, 36.6 % after."""
    window.session.dispatch(BlockCell(True))
    window.dock_host.raise_panel("masks")
    settle(window)
    button = panel_of(window, MaskScalePanel).list.compare_button
    click(button, button.rect().center())
    settle(window)
    assert "compare" in window.dock_host.front_panels()
    assert said(window) == [("Tom", "36.6 %"), ("Tom", "67.9 %")]
    assert b_of(window).name == BEFORE
    first = view_of(window).changed_most[0]
    assert (first.site, first.head) == (FIVE, 5)
    assert "masked" in map_of(window, A).readout(13, 1)
    assert "masked" not in map_of(window, B).readout(13, 1)


def test_hover_and_selection_go_through_all_maps_and_panels(window: MainWindow) -> None:
    type_b(window, LONGER)
    heads = panel_of(window, HeadMapPanel)
    window.dock_host.raise_panel("map")
    settle(window)
    click_place(window, B, 9, 3)  # after "big", which A has not
    assert (window.session.state.selection.query, window.session.state.selection.key) == (8, 3)
    settle(window)
    assert [one.selection for one in compare(window).page.linked.maps] == [(9, 3)] * 3
    assert heads.map.selection == (8, 3)
    click_cell(window, 7, 2)
    settle(window)
    assert [one.selection for one in compare(window).page.linked.maps] == [(8, 2)] * 3
    one = map_of(window, DIFFERENCE)
    move_pointer(one, one.cell_rect(10, 4).center().toPoint())
    assert (window.hover.pointed.query, window.hover.pointed.key) == (9, 4)
    assert [each._hover for each in compare(window).page.linked.maps] == [(10, 4)] * 3
    move_pointer(heads.map, heads.map.cell_rect(12, 11).center().toPoint())
    assert [each._hover for each in compare(window).page.linked.maps] == [(13, 12)] * 3


def test_a_token_that_only_b_has_is_chosen_in_compare_alone(window: MainWindow) -> None:
    type_b(window, LONGER)
    before = window.session.state.selection
    click_place(window, B, 13, 7)
    assert window.session.state.selection == before
    assert [one.selection for one in compare(window).page.linked.maps] == [(13, 7)] * 3
    one = map_of(window, A)
    assert one.readout(13, 7) == "“ball” and “·”: not in A"
    assert map_of(window, DIFFERENCE).readout(13, 7) == "“ball” and “big”: not in both"
    assert map_of(window, B).readout(13, 7).startswith("“ball” looks at “big”: 0.")
    window.session.dispatch(SelectCell(5, 1))
    settle(window)
    assert map_of(window, B).selection == (5, 1)


def test_the_maps_zoom_together(window: MainWindow) -> None:
    type_b(window, OTHER)
    one = map_of(window, A)
    one.setFocus()
    for _ in range(3):
        press(one, Qt.Key.Key_Plus)
    assert one.view.zoom > 2
    for each in compare(window).page.linked.maps:
        assert each.view.place == pytest.approx(one.view.place, abs=1e-6)
    other = map_of(window, DIFFERENCE)
    other.setFocus()
    press(other, Qt.Key.Key_0)
    assert {each.view.zoom for each in compare(window).page.linked.maps} == {1.0}


def test_how_tokens_are_aligned_is_shown_and_walked(window: MainWindow) -> None:
    type_b(window, LONGER)
    strip = compare(window).page.strip
    assert compare(window).page.strip_area.isVisible()
    assert strip.accessibleDescription() == "“big”: only in B"
    assert "1 token only in B" in compare(window).page.legend.text()
    click(strip, strip.row_rect(9).center().toPoint())
    assert window.session.state.selection.key == 8
    type_b(window, OTHER)
    assert strip.accessibleDescription() == "“Anna” of A stands where B has “Tom”"
    type_b(window, EXAMPLE)
    assert not compare(window).page.strip_area.isVisible()


def test_a_head_of_the_list_is_shown_in_both_and_everywhere(window: MainWindow) -> None:
    type_b(window, OTHER)
    rows = compare(window).page.ranking.list
    second = view_of(window).changed_most[1]
    click(rows.viewport(), rows.visualItemRect(rows.item(1)).center())
    settle(window)
    selection = window.session.state.selection
    assert (selection.site, selection.head) == (second.site, second.head)
    view = view_of(window)
    assert (view.a.site, view.a.head, view.b.site, view.b.head) == (second.site, second.head) * 2
    changes = [change.change for change in view.changed_most]
    assert changes == sorted(changes, reverse=True)
    assert len(changes) == 64


def test_the_first_of_the_list_is_the_head_whose_rows_differ_most(window: MainWindow, model: models.Model) -> None:
    type_b(window, OTHER)
    runs = [tiny.eager_run(model, text).attentions for text in (EXAMPLE, OTHER)]
    apart = np.array([(a - b).abs().sum(-1).mean(-1)[0].numpy() / 2 for a, b in zip(*runs, strict=True)])
    first = view_of(window).changed_most[0]
    assert 8 * first.site.layer + first.head == apart.argmax()
    assert first.change == pytest.approx(apart.max(), abs=1e-5)


def test_two_heads_of_one_run_from_the_menu_of_a_head(window: MainWindow, model: models.Model) -> None:
    menu = panel_of(window, HeadAtlasPanel).head_menu(SiteRef("decoder", 2), 3)
    actions_of(menu)["As B, to compare with another"].trigger()
    assert menu is not None
    destroy(menu)
    settle(window)
    own = tiny.eager_run(model, EXAMPLE).attentions
    maps = view_of(window).maps
    assert maps is not None
    np.testing.assert_allclose(maps.b, own[2][0, 3].numpy(), atol=1e-6, rtol=0)
    np.testing.assert_allclose(maps.difference, (own[5][0, 5] - own[2][0, 3]).numpy(), atol=2e-6, rtol=0)
    window.input.text.setFocus()
    press(window.input.text, Qt.Key.Key_Right, ALT_SHIFT)
    press(window.input.text, Qt.Key.Key_Down, ALT_SHIFT)
    settle(window)
    assert (b_of(window).document.selection.site, b_of(window).document.selection.head) == (SiteRef("decoder", 3), 3)
    box = compare(window).page.head_of_b
    box.setCurrentIndex(0)
    box.activated.emit(0)
    settle(window)
    assert (view_of(window).b.site, view_of(window).b.head) == (FIVE, 5)


def test_heads_are_matched_by_what_they_are_like(window: MainWindow) -> None:
    type_b(window, OTHER)
    assert view_of(window).matching == "index"
    button = compare(window).page.matching.button(1)
    click(button, button.rect().center())
    settle(window)
    view = view_of(window)
    assert view.matching == "similarity"
    assert "most like A's" in compare(window).page.head_of_b.toolTip()
    click(compare(window).page.matching.button(0), button.rect().center())


def test_the_way_of_matching_that_is_in_force_is_the_one_that_is_pressed(window: MainWindow) -> None:
    """Heads of the same number are no counterparts in a model of another shape; what was chosen comes back."""
    type_b(window, OTHER)
    page, box = compare(window).page, compare(window).chooser.checkpoint
    for reference, alike in (("story-bert", True), ("story-gpt", False)):
        box.setCurrentIndex(box.findData(reference))
        box.activated.emit(box.currentIndex())
        settle(window)
        assert (view_of(window).matching == "similarity") == alike
        assert page.matching.current == int(alike)
        assert page.matching.button(0).isEnabled() != alike
        assert ("no counterparts" in page.matching.button(0).toolTip()) == alike
        assert page.wished == 0


def test_swapping_and_undoing_with_keys(window: MainWindow) -> None:
    type_b(window, OTHER)
    before = window.session.state.document
    window.input.text.setFocus()
    press(window.input.text, Qt.Key.Key_E, CONTROL)
    settle(window)
    assert (window.session.state.document.text, b_of(window).document.text) == (OTHER, EXAMPLE)
    assert window.input.text.toPlainText() == OTHER
    press(window.input.text, Qt.Key.Key_Z, CONTROL)
    settle(window)
    assert window.session.state.document == before
    press(window.input.text, Qt.Key.Key_Z, CONTROL)
    settle(window)
    assert window.session.state.document == START
    assert compare(window).pages.reason.text() == INVITATION
    press(window.input.text, Qt.Key.Key_Y, CONTROL)
    settle(window)
    assert b_of(window).document.text == OTHER
    assert said(window)[0] == ("Tom", "67.9 %")


def test_a_session_file_brings_b_back(window: MainWindow, tmp_path: Path) -> None:
    window.session.dispatch(PutIntervention(Scale(0.5)))
    window.menus["as_b"].trigger()
    window.session.dispatch(SetText(OTHER))
    window.session.dispatch(SelectHead(FIVE, 2))
    settle(window)
    before, figures = window.session.state.document, said(window)
    path = tmp_path / "two.attn"
    window.sessions._write(path)
    wait_until(path.exists)
    settle(window)
    back_to_start(window)
    assert window.session.state.document.compared is None
    window.sessions.open_path(path)
    wait_until(lambda: window.session.state.document.compared is not None)
    settle(window)
    assert window.session.state.document == before
    assert said(window) == figures
    window.sessions.path = None


def test_a_kept_state_becomes_b(window: MainWindow) -> None:
    window.sessions.keep("here")
    window.session.dispatch(SetText(OTHER))
    settle(window)
    listed = next(menu for menu in window.menuBar().findChildren(QMenu) if menu.title() == "A kept state as B")
    actions_of(listed)["here"].trigger()
    settle(window)
    assert (b_of(window).name, b_of(window).inputs.prompt) == ("here", EXAMPLE)
    window.session.dispatch(CompareWith(None))
    window.show_notes()
    notes = window._notes
    assert notes is not None
    notes.list.setCurrentRow(0)
    click(notes.as_b, notes.as_b.rect().center())
    notes.close()
    destroy(notes)
    window._notes = None
    settle(window)
    assert b_of(window).name == "here"
    window.sessions.keep("there")
    window.sessions.states.renew(1, replace(window.sessions.states.kept.states[1], document=START))
    window.sessions.go_to(1)
    wait_until(lambda: window.session.state.document.text == EXAMPLE)
    assert b_of(window).name == "here"  # it stays beside a state that has none of its own


def test_a_branch_of_decode_becomes_b(window: MainWindow) -> None:
    window.dock_host.raise_panel("decoding")
    settle(window)
    decode = player_of(window)
    pressed(window, decode.view.transport.step_button)
    pressed(window, decode.view.tabs.button(CANDIDATES))
    click(decode.view.candidates.bars, decode.view.candidates.bars.row_rect(1).center().toPoint())
    wait_until(lambda: window.session.state.document.branches.path()[-1].label == "␣Ben")
    pressed(window, decode.view.tabs.button(BRANCHES))
    settle(window)
    click(decode.view.branches.as_b, decode.view.branches.as_b.rect().center())
    settle(window)
    tom, ben = b_of(window).continuation, window.session.state.continuation
    assert len(tom) == len(ben) == 1
    assert tom != ben
    view = view_of(window)
    assert [side.tokens[-1].label for side in (view.a, view.b)] == ["␣Ben", "␣Tom"]


@pytest.mark.full
@pytest.mark.parametrize("reference", ["recurrent-en-es-bottleneck", "recurrent-en-es-bahdanau"])
def test_translators_on_one_sentence(qapp: object, reference: str) -> None:
    """What each writes in large type is what it writes by itself; what cannot be compared is a sentence."""
    sentence = "The black cat is sleeping."
    with opened_window("en-es", sentence) as window:
        window.dock_host.raise_panel("compare")
        settle(window)
        box = compare(window).chooser.checkpoint
        box.setCurrentIndex(box.findData(reference))
        box.activated.emit(box.currentIndex())
        settle(window)
        both = (models.open_checkpoint(name) for name in ("en-es", reference))
        written = [models.decode(one, sentence, strategy="beam") for one in both]
        assert [words for words, _ in said(window)] == [list(steps)[-1].text.strip() for steps in written]
        assert b_of(window).document.checkpoint == reference
        told = compare(window).page.remarks.text()
        assert reference in told
        if reference == "recurrent-en-es-bottleneck":
            assert view_of(window).maps is None
            return
        assert window.session.state.site is not None
        assert window.session.state.site.stack == "cross"
        maps = view_of(window).maps  # its only head stands beside the one that is selected, matched or not
        assert maps is not None
        trace = models.run(models.open_checkpoint(reference), sentence, target=said(window)[1][0])
        own_weights, view = trace.weights(trace.sites[0], 0), view_of(window)
        assert view.queries is not None
        assert view.keys is not None
        compared = 0
        for (i, row), (j, column) in product(enumerate(view.queries.places), enumerate(view.keys.places)):
            if row.is_single and column.is_single:
                assert maps.b[i, j] == pytest.approx(float(own_weights[row.b[0], column.b[0]]), abs=1e-6)
                compared += 1
        assert compared >= 9


def test_a_checkpoint_that_has_gone_is_said_by_name_and_a_stays(window: MainWindow, tmp_path: Path) -> None:
    gone = Path(shutil.copytree(WEIGHTS / "story-gpt", tmp_path / "mine"))
    b = Compared(replace(START, checkpoint=str(gone), text=OTHER))
    shutil.move(gone, tmp_path / "elsewhere")
    window.session.dispatch(CompareWith(b))
    settle(window)
    pages = compare(window).pages
    wait_until(lambda: pages.button.text() == "Try again")
    assert str(gone) in pages.reason.text()
    assert window.session.state.ran is not None
    assert window.session.state.document == replace(START, compared=b)
    assert window.session.state.notice is None
    with requests_of(window) as asked:
        window.session.dispatch(SelectHead(FIVE, 2))
        settle(window)
    assert not [request for request in asked if isinstance(request, TwoRunsRequest)]  # it would fail again
    shutil.move(tmp_path / "elsewhere", gone)
    click(pages.button, pages.button.rect().center())
    settle(window)
    assert pages.currentIndex() == 1
    assert said(window)[0] == ("Tom", "67.9 %")


def test_a_changed_checkpoint_of_b_is_said_when_the_session_opens(window: MainWindow, tmp_path: Path) -> None:
    mine = Path(shutil.copytree(WEIGHTS / "story-gpt", tmp_path / "mine"))
    window.session.dispatch(CompareWith(Compared(replace(START, checkpoint=str(mine)))))
    settle(window)
    path = tmp_path / "two.attn"
    window.sessions._write(path)
    wait_until(path.exists)
    settle(window)
    config = mine / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"note": 1}))
    back_to_start(window)
    window.sessions.open_path(path)
    wait_until(lambda: window.contents.session_bar.isVisible())
    assert window.contents.session_bar.text == (
        "The checkpoint of B, mine, is another than when the session was saved: config.json has other contents."
    )
    settle(window)
    assert said(window)[0] == ("Tom", "67.9 %")
    window.session.dispatch(CompareWith(None))
    assert not window.contents.session_bar.isVisible()
    window.sessions.path = None


def test_typing_in_a_while_b_is_opened_and_run(window: MainWindow) -> None:
    window.session.dispatch(CompareWith(Compared(replace(START, checkpoint="story-bert", text="Tom and Anna"))))
    paste(window, OTHER)
    settle(window)
    view = view_of(window)
    assert view.a.text == OTHER
    assert view.b.reference == "story-bert"
    assert window.session.state.results.loaded is not None
    assert window.session.state.results.loaded.info.reference == "story-gpt"


def test_cancelling_b_leaves_a_and_can_be_taken_back(window: MainWindow) -> None:
    window.session.dispatch(CompareWith(Compared(replace(START, text=OTHER))))
    compare(window).work.cancelled.emit()  # before the engine has answered
    settle(window)
    pages = compare(window).pages
    assert (pages.reason.text(), pages.button.text()) == ("B was not run.", "Run B")
    with requests_of(window) as asked:
        window.session.dispatch(SelectHead(FIVE, 2))
        window.session.dispatch(SelectCell(9, 1))
        settle(window)
    assert not [request for request in asked if isinstance(request, TwoRunsRequest)]  # it stays off
    assert pages.button.text() == "Run B"
    assert window.session.state.ran is not None
    click(pages.button, pages.button.rect().center())
    settle(window)
    assert pages.currentIndex() == 1
    assert view_of(window).b.text == OTHER


def test_letting_go_empties_the_panel_and_undo_brings_b_back(window: MainWindow) -> None:
    type_b(window, OTHER)
    drop = compare(window).chooser.drop
    click(drop, drop.rect().center())
    settle(window)
    assert window.session.state.document.compared is None
    assert compare(window).pages.reason.text() == INVITATION
    assert not drop.isEnabled()
    window.session.undo()
    settle(window)
    assert said(window)[0] == ("Tom", "67.9 %")


def test_a_refused_b_is_said_and_the_one_before_stays(window: MainWindow) -> None:
    type_b(window, OTHER)
    field = compare(window).chooser.text
    field.setFocus()
    field.setText("a" * 200_001)
    field.setModified(True)
    press(field, Qt.Key.Key_Return)
    settle(window)
    assert b_of(window).document.text in (OTHER, "a" * 200_000)


def test_another_checkpoint_in_a_beside_the_same_text(window: MainWindow) -> None:
    paste(window, OTHER)
    settle(window)
    window.menus["as_b"].trigger()
    window.session.dispatch(OpenCheckpoint("story-bert"))
    settle(window)
    view = view_of(window)
    assert (view.a.reference, view.b.reference) == ("story-bert", "story-gpt")
    assert view.keys is not None
    shared = [place for place in view.keys.places if place.is_shared and place.same]
    named = [view.a.tokens[place.a[0]].word for place in shared if not view.a.tokens[place.a[0]].special]
    assert [word.lower() for word in OTHER.replace(".", " .").split()] == [word.lower() for word in named]
    assert compare(window).page.strip_area.isVisible()
