"""The real window with the recurrent models open: every panel shows them, or says in a sentence why not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from attention_explorer.panels.cell.panel import CellPanel
from attention_explorer.panels.decoding.panel import DecodingPanel
from attention_explorer.panels.decoding.player_view import CACHE
from attention_explorer.panels.hidden.panel import RecurrentPanel
from attention_explorer.panels.lookup.panel import LookupPanel
from attention_explorer.panels.masks.panel import MaskScalePanel
from attention_explorer.panels.positions.panel import PositionsPanel
from attention_explorer.panels.trust.panel import TrustStrip
from attention_explorer.panels.variance.panel import VariancePanel
from attention_explorer.session.intents import OpenCheckpoint, SelectCell
from attention_explorer.window.window import MainWindow
from attention_models import open_checkpoint, run
from tests.explorer.real_window import opened_window, panel_of, settle, wait_until

TEXT = "Thursday, 5 March 1998"
MODELS = ("dates-bahdanau", "dates-luong", "dates-bottleneck")


@pytest.fixture(scope="module")
def opened(qapp) -> Iterator[MainWindow]:
    with opened_window("dates-bahdanau", TEXT) as window:
        yield window


@pytest.fixture(params=MODELS)
def window(opened: MainWindow, request) -> MainWindow:
    opened.session.dispatch(OpenCheckpoint(request.param))
    wait_until(lambda: opened.session.state.document.checkpoint == request.param and opened.is_settled())
    return opened


def front(window: MainWindow, name: str) -> None:
    window.dock_host.raise_panel(name)
    settle(window)


def attends(window: MainWindow) -> bool:
    return window.session.state.document.checkpoint != "dates-bottleneck"


def test_every_panel_settles_without_a_complaint(window):
    assert window.session.state.ran.written == "1998-03-05"
    for panel in window.panels:
        front(window, panel.name)
        assert window.session.state.notice is None, panel.name
        shown = [label.text() for label in panel.findChildren(QLabel) if label.isVisible()]
        assert not [text for text in shown if "None" in text or "nan" in text.lower().split()], panel.name


def test_the_hidden_states_are_the_models_own(window):
    front(window, "recurrent")
    panel = panel_of(window, RecurrentPanel)
    model = open_checkpoint(window.session.state.document.checkpoint)
    trace = run(model, TEXT, target="1998-03-05")
    window.session.dispatch(SelectCell(6, 13))
    settle(window)
    if attends(window):
        np.testing.assert_allclose(panel.encoder.lanes[1].values, trace.weights(0, 0)[6], atol=1e-6)
        assert panel.sentence.text().startswith("Step 7 of 11: “0” goes in, “3” comes out. It looks most at")
    else:
        assert "one vector of 96 numbers" in panel.sentence.text()
        assert np.ptp(panel.decoder.bands[0].values, axis=0).max() == 0


def test_the_chip_names_the_formulas(window):
    strip = window.top_bar.findChild(TrustStrip)
    assert strip is not None
    wait_until(lambda: strip.equal.kind == "ok")
    assert strip.equal.text.startswith("✓ equals the formulas")


def test_what_is_not_for_these_models_is_said(window, qtbot):
    front(window, "masks")
    assert panel_of(window, MaskScalePanel).refusal.isVisible()
    front(window, "variance")
    assert "is recurrent" in panel_of(window, VariancePanel).real.text()
    front(window, "positions")
    positions = panel_of(window, PositionsPanel)
    for page in (1, 2):
        positions.show_page(page)
        settle(window)
        assert positions.nothing.isVisible() is not attends(window)
    positions.show_page(1)
    settle(window)
    assert not attends(window) or positions.scheme.title.text() == "No positions, and none needed"
    positions.show_page(0)
    front(window, "lookup")
    said = panel_of(window, LookupPanel).head.sentence.text()
    assert ("looks up" in said) is attends(window)
    front(window, "cell")
    cell = panel_of(window, CellPanel)
    assert cell.empty.isVisible() is not attends(window)


def test_a_click_in_the_strip_moves_the_selection(window, qtbot):
    front(window, "recurrent")
    panel = panel_of(window, RecurrentPanel)
    at = panel.decoder.column_rect(3).center().toPoint()
    qtbot.mouseClick(panel.decoder, Qt.MouseButton.LeftButton, pos=at)
    settle(window)
    assert window.session.state.selection.query == 3
    assert panel.decoder.selected == 3


def test_the_player_says_what_a_recurrent_model_keeps(window):
    front(window, "decoding")
    panel = panel_of(window, DecodingPanel)
    panel.view.tabs.button(CACHE).click()
    panel.view.transport.step_button.click()
    wait_until(lambda: window.session.state.pending_step is None and not window.bridge.busy)
    assert panel.view.cache.words.text().endswith("kB are kept for the next step.")
    assert panel.view.cache.bars.empty_text.startswith("No keys and values: a recurrent model goes on from its state")
