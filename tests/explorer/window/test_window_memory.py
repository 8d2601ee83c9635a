"""What a window remembers between starts. Its engine never starts: nothing here is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QStyle, QTabBar
from shiboken6 import isValid

from attention_explorer import settings as remembered
from attention_explorer.session.intents import SetView
from attention_explorer.session.state import Document, Notice, State
from attention_explorer.settings import Settings
from attention_explorer.window.shell import FIRST
from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import destroy, look_put_back

pytestmark = pytest.mark.x

OpenWindow = Callable[..., MainWindow]


@pytest.fixture
def open_window(qapp) -> Iterator[OpenWindow]:
    """Opens a window as the command does: with the settings of the last one, and what is wrong with them."""
    font = qapp.font()
    windows: list[MainWindow] = []

    def start(**options: object) -> MainWindow:
        qapp.setFont(font)
        settings, sentence = remembered.load()
        notice = Notice("warning", sentence) if sentence else None
        window = MainWindow(State(Document(view=settings.view), notice=notice), settings, **options)  # type: ignore[arg-type]
        windows.append(window)
        window.show()
        QApplication.processEvents()
        return window

    with look_put_back():
        yield start
        for window in filter(isValid, windows):
            window.close()
            destroy(window)


def test_size_layout_theme_and_view_come_back(open_window):
    first = open_window()
    first.resize(960, 650)  # as large as the smallest screen lets it come back
    first.dock_host.addDockWidget(Qt.DockWidgetArea.BottomDockWidgetArea, first.dock_host.docks["next"])
    first.menus["panel_heads"].trigger()
    first.menus["theme_dark"].trigger()
    first.menus["larger"].trigger()
    first.session.dispatch(SetView("colour_map", "cividis"))
    QApplication.processEvents()
    first.close()

    second = open_window()
    assert (second.width(), second.height()) == (960, 650)
    docks = second.dock_host.docks
    assert second.dock_host.dockWidgetArea(docks["next"]) == Qt.DockWidgetArea.BottomDockWidgetArea
    assert docks["heads"].isHidden()
    assert not second.menus["panel_heads"].isChecked()
    assert second.menus["theme_dark"].isChecked()
    assert second.settings.text_scale == pytest.approx(1.125)
    assert second.session.state.document.view.colour_map == "cividis"
    assert second.menus["colour_map_cividis"].isChecked()


def test_tabs_of_a_layout_that_came_back_have_their_whole_names(open_window):
    open_window().close()
    bars = open_window().dock_host.findChildren(QTabBar)
    assert {bar.elideMode() for bar in bars} == {Qt.TextElideMode.ElideNone}


def test_text_starts_at_the_size_it_was_left_at(open_window):
    plain = open_window()
    size = plain.top_bar.facts.font().pointSizeF()
    plain.close()
    kept, _ = remembered.load()
    kept.text_scale = 1.5
    remembered.save(kept)
    window = open_window()
    for widget in (window.top_bar.facts, window.input.text, window.input.strip, window.menuBar(), *window.panels):
        assert widget.font().pointSizeF() == pytest.approx(1.5 * size), widget


def test_a_layout_of_another_version_is_not_restored(open_window):
    first = open_window()
    first.menus["panel_heads"].trigger()
    first.close()
    kept, _ = remembered.load()
    kept.layout_version = remembered.LAYOUT_VERSION + 1
    remembered.save(kept)
    assert not open_window().dock_host.docks["heads"].isHidden()


def test_broken_settings_are_told_and_replaced_by_the_defaults(open_window, settings_folder):
    (settings_folder / "settings.json").write_text('{"theme": "pink"}')
    window = open_window()
    assert window.notice_bar.isVisible()
    assert str(settings_folder / "settings.json") in window.notice_bar.text
    assert window.settings == Settings()
    window.close()
    assert remembered.load()[1] == ""


def test_wild_bytes_for_places_are_survived(open_window):
    remembered.save(Settings(geometry=b"\xff" * 50, layout=b"\xff" * 500))
    window = open_window()
    assert window.isVisible()
    assert not window.dock_host.docks["map"].isHidden()


def test_a_theme_asked_for_this_start_is_not_remembered(open_window):
    open_window(theme_now="dark").close()
    assert remembered.load()[0].theme == "system"
    window = open_window(theme_now="dark")
    window.menus["theme_light"].trigger()
    window.close()
    assert remembered.load()[0].theme == "light"


def test_a_window_that_remembers_nothing_writes_nothing(open_window, settings_folder):
    open_window(remembers=False).close()
    assert list(settings_folder.iterdir()) == []


def test_two_windows_in_turn_leave_nothing_connected(open_window, qapp):
    """The desktop's signal outlives a window: it must not reach one that is gone."""
    first = open_window()
    first.close()
    destroy(first)
    qapp.styleHints().colorSchemeChanged.emit(Qt.ColorScheme.Dark)
    assert open_window().isVisible()


def test_the_first_window_fits_the_screen(qapp):
    """Its title bar too; a picture of a window that is on no screen has the size that is asked for."""
    with look_put_back():
        window = MainWindow(State(), remembers=False)
        room = window.screen().availableSize()
        if QGuiApplication.platformName() == "offscreen":
            assert window.size() == FIRST
        else:
            assert window.width() == min(FIRST.width(), room.width())
            assert window.height() <= room.height() - window.style().pixelMetric(QStyle.PixelMetric.PM_TitleBarHeight)
        window.close()
        destroy(window)
