"""Branches in the whole window with the real engine: keys and mouse, undo and redo, and a session file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from attention_explorer.panels.decoding.panel import DecodingPanel
from attention_explorer.panels.decoding.player_view import BRANCHES, CANDIDATES
from attention_explorer.session.writing import Decoding
from attention_explorer.widgets import dialogs
from attention_explorer.window.window import MainWindow
from tests.explorer.player_window import panel, pressed
from tests.explorer.real_window import (
    EXAMPLE,
    START,
    back_to_start,
    click,
    panel_of,
    paste,
    press,
    settle,
)
from tests.explorer.real_window import wait_until as wait

pytestmark = pytest.mark.x

CONTROL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def window(opened: MainWindow) -> MainWindow:
    back_to_start(opened)
    opened.dock_host.raise_panel("decoding")
    settle(opened)
    panel = panel_of(opened, DecodingPanel)
    panel.view.transport.speed.setValue(panel.view.transport.speed.maximum())
    panel.view.knobs.set_number("steps", "20")
    return opened


def key(key: Qt.Key, keys: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    """To whatever has the focus."""
    focus = QApplication.focusWidget()
    assert focus is not None
    press(focus, key, keys)


def words(window: MainWindow) -> str:
    return "".join(node.label for node in window.session.state.document.branches.path())


def names(window: MainWindow) -> list[str]:
    return [row.text for row in panel(window).view.branches.list.rows]


def test_keys_take_back_what_was_done_to_branches_one_by_one(window):
    decode = panel(window)
    pressed(window, decode.view.transport.step_button)
    pressed(window, decode.view.transport.step_button)
    pressed(window, decode.view.tabs.button(BRANCHES))
    assert names(window) == ["Tom."]
    click(decode.view.branches.name, decode.view.branches.name.rect().center())
    QTest.keyClicks(decode.view.branches.name, "the end")
    key(Qt.Key.Key_Return)
    assert names(window) == ["the end: Tom."]
    pressed(window, decode.view.branches.delete)
    assert names(window) == []
    for expected in (["the end: Tom."], ["Tom."], ["Tom"], []):
        key(Qt.Key.Key_Z, CONTROL)
        assert names(window) == expected
    assert window.session.state.document == START
    for expected in (["Tom"], ["Tom."], ["the end: Tom."], []):
        key(Qt.Key.Key_Y, CONTROL)
        assert names(window) == expected
    key(Qt.Key.Key_Z, CONTROL)
    settle(window)
    assert words(window) == "␣Tom."
    assert "took “.” with" in decode.view.status.text()


def test_the_list_is_walked_named_and_cut_with_keys_alone(window):
    decode = panel(window)
    pressed(window, decode.view.transport.step_button)
    pressed(window, decode.view.tabs.button(CANDIDATES))
    click(decode.view.candidates.bars, decode.view.candidates.bars.row_rect(1).center().toPoint())
    wait(lambda: words(window) == "␣Ben")
    pressed(window, decode.view.tabs.button(BRANCHES))
    assert names(window) == ["Tom", "Ben"]
    decode.view.branches.list.setFocus()
    key(Qt.Key.Key_Up)
    assert words(window) == "␣Tom"
    key(Qt.Key.Key_F2)
    assert decode.view.branches.name.hasFocus()
    QTest.keyClicks(decode.view.branches.name, "him")
    key(Qt.Key.Key_Return)
    assert names(window) == ["him: Tom", "Ben"]
    key(Qt.Key.Key_Delete)
    assert names(window) == ["Ben"]
    assert words(window) == ""
    key(Qt.Key.Key_Z, CONTROL)
    assert names(window) == ["him: Tom", "Ben"]
    assert words(window) == "␣Tom"


@pytest.mark.full
def test_what_was_played_goes_with_one_key(window):
    decode = panel(window)
    decode.view.knobs.set_number("steps", "12")
    click(decode.view.transport.play_button, decode.view.transport.play_button.rect().center())
    wait(lambda: len(window.session.state.document.branches.path()) == 12)
    settle(window)
    assert decode.view.transport.play_button.text() == "Play"
    key(Qt.Key.Key_Z, CONTROL)
    assert words(window) == ""
    assert window.session.state.document == replace(START, decoding=Decoding(steps=12))
    key(Qt.Key.Key_Y, CONTROL)
    assert len(window.session.state.document.branches.path()) == 12


def test_another_text_and_back_by_undo_finds_the_branches(window):
    decode = panel(window)
    pressed(window, decode.view.transport.step_button)
    paste(window, "Once upon a time")
    settle(window)
    assert words(window) == ""
    press(window.input.text, Qt.Key.Key_Z, CONTROL)
    settle(window)
    assert window.session.state.document.text == EXAMPLE
    assert words(window) == "␣Tom"
    press(window.input.text, Qt.Key.Key_Z, CONTROL)
    assert words(window) == ""


def test_a_session_file_brings_back_the_tree(window, monkeypatch, tmp_path: Path):
    decode = panel(window)
    pressed(window, decode.view.transport.step_button)
    pressed(window, decode.view.transport.step_button)
    status, path = decode.view.status.text(), tmp_path / "branches.attn"
    monkeypatch.setattr(dialogs, "file_to_save", lambda *_: (str(path), ""))
    monkeypatch.setattr(dialogs, "file_to_open", lambda *_: str(path))
    window.menus["save_session"].trigger()
    wait(path.exists)
    saved = window.session.state.document
    back_to_start(window)
    assert words(window) == ""
    window.menus["open_session"].trigger()
    wait(lambda: window.session.state.document == saved)
    settle(window)
    assert words(window) == "␣Tom."
    assert decode.view.status.text() == status
