"""A window that presents, with an audience's beside it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from attention_explorer.window.audience.audience_window import AudienceWindow
from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import back_to_start, key, opened_window, wait_until
from tests.explorer.window.audience.seen import rest


@pytest.fixture(scope="module")
def real_window(qapp: QApplication) -> Iterator[MainWindow]:
    with opened_window() as opened:
        yield opened


@pytest.fixture
def in_any_state(real_window: MainWindow) -> Iterator[MainWindow]:
    """With all that a person may have chosen put back; it may still present from the test before."""
    back_to_start(real_window)
    yield real_window
    real_window.audience.close()
    real_window.lessons.end()
    real_window.audience.left_out.clear()
    real_window.short_texts.sheet.hide()
    if real_window.presenter.tools.is_frozen:
        real_window.presenter.tools.do("freeze")
    while real_window.presenter.tools.escape():
        pass
    real_window.sessions.states.open(type(real_window.sessions.states.kept)())


@pytest.fixture
def window(in_any_state: MainWindow) -> MainWindow:
    """The window alone, as it is while nobody looks on."""
    in_any_state.presenter.end()
    wait_until(lambda: not in_any_state.contents.one_panel.alone)
    in_any_state.resize(1280, 800)
    in_any_state.dock_host.go_to("map")
    QTest.qWait(200)
    return in_any_state


@pytest.fixture
def presenting(in_any_state: MainWindow) -> MainWindow:
    """The window with an audience's beside it, opened by its key, and the map alone in front."""
    if not in_any_state.presenter.is_on:
        wait_until(lambda: not in_any_state.contents.one_panel.alone)
        in_any_state.dock_host.go_to("map")
    key(in_any_state, Qt.Key.Key_F5, Qt.KeyboardModifier.ControlModifier)
    shown = in_any_state.audience.window
    assert shown is not None
    in_any_state.dock_host.go_to("map")
    shown.resize(1280, 720)
    in_any_state.resize(1280, 800)
    in_any_state.presenter.tools.do("clear")
    rest(in_any_state)
    return in_any_state


@pytest.fixture
def audience(presenting: MainWindow) -> AudienceWindow:
    shown = presenting.audience.window
    assert shown is not None
    return shown
