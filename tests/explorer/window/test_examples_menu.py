"""The menu of examples, with the mouse."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu

from attention_explorer.panels.next_token.panel import NextTokenPanel
from attention_explorer.session.examples import examples_of
from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import opened_window, panel_of, settle, wait_until

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)  # no keyboard for a menu offscreen


def choose(window: MainWindow, title: str) -> None:
    """Open the menu below the button and click an entry."""
    bar = window.top_bar.examples

    def click() -> None:
        action = next(action for action in bar.actions() if action.text() == title)
        QTest.mouseClick(bar, Qt.MouseButton.LeftButton, pos=bar.actionGeometry(action).center())

    QTimer.singleShot(0, click)
    QTest.mouseClick(bar.button, Qt.MouseButton.LeftButton)  # returns when the menu has closed
    settle(window)


@pytest.fixture
def window(qapp: QApplication) -> Iterator[MainWindow]:
    with opened_window(text="Mine") as window:
        yield window


@pytest.mark.full
def test_the_menu_has_the_open_models_examples(window: MainWindow) -> None:
    bar = window.top_bar.examples
    assert [action.text() for action in bar.actions()] == [one.title for one in examples_of("story-gpt")]
    assert [action.toolTip() for action in bar.actions()] == [one.say for one in examples_of("story-gpt")]
    in_help = [menu for menu in window.menuBar().findChildren(QMenu) if bar.menuAction() in menu.actions()]
    assert [menu.title() for menu in in_help] == ["&Help"]


@pytest.mark.full
def test_an_example_is_chosen_seen_and_taken_back(window: MainWindow) -> None:
    blocked = examples_of("story-gpt")[1]
    before = window.session.state.document
    choose(window, blocked.title)
    wait_until(lambda: window.session.state.up_to_date and window.session.state.example is None)
    settle(window)
    state = window.session.state
    assert state.ran is not None
    assert [state.ran.tokens[i].word for i in (state.selection.query, state.selection.key)] == ["to", "Tom"]
    assert len(state.painted_cells) == 1
    assert window.notice_bar.isVisible()
    assert blocked.panel in window.dock_host.front_panels()
    shown = panel_of(window, NextTokenPanel)
    assert shown.isVisible()
    window.menus["undo"].trigger()
    settle(window)
    assert window.session.state.document == before
    assert not window.notice_bar.isVisible()
