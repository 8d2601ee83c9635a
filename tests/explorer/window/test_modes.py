"""What a click does for the time being (painting, playing) ends with the panel that has its buttons, and with Esc."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu

from attention_explorer.panels.decoding.panel import DecodingPanel
from attention_explorer.panels.flow.panel import FlowPanel
from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.panels.masks.panel import MaskScalePanel
from attention_explorer.session.intents import SetView
from attention_explorer.session.view_options import ViewOptions
from attention_explorer.widgets.heat_map.heat_map import HeatMap
from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import click, click_cell, panel_of, press, settle, wait_until
from tests.explorer.widgets.pointer import move_pointer

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)  # offscreen, of a menu that opens

LEFT = Qt.MouseButton.LeftButton
ESCAPE = Qt.Key.Key_Escape


@pytest.fixture
def painting(window: MainWindow) -> MainWindow:
    """With the brush in the hand, as a person takes it."""
    window.activateWindow()
    window.dock_host.raise_panel("masks")
    settle(window)
    button = panel_of(window, MaskScalePanel).mask_knobs.brushes["block"]
    click(button, button.rect().center())
    assert brush(window) == "block"
    assert heat_map(window).cursor().shape() == Qt.CursorShape.CrossCursor
    return window


def brush(window: MainWindow) -> str:
    return window.session.state.document.view.painting


def heat_map(window: MainWindow) -> HeatMap:
    return panel_of(window, HeadMapPanel).map


def painted(shown: HeatMap) -> int:
    """Cells of the stroke that is not finished."""
    return len(shown.stroke)


def edits(window: MainWindow) -> int:
    return len(window.session.state.document.interventions)


def selects(window: MainWindow) -> bool:
    """Whether a click on a cell selects it, and paints nothing."""
    click_cell(window, 6, 2)
    selection = window.session.state.selection
    return (selection.query, selection.key) == (6, 2) and not window.session.state.document.interventions


@pytest.mark.full
def test_another_panel_in_front_ends_painting(painting: MainWindow) -> None:
    painting.dock_host.raise_panel("cell")
    settle(painting)
    assert brush(painting) == "off"
    assert heat_map(painting).cursor().shape() == Qt.CursorShape.ArrowCursor
    assert selects(painting)


def test_a_closed_panel_ends_painting(painting: MainWindow) -> None:
    painting.dock_host.docks["masks"].hide()
    assert brush(painting) == "off"
    painting.dock_host.raise_panel("masks")
    assert brush(painting) == "off"


@pytest.mark.parametrize("where", ["button", "input", "map"])
def test_escape_ends_painting_wherever_the_keyboard_is(painting: MainWindow, where: str) -> None:
    masks = panel_of(painting, MaskScalePanel)
    brushes = masks.mask_knobs.brushes
    widget = {"button": brushes["block"], "input": painting.input.text, "map": heat_map(painting)}[where]
    widget.setFocus()
    press(widget, ESCAPE)
    assert brush(painting) == "off"
    assert not brushes["block"].isChecked()
    assert selects(painting)


def test_escape_first_drops_the_stroke(painting: MainWindow) -> None:
    shown = heat_map(painting)
    shown.setFocus()
    QTest.mousePress(shown, LEFT, Qt.KeyboardModifier.NoModifier, shown.cell_rect(6, 2).center().toPoint())
    move_pointer(shown, shown.cell_rect(6, 4).center().toPoint(), LEFT)
    assert painted(shown) == 3
    press(shown, ESCAPE)
    assert painted(shown) == 0
    assert brush(painting) == "block"
    QTest.mouseRelease(shown, LEFT, Qt.KeyboardModifier.NoModifier, shown.cell_rect(6, 4).center().toPoint())
    assert not painting.session.state.document.interventions
    press(shown, ESCAPE)
    assert brush(painting) == "off"


def test_undo_takes_back_what_was_painted_and_leaves_the_brush(painting: MainWindow) -> None:
    click_cell(painting, 6, 2)
    assert edits(painting) == 1
    painting.session.undo()
    assert edits(painting) == 0
    assert brush(painting) == "block"
    painting.session.redo()
    assert edits(painting) == 1
    press(heat_map(painting), ESCAPE)
    painting.session.undo()
    assert brush(painting) == "off"
    assert edits(painting) == 0


def test_what_was_being_done_is_not_remembered(window: MainWindow) -> None:
    for option, value in (("painting", "allow"), ("edit_scope", "everywhere"), ("block", "ab")):
        window.session.dispatch(SetView(option, value))
    window.session.dispatch(SetView("normalisation", "difference"))
    window.session.dispatch(SetView("distance", "attention"))
    window.session.dispatch(SetView("words", True))
    window._remember()
    assert window.settings.view == ViewOptions(words=True)


def test_playing_ends_with_its_panel(window: MainWindow) -> None:
    window.dock_host.raise_panel("decoding")
    settle(window)
    panel = panel_of(window, DecodingPanel)
    click(panel.view.transport.play_button, panel.view.transport.play_button.rect().center())
    wait_until(lambda: len(window.session.state.document.branches.path()) >= 2)
    window.dock_host.raise_panel("next")
    wait_until(lambda: window.session.state.pending_step is None)
    written = len(window.session.state.document.branches.path())
    window.dock_host.raise_panel("decoding")
    settle(window)
    assert not panel.player.playing
    assert panel.view.transport.play_button.text() == "Play"
    assert len(window.session.state.document.branches.path()) == written < 20


def asking(window: MainWindow) -> HeadMapPanel:
    """With a pattern to be painted, as the map's menu begins it."""
    panel = panel_of(window, HeadMapPanel)
    where = panel.map.mapToGlobal(panel.map.cell_rect(4, 1).center().toPoint())
    reason = QContextMenuEvent.Reason.Mouse
    QApplication.sendEvent(panel, QContextMenuEvent(reason, panel.mapFromGlobal(where), where))
    menu = panel.findChildren(QMenu)[-1]
    next(action for action in menu.actions() if "pattern" in action.text()).trigger()
    menu.close()
    assert brush(window) == "ask"
    assert panel.map.cursor().shape() == Qt.CursorShape.CrossCursor
    return panel


@pytest.mark.parametrize("where", ["input", "map"])
def test_escape_ends_asking_wherever_the_keyboard_is(window: MainWindow, where: str) -> None:
    window.activateWindow()
    panel = asking(window)
    widget = window.input.text if where == "input" else panel.map
    widget.setFocus()
    press(widget, ESCAPE)
    assert brush(window) == "off"
    assert panel.map.cursor().shape() == Qt.CursorShape.ArrowCursor
    assert selects(window)


def test_asking_ends_with_the_map(window: MainWindow) -> None:
    asking(window)
    window.dock_host.docks["map"].hide()
    assert brush(window) == "off"
    window.dock_host.docks["map"].show()
    settle(window)


def test_flow_halts_behind_another_panel(window: MainWindow) -> None:
    window.dock_host.raise_panel("flow")
    settle(window)
    player = panel_of(window, FlowPanel).player
    press(panel_of(window, FlowPanel), Qt.Key.Key_P)
    assert player.playing
    window.dock_host.raise_panel("next")
    assert not player.playing
