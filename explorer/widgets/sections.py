"""Small pieces that pages are built of: headings, wrapped sentences, and two things beside or below each other."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QLabel, QLayout, QLayoutItem, QScrollArea, QVBoxLayout, QWidget

_NARROW = 36  # in widths of an "x": below this two things stand under each other


def heading(text: str = "") -> QLabel:
    """A bold label that wraps."""
    return sentence(text, "title")


def sentence(text: str = "", role: str = "dim") -> QLabel:
    """A label that wraps."""
    label = QLabel(text)
    label.setProperty("role", role)
    label.setTextFormat(Qt.TextFormat.PlainText)  # a token may look like mark-up
    label.setWordWrap(True)
    return label


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


class FlowLayout(QLayout):
    """Widgets in a row that goes on in the next line where there is no room."""

    _GAP = 6

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self.setContentsMargins(0, 0, 0, 0)

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._placed(QRect(0, 0, width, 0))[1]

    def sizeHint(self) -> QSize:
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        sizes = [item.sizeHint() for item in self._items]
        return QSize(max((s.width() for s in sizes), default=0), max((s.height() for s in sizes), default=0))

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        for item, place in zip(self._items, self._placed(rect)[0], strict=True):
            item.setGeometry(place)

    def _placed(self, rect: QRect) -> tuple[list[QRect], int]:
        """Where each item goes, and the height of all lines."""
        lines: list[list[QSize]] = [[]]
        x = 0
        for size in (item.sizeHint() for item in self._items):
            if lines[-1] and x + size.width() > rect.width():
                lines.append([])
                x = 0
            lines[-1].append(size)
            x += size.width() + self._GAP
        places, y = [], rect.top()
        for line in lines:
            height = max((size.height() for size in line), default=0)
            x = rect.left()
            for size in line:
                places.append(QRect(x, y + (height - size.height()) // 2, size.width(), size.height()))
                x += size.width() + self._GAP
            y += height + self._GAP
        return places, y - rect.top() - self._GAP


def flow(*widgets: QWidget) -> QWidget:
    """A row of controls that wraps."""
    row = QWidget()
    layout = FlowLayout(row)
    for widget in widgets:
        layout.addWidget(widget)
    return row


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
