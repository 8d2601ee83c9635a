"""A panel that floats has a window with a title bar, which maximises; it floats so again, also at the next start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDockWidget, QWidget

from attention_explorer import settings as remembered
from attention_explorer.session.state import State
from attention_explorer.settings import Floated, Settings
from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import START, destroy, look_put_back, wait_until

pytestmark = pytest.mark.x

HINTS = (
    Qt.WindowType.WindowTitleHint,
    Qt.WindowType.WindowMinimizeButtonHint,
    Qt.WindowType.WindowMaximizeButtonHint,
    Qt.WindowType.WindowCloseButtonHint,
)

PLACE = QRect(60, 70, 500, 400)


def opened(settings: Settings) -> MainWindow:
    window = MainWindow(State(START), settings, remembers=True)
    window.resize(1280, 800)
    window.show()
    assert window.panels
    return window


@pytest.fixture
def window(qapp: QApplication) -> Iterator[MainWindow]:
    with look_put_back():
        window = opened(Settings(theme="light"))
        yield window
        window.close()
        destroy(window)


def grip(dock: QDockWidget) -> QWidget:
    bar: QWidget = dock.titleBarWidget()
    return bar


def double_click(dock: QDockWidget) -> None:
    where = grip(dock).rect().center()
    QTest.mouseDClick(grip(dock), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, where)
    QTest.mouseRelease(grip(dock), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, where)
    QTest.qWait(200)


def maximise(dock: QDockWidget) -> None:
    dock.showMaximized()
    QTest.qWait(200)
    assert dock.isMaximized()


def floating(window: MainWindow) -> QDockWidget:
    """The dock of the panel Head, in a window of its own."""
    window.dock_host.raise_panel("map")
    dock = window.dock_host.docks["map"]
    double_click(dock)
    assert dock.isFloating()
    return dock


def maximised(window: MainWindow) -> QDockWidget:
    """The same, which was at `PLACE` before it filled the screen."""
    dock = floating(window)
    dock.setGeometry(PLACE)
    QTest.qWait(50)
    maximise(dock)
    return dock


def is_framed(dock: QDockWidget) -> bool:
    flags = dock.windowFlags()
    is_window = (flags & Qt.WindowType.WindowType_Mask) == Qt.WindowType.Window
    return is_window and all(bool(flags & hint) for hint in HINTS) and not flags & Qt.WindowType.FramelessWindowHint


def test_it_has_a_title_bar_while_it_floats_and_goes_back_by_the_grip(window: MainWindow) -> None:
    dock = floating(window)
    assert is_framed(dock)
    assert dock.isVisible()
    assert dock.windowTitle() == "Head"
    assert "map" in window.dock_host.front_panels(), "its panel is told that it can be seen"
    double_click(dock)
    assert not dock.isFloating()
    assert dock.window() is window
    assert not dock.visibleRegion().isEmpty(), "in front of its tabs"


@pytest.mark.full
def test_one_that_floats_from_behind_a_tab_is_seen(window: MainWindow) -> None:
    window.dock_host.raise_panel("flow")
    dock = window.dock_host.docks["compare"]
    assert dock.visibleRegion().isEmpty()
    dock.setFloating(True)
    QTest.qWait(200)
    assert window.screen().availableGeometry().contains(dock.geometry())
    assert "compare" in window.dock_host.front_panels()
    assert window.contents.made_panels["compare"].isVisible()
    dock.setFloating(False)
    QTest.qWait(200)
    assert dock.window() is window


@pytest.mark.full
def test_one_that_was_maximised_is_so_when_it_floats_again(window: MainWindow) -> None:
    dock = maximised(window)
    double_click(dock)
    assert not dock.isFloating()
    assert not dock.visibleRegion().isEmpty(), "in front of its tabs"
    double_click(dock)
    wait_until(lambda: dock.isFloating() and dock.isMaximized())
    assert dock.normalGeometry() == PLACE, "what it is made when it no longer fills the screen"


@pytest.mark.full
def test_the_presenter_takes_it_in_and_gives_it_back(window: MainWindow) -> None:
    dock = floating(window)
    maximise(dock)
    window.dock_host.go_to("map")
    window.presenter.begin()
    QTest.qWait(100)
    assert not dock.isFloating()
    window.presenter.end()
    wait_until(lambda: not window.contents.one_panel.alone)
    wait_until(lambda: dock.isFloating() and dock.isMaximized())
    assert is_framed(dock)


@pytest.mark.full
def test_it_floats_the_same_at_the_next_start(qapp: QApplication) -> None:
    with look_put_back():
        window = opened(Settings(theme="light"))
        dock = maximised(window)
        window.close()
        destroy(window)
        settings, said = remembered.load()
        assert not said
        assert settings.floated["map"].is_maximised
        assert (settings.floated["map"].width, settings.floated["map"].height) == (PLACE.width(), PLACE.height())
        again = opened(settings)
        dock = again.dock_host.docks["map"]
        wait_until(lambda: dock.isFloating() and dock.isMaximized())
        assert is_framed(dock)
        again.close()
        destroy(again)


@pytest.mark.full
def test_one_that_is_far_off_every_screen_is_not_put_there(window: MainWindow) -> None:
    window.dock_host.floated.restore({"map": Floated(90_000, 90_000, 300, 200, True)})
    dock = floating(window)
    wait_until(dock.isMaximized)
    assert dock.normalGeometry().topLeft() != QPoint(90_000, 90_000)
    assert window.geometry().intersects(dock.normalGeometry()), "beside the place that it was taken from"
