"""Tells a widget how large its window is, whichever that is by then."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QStyle, QWidget


def fill_screen(window: QWidget, full: bool) -> None:
    """Let a window fill its screen, or be again as it was: maximised, if it was."""
    state, filling = window.windowState(), Qt.WindowState.WindowFullScreen
    window.setWindowState(state | filling if full else state & ~filling)


# Windows on a screen that is smaller than they are, as a laptop's with a large scale factor.


_BOUNDLESS = QSize(16_384, 16_384)
_FEW_LINES = 24


def room_for(window: QWidget) -> QSize:
    """What a window may take of its screen, below a title bar."""
    if QGuiApplication.platformName() == "offscreen":  # a picture of the window has the size that is asked for
        return _BOUNDLESS
    title = window.style().pixelMetric(QStyle.PixelMetric.PM_TitleBarHeight)
    return window.screen().availableSize() - QSize(0, title)


def is_low(widget: QWidget) -> bool:
    """Whether the window of `widget` has few lines of text: what can say its part in one line does, and scrolls."""
    return widget.window().height() < _FEW_LINES * widget.fontMetrics().lineSpacing()


def fitted(content: QWidget, least: QSize, window: QWidget) -> QWidget:
    """`content` as it is; in an area that scrolls where `window` cannot give it the room that it needs at least."""
    room = room_for(window)
    if least.width() <= room.width() and least.height() <= room.height():
        return content
    area = QScrollArea()
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setWidgetResizable(True)
    content.setMinimumSize(least)
    area.setWidget(content)
    return area


class WindowSize(QObject):
    changed = Signal()
    """The widget is about to be shown, or the window that it is shown in has another size."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._widget = widget
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QShowEvent) and watched is self._widget:
            self._widget.window().installEventFilter(self)  # once, however often it is asked for
            self.changed.emit()
        elif isinstance(event, QResizeEvent) and watched is self._widget.window():
            self.changed.emit()
        return False
