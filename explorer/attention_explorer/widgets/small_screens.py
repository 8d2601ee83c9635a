"""Windows on a screen that is smaller than they are, as a laptop's with a large scale factor."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QScrollArea, QStyle, QWidget

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
