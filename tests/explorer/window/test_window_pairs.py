"""A window in which story-bert reads two texts, driven by keyboard and mouse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.session.intents import OpenCheckpoint, RestoreDocument, SetSecond, Show
from attention_explorer.session.state import Document
from attention_explorer.window.window import MainWindow
from attention_models import open_checkpoint, run
from attention_models.protocol.chat import Pair
from attention_models.protocol.head import HeadView
from attention_models.protocol.trust import TrustReport
from attention_models.protocol.values import Token
from tests.explorer import documents
from tests.explorer.real_window import click, opened_window, panel_of, press, settle, wait_until

pytestmark = pytest.mark.x

FIRST, SECOND = "Tom went to the park.", "Anna has a ball."


@pytest.fixture(scope="module")
def shared(qapp) -> Iterator[MainWindow]:
    with opened_window("story-bert", FIRST) as window:
        yield window


@pytest.fixture
def window(shared: MainWindow) -> MainWindow:
    shared.session.dispatch(RestoreDocument(Document(checkpoint="story-bert", text=FIRST)))
    shared.session.dispatch(Show(None))
    settle(shared)
    return shared


def tokens_of(window: MainWindow) -> tuple[Token, ...]:
    ran = window.session.state.ran
    assert ran is not None
    return ran.tokens


def typed_pair(window: MainWindow) -> None:
    window.input.text.setFocus()
    press(window, Qt.Key.Key_B, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    assert window.input.pair.text.hasFocus()
    QTest.keyClicks(window.input.pair.text, SECOND)
    settle(window)


def test_the_second_text_is_typed_and_both_are_run(window: MainWindow) -> None:
    assert window.input.pair.text.isHidden()
    height = window.input.height()
    typed_pair(window)
    state = window.session.state
    assert state.document.prompt == Pair(FIRST, SECOND)
    trace = run(open_checkpoint("story-bert"), (FIRST, SECOND))
    ran, view = state.ran, state.results.of(HeadView)
    assert ran is not None
    assert view is not None
    assert ran.tokens == trace.tokens
    np.testing.assert_array_equal(view.weights, trace.weights(view.request.site, view.request.head))
    wait_until(lambda: window.session.state.results.of(TrustReport) is not None)  # it waits for a pause
    report = window.session.state.results.of(TrustReport)
    assert report is not None
    assert report.holds
    assert [chip.turn for chip in window.input.strip.chips] == ["first"] * 8 + ["second"] * 6
    assert window.input.pair.legend.isVisible()
    assert window.height() == 800
    assert window.input.height() <= height + 60


def test_it_is_reached_by_tab_and_its_button_by_space(window: MainWindow) -> None:
    window.input.text.setFocus()
    QTest.keyClick(window.input.text, Qt.Key.Key_Tab)
    assert window.input.pair.add.hasFocus()
    QTest.keyClick(window.input.pair.add, Qt.Key.Key_Space)
    assert window.input.pair.text.hasFocus()
    assert window.session.state.document.prompt == FIRST  # nothing was said in it yet
    QTest.keyClick(window.input.pair.text, Qt.Key.Key_Tab)
    assert window.input.pair.remove.hasFocus()
    QTest.keyClick(window.input.pair.remove, Qt.Key.Key_Space)
    assert window.input.pair.text.isHidden()
    assert window.input.text.hasFocus()


def test_undo_takes_the_words_back_and_closes_the_field(window: MainWindow) -> None:
    typed_pair(window)
    while window.session.state.document.second is not None:
        window.session.undo()
    settle(window)
    assert window.input.pair.text.isHidden()
    window.session.redo()
    while window.session.can_redo:
        window.session.redo()
    settle(window)
    assert window.input.pair.text.text() == SECOND


def test_a_session_file_holds_it(window: MainWindow, tmp_path: Path) -> None:
    typed_pair(window)
    document = window.session.state.document
    documents.save(document, tmp_path / "a.json")
    assert documents.load(tmp_path / "a.json").prompt == Pair(FIRST, SECOND)


def test_mask_and_step_work_in_the_second_text(window: MainWindow) -> None:
    typed_pair(window)
    place = next(i for i, token in enumerate(tokens_of(window)) if token.text == "ball")
    click(window.input.strip, window.input.strip.chip_rect(place).center().toPoint())
    press(window, Qt.Key.Key_M, Qt.KeyboardModifier.ControlModifier)
    settle(window)
    assert window.session.state.document.prompt == Pair(FIRST, "Anna has a [MASK].")
    press(window, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    settle(window)
    filled = window.session.state.document.prompt
    assert isinstance(filled, Pair)
    assert filled.first == FIRST
    assert filled.second.startswith("Anna has a ")
    assert "[MASK]" not in filled.second


def test_a_block_is_shown_alone(window: MainWindow) -> None:
    typed_pair(window)
    panel = panel_of(window, HeadMapPanel)
    assert panel.blocks.isVisible()
    panel.blocks.setFocus()
    for _ in range(2):
        QTest.keyClick(panel.blocks, Qt.Key.Key_Down)
    assert window.session.state.document.view.block == "ab"
    assert (panel.map.view.rows.visible(), panel.map.view.columns.visible()) == (range(8), range(8, 14))
    window.session.dispatch(SetSecond(None))
    settle(window)
    assert panel.blocks.isHidden()
    assert panel.map.view.columns.visible() == range(8)


def test_a_typed_separator_offers_the_field(window: MainWindow) -> None:
    window.input.text.setFocus()
    window.input.text.selectAll()
    QTest.keyClicks(window.input.text, f"{FIRST} [SEP] {SECOND}")
    settle(window)
    assert "“[SEP]” was typed" in window.input.remark.text()
    click(window.input.mend_button, window.input.mend_button.rect().center())
    settle(window)
    assert window.session.state.document.prompt == Pair(FIRST, SECOND)
    assert window.input.mend_button.isHidden()
    assert window.input.remark.text() == ""


def test_typed_padding_offers_its_mask(window: MainWindow) -> None:
    window.input.text.setFocus()
    window.input.text.selectAll()
    QTest.keyClicks(window.input.text, "Tom went home [PAD] [PAD]")
    settle(window)
    assert "“[PAD]” was typed" in window.input.remark.text()
    click(window.input.mend_button, window.input.mend_button.rect().center())
    settle(window)
    view = window.session.state.results.of(HeadView)
    assert view is not None
    places = [i for i, token in enumerate(tokens_of(window)) if token.piece == "[PAD]"]
    assert len(places) == 2
    assert (view.weights[:, places] == 0).all()
    assert window.input.mend_button.isHidden()


def test_another_model_takes_it_out_with_a_sentence(window: MainWindow) -> None:
    typed_pair(window)
    window.session.dispatch(OpenCheckpoint("story-gpt"))
    wait_until(lambda: window.session.state.loading is None)
    settle(window)
    assert window.session.state.document.second is None
    assert window.input.pair.add.isHidden()
    window.session.dispatch(OpenCheckpoint("story-bert"))
    wait_until(lambda: window.session.state.loading is None)
    settle(window)
