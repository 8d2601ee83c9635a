"""Where the keyboard is: it goes along to a panel, every stop shows it, and what can be pressed says so."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QImage, QShortcut
from PySide6.QtWidgets import QApplication, QPushButton, QWidget

from attention_explorer.look.theme import DARK, LIGHT, Theme, stylesheet
from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.panels.input.panel import InputPanel
from attention_explorer.panels.masks.panel import MaskScalePanel
from attention_explorer.session.intents import ClearInterventions, PutIntervention
from attention_explorer.widgets.card import Card
from attention_explorer.window.window import MainWindow
from attention_models.protocol.interventions import Scale
from tests.explorer.real_window import click, panel_of, press, settle

MOST_STOPS = 60


def laid_out() -> None:
    for _ in range(3):
        QApplication.processEvents()


def focused() -> QWidget:
    widget = QApplication.focusWidget()
    assert widget is not None
    return widget


@pytest.mark.full
def test_every_panel_has_a_key_that_takes_the_keyboard_to_it(window: MainWindow) -> None:
    keys = []
    for name, dock in window.dock_host.docks.items():
        action = window.menus[f"show_{name}"]
        keys.append(action.shortcut().toString())
        was_open = dock.isVisible()
        window.input.focus_text()
        action.trigger()
        settle(window)
        panel = next(panel for panel in window.panels if panel.name == name)
        assert panel.isAncestorOf(focused()) or focused() is panel, name
        if not was_open:
            dock.hide()
    assert all(keys)
    assert len(set(keys)) == len(keys)


def test_the_key_of_the_map_leads_to_the_map(window: MainWindow) -> None:
    window.activateWindow()
    window.input.focus_text()
    press(window.input.text, Qt.Key.Key_2, Qt.KeyboardModifier.ControlModifier)
    assert focused() is panel_of(window, HeadMapPanel).map
    before = window.session.state.selection.query
    press(focused(), Qt.Key.Key_Up)
    assert window.session.state.selection.query == before - 1


FRONTS = (
    "flow",
    "heads",
    "next",
    "decoding",
    "masks",
    "effects",
    "corpus",
    "positions",
    "cell",
    "lookup",
    "variance",
    "quality",
)


@pytest.mark.short("masks", "cell", "lookup")
@pytest.mark.parametrize("front", FRONTS)
def test_every_stop_of_the_tab_key_shows_that_it_has_the_keyboard(window: MainWindow, front: str) -> None:
    window.dock_host.raise_panel(front)
    settle(window)
    window.input.text.setFocus()
    seen: list[QWidget] = []
    for _ in range(MOST_STOPS):
        press(focused(), Qt.Key.Key_Tab)
        stop = focused()
        if stop is window.input.text or stop in seen:
            break
        seen.append(stop)
        laid_out()
        with_ring = stop.grab().toImage()
        stop.clearFocus()
        laid_out()
        assert stop.grab().toImage() != with_ring, (stop, getattr(stop, "text", str)())
        stop.setFocus(Qt.FocusReason.TabFocusReason)
    assert len(seen) > 10


def test_no_key_stands_for_two_things(window: MainWindow) -> None:
    """Of two menu entries with one key neither would be called."""
    keys: dict[str, str] = {}
    for action in window.findChildren(QAction):
        for key in action.shortcuts():
            said = action.text().replace("&", "")
            assert keys.setdefault(key.toString(), said) == said, key.toString()
    for shortcut in window.findChildren(QShortcut):
        if shortcut.context() == Qt.ShortcutContext.WindowShortcut:
            for key in shortcut.keys():  # noqa: SIM118 (no dict)
                assert key.toString() not in keys, key.toString()
    assert len(keys) > 30


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_focused_and_pressed_do_not_look_alike(qtbot, theme: Theme) -> None:
    host = QWidget()
    host.setStyleSheet(stylesheet(theme))
    button, other = QPushButton("Sample", host), QPushButton("x", host)
    other.move(200, 0)
    button.setCheckable(True)
    qtbot.addWidget(host)
    host.show()
    host.activateWindow()

    def looks(checked: bool, focus: bool) -> QImage:
        button.setChecked(checked)
        (button if focus else other).setFocus()
        laid_out()
        assert button.hasFocus() is focus
        return button.grab().toImage()

    pictures = [looks(checked, focus) for checked in (False, True) for focus in (False, True)]
    assert all(a != b for i, a in enumerate(pictures) for b in pictures[:i])
    # a row through the middle tells them apart at the sides, the last rows by the line below
    middle, bottom = button.height() // 2, button.height() - 2
    sides = [picture.pixelColor(1, middle).name() for picture in pictures]
    lines = [picture.pixelColor(button.width() // 2, bottom).name() for picture in pictures]
    assert sides[1] == sides[3] == theme.focus
    assert lines[2] == lines[3] == theme.query
    assert theme.focus not in (sides[0], sides[2])
    assert theme.query not in (lines[0], lines[1])


@pytest.mark.parametrize("where", ["map", "input"])
def test_the_mark_of_an_edited_run_opens_what_was_edited(window: MainWindow, where: str) -> None:
    window.session.dispatch(PutIntervention(Scale(0.5)))
    settle(window)
    kind = {"map": HeadMapPanel, "input": InputPanel}[where]
    panel = window.input if kind is InputPanel else panel_of(window, HeadMapPanel)
    marks = [mark for mark in panel.findChildren(QPushButton) if mark.text() == "edited × 1" and mark.isVisible()]
    assert len(marks) == 1
    click(marks[0], marks[0].rect().center())
    laid_out()
    masks = panel_of(window, MaskScalePanel)
    assert masks.isVisible()
    assert masks.isAncestorOf(focused())
    assert not masks.findChildren(Card)[0].visibleRegion().isEmpty()
    window.session.dispatch(ClearInterventions())
    settle(window)
    assert not marks[0].isVisible()
