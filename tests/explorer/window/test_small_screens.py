"""On a screen that is smaller than the window needs, everything can be scrolled to."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QApplication, QScrollArea, QWidget

from attention_explorer.chooser import dialog as dialogs
from attention_explorer.chooser.hub_client import HubClient
from attention_explorer.session.state import Document, State
from attention_explorer.settings import Settings
from attention_explorer.widgets import screens
from attention_explorer.window import shell
from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import destroy, look_put_back

ROOM = QSize(640, 376)  # 1280 x 800 with a scale factor of 2, below a title bar


@pytest.fixture
def small_screen(monkeypatch):
    for module in (screens, shell, dialogs):
        monkeypatch.setattr(module, "room_for", lambda _window: ROOM)


def can_be_reached(widget: QWidget, area: QScrollArea) -> bool:
    """Whether `area` can be scrolled so that all of `widget` is seen."""
    QApplication.processEvents()
    content = area.widget()
    assert content is not None
    corner = widget.mapTo(content, widget.rect().bottomRight())
    across, down = area.horizontalScrollBar(), area.verticalScrollBar()
    return (
        corner.x() < across.maximum() + area.viewport().width()
        and corner.y() < down.maximum() + area.viewport().height()
    )


def test_the_window_fits_and_scrolls(qapp, small_screen):
    with look_put_back():
        window = MainWindow(State(Document()), Settings(), remembers=False)
        window.show()
        QApplication.processEvents()
        assert window.width() <= ROOM.width()
        assert window.height() <= ROOM.height()
        area = window.centralWidget()
        assert isinstance(area, QScrollArea)
        assert window.contents.width() >= shell.SMALLEST.width()
        assert area.horizontalScrollBar().maximum() > 0
        assert area.verticalScrollBar().maximum() > 0
        for widget in (window.top_bar.trust, window.input, window.dock_host):
            assert can_be_reached(widget, area)
        window.close()
        destroy(window)


def test_the_chooser_fits_and_scrolls(qapp, small_screen):
    hub = HubClient()
    dialog = dialogs.CheckpointDialog(hub)
    dialog.show()
    QApplication.processEvents()
    assert dialog.width() <= ROOM.width()
    assert dialog.height() <= ROOM.height()
    area = next(area for area in dialog.findChildren(QScrollArea) if area.isAncestorOf(dialog.view))
    assert can_be_reached(dialog.hub_box, area)
    assert can_be_reached(dialog.view, area)
    assert dialog.rect().contains(dialog.open_button.geometry())
    dialog.reject()
    destroy(dialog)


def test_where_there_is_room_nothing_scrolls(qapp):
    content = QWidget()
    assert screens.fitted(content, QSize(960, 600), content) is content
