"""Small pieces that pages are built of: headings, wrapped sentences, and two things beside or below each other."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QLabel, QScrollArea, QVBoxLayout, QWidget

from attention_explorer.widgets.layouts import FlowLayout
from attention_explorer.widgets.page import wrapped

_NARROW = 36  # in widths of an "x": below this two things stand under each other


def heading(text: str = "") -> QLabel:
    """A bold label that wraps."""
    return wrapped(text, "title")


def sentence(text: str = "", role: str = "dim") -> QLabel:
    """A label that wraps."""
    return wrapped(text, role)


def flow(*widgets: QWidget) -> QWidget:
    """A row of controls that wraps."""
    row = QWidget()
    layout = FlowLayout(row)
    for widget in widgets:
        layout.addWidget(widget)
    return row


class SideBySide(QWidget):
    """Two widgets in a row where there is room, else in a column."""

    def __init__(self, first: QWidget, second: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._box = QBoxLayout(QBoxLayout.Direction.TopToBottom, self)
        self._box.setContentsMargins(0, 0, 0, 0)
        self._box.setSpacing(12)
        for widget in (first, second):
            self._box.addWidget(widget, 1, Qt.AlignmentFlag.AlignTop)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        wide = self.width() >= 2 * _NARROW * self.fontMetrics().averageCharWidth()
        self._box.setDirection(QBoxLayout.Direction.LeftToRight if wide else QBoxLayout.Direction.TopToBottom)


class Section(QWidget):
    """Widgets that are shown and hidden together."""

    def __init__(self, *widgets: QWidget) -> None:
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 0)
        column.setSpacing(6)
        for widget in widgets:
            column.addWidget(widget)


class Page(QScrollArea):
    """A column of widgets that scrolls up and down, never across."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # what is inside takes the keyboard, and shows it
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        body = QWidget()
        self.column = QVBoxLayout(body)
        self.column.setContentsMargins(0, 2, 8, 4)
        self.column.setSpacing(8)
        self.setWidget(body)

    def add(self, *widgets: QWidget) -> None:
        for widget in widgets:
            self.column.addWidget(widget)

    def end(self) -> None:
        """Nothing follows: what is there keeps its height."""
        self.column.addStretch(1)
