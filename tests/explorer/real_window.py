"""A window with the real engine, and what a person does in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from PySide6.QtCore import QCoreApplication, QDeadlineTimer, QEvent, QEventLoop, QPoint, Qt, QTimer
from PySide6.QtGui import QColor, QImage, QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from attention_explorer.panels.all_heads.panel import HeadAtlasPanel
from attention_explorer.panels.base import Panel
from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.panels.next_token.panel import NextTokenPanel
from attention_explorer.session.intents import OpenCheckpoint, RestoreDocument, Show
from attention_explorer.session.state import Document, Selection, State
from attention_explorer.settings import Settings
from attention_explorer.window.docks import Arrangement
from attention_explorer.window.window import MainWindow
from attention_models.protocol.request import Request
from attention_models.protocol.values import SiteRef

EXAMPLE = "Tom and Anna went to the park. Anna gave the ball to"
START = Document(
    checkpoint="story-gpt", text=EXAMPLE, selection=Selection(SiteRef("decoder", 5), head=5, query=13, key=1)
)
"""What the window shows when it has first started."""

PATIENCE = 60_000  # ms: the import of torch on a busy machine

PanelT = TypeVar("PanelT", bound=Panel)


@contextmanager
def look_put_back() -> Iterator[QApplication]:
    """Around a window: theme and text size are the application's, and the next test expects those of Qt."""
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    font, palette, sheet = app.font(), app.palette(), app.styleSheet()
    try:
        yield app
    finally:
        app.setStyleSheet(sheet)
        app.setPalette(palette)
        app.setFont(font)
        app.processEvents()  # Qt hands a font on when it next handles events


@contextmanager
def opened_window(
    checkpoint: str = "story-gpt", text: str = EXAMPLE, arrangement: Arrangement = "heads", remembers: bool = False
) -> Iterator[MainWindow]:
    """A light window of 1280 x 800 that shows `text`; closed at the end, and the application's look put back.

    One that `remembers` writes settings: it needs a folder of its own for them.
    """
    with look_put_back():
        state = State(Document(checkpoint=checkpoint, text=text))
        settings = Settings(theme="light", tour="never" if remembers else "new")
        window = MainWindow(state, settings, remembers=remembers)
        window.dock_host.arrange(1.0, arrangement)
        window.resize(1280, 800)
        window.show()
        window.activateWindow()
        window.start()
        try:
            wait_until(lambda: window.session.state.ran is not None or window.session.state.notice is not None)
            settle(window)
            yield window
        finally:
            window.close()
            destroy(window)


def destroy(window: QWidget) -> None:
    """Delete a closed window now."""
    window.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def wait_until(condition: Callable[[], bool]) -> None:
    """Let the event loop run until `condition` holds."""
    deadline = QDeadlineTimer(PATIENCE)
    waker = QTimer()
    waker.start(20)  # with a time limit of its own processEvents would not sleep, and keep the worker from its core
    while not condition():
        assert not deadline.hasExpired(), "waited in vain"
        QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)


def settle(window: MainWindow) -> None:
    """Wait until the window shows what its input says."""
    wait_until(window.is_settled)


def back_to_start(window: MainWindow) -> None:
    """Put everything a person may have chosen back to `START`."""
    window.session.dispatch(OpenCheckpoint(START.checkpoint))
    window.session.dispatch(RestoreDocument(START))
    window.session.dispatch(Show(None))
    wait_until(lambda: window.session.state.document == START and window.is_settled())
    window.session.dispatch(Show(None))
    window.input.text.moveCursor(QTextCursor.MoveOperation.End)
    window.input.text.setFocus()


def panel_of(window: MainWindow, kind: type[PanelT]) -> PanelT:
    return next(panel for panel in window.panels if isinstance(panel, kind))


def click(widget: QWidget, where: QPoint, keys: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton, keys, where)


def click_head(window: MainWindow, layer: int, head: int) -> None:
    atlas = panel_of(window, HeadAtlasPanel).atlas
    click(atlas, atlas.cell_rect(layer, head).center().toPoint())


def click_cell(window: MainWindow, query: int, key: int) -> None:
    heat_map = panel_of(window, HeadMapPanel).map
    click(heat_map, heat_map.cell_rect(query, key).center().toPoint())


def click_token(window: MainWindow, token: int, keys: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    click(window.input.strip, window.input.strip.chip_rect(token).center().toPoint(), keys)


def press(widget: QWidget, key: Qt.Key, keys: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    QTest.keyClick(widget, key, keys)


def key(window: MainWindow, which: Qt.Key, keys: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    """Press a key where the keyboard is."""
    focus: QWidget | None = window.focusWidget()
    press(window if focus is None else focus, which, keys)


def paste(window: MainWindow, text: str) -> None:
    """Put `text` in the place of what the input holds, through the clipboard."""
    QApplication.clipboard().setText(text)
    press(window.input.text, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    press(window.input.text, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)


def bars(window: MainWindow) -> str:
    """The next-token bars as a screen reader says them."""
    return panel_of(window, NextTokenPanel).bars.accessibleDescription()


@contextmanager
def requests_of(window: MainWindow) -> Iterator[list[Request]]:
    """What the window asks the engine meanwhile."""
    asked: list[Request] = []
    collect: Callable[[Request], None] = asked.append
    window.session.requested.connect(collect)
    try:
        yield asked
    finally:
        window.session.requested.disconnect(collect)


def picture(widget: QWidget) -> QImage:
    return widget.grab().toImage()


def colour_at(image: QImage, where: QPoint) -> tuple[int, int, int]:
    """Red, green and blue at a point in logical pixels."""
    ratio = image.devicePixelRatio()
    colour = QColor(image.pixel(round(where.x() * ratio), round(where.y() * ratio)))
    return colour.red(), colour.green(), colour.blue()
