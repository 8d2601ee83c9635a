"""The dock of a column at the side of the window: it can be moved to the other side, and is no window of its own."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDockWidget, QMainWindow

from attention_explorer.theme import Theme
from attention_explorer.window.docks import Grip


class SideDock(QDockWidget):
    """At the left of `window` at first, and hidden."""

    def __init__(self, title: str, window: QMainWindow) -> None:
        super().__init__(title, window)
        self.setObjectName(title.lower())  # what saveState calls it
        self._grip = Grip(title, floats=False)
        self.setTitleBarWidget(self._grip)
        self.setFeatures(QDockWidget.DockWidgetFeature.DockWidgetMovable)
        self.setAllowedAreas(Qt.DockWidgetArea.LeftDockWidgetArea | Qt.DockWidgetArea.RightDockWidgetArea)
        window.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, self)
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        self._grip.set_theme(theme)
