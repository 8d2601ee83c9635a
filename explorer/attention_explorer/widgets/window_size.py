"""Tells a widget how large its window is, whichever that is by then."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QWidget


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
