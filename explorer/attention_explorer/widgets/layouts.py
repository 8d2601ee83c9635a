"""Widgets in a row, in lines, or under each other, without margins."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QLayout, QLayoutItem, QLineEdit, QVBoxLayout, QWidget


class FlowLayout(QLayout):
    """Each widget at its preferred size, from left to right; each line is as high as its highest widget."""

    def __init__(self, parent: QWidget | None = None, gap: int = 8, line_gap: int = 6) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self._gap, self._line_gap = gap, line_gap
        self.setContentsMargins(0, 0, 0, 0)

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._place(QRect(0, 0, width, 0), moves=False)

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        self._place(rect, moves=True)

    def sizeHint(self) -> QSize:
        sizes = [item.sizeHint() for item in self._items if not item.isEmpty()]
        width = sum(size.width() for size in sizes) + self._gap * max(0, len(sizes) - 1)
        return QSize(width, max((size.height() for size in sizes), default=0))

    def minimumSize(self) -> QSize:
        size = QSize()
        for item in self._items:
            if not item.isEmpty():
                size = size.expandedTo(item.minimumSize())
        return size

    def _place(self, rect: QRect, moves: bool) -> int:
        """The height that all lines take in the width of `rect`."""
        y, height = rect.top(), 0
        for line in self._lines(rect.width()):
            if y > rect.top() or height:
                y += height + self._line_gap
            height = max(item.sizeHint().height() for item in line)
            x = rect.left()
            for item in line:
                size = item.sizeHint()
                if moves:
                    width = min(size.width(), rect.width())
                    item.setGeometry(QRect(QPoint(x, y + (height - size.height()) // 2), QSize(width, size.height())))
                x += size.width() + self._gap
        return y + height - rect.top()

    def _lines(self, width: int) -> list[list[QLayoutItem]]:
        lines: list[list[QLayoutItem]] = []
        x = 0
        for item in self._items:
            if item.isEmpty():
                continue
            taken = item.sizeHint().width()
            if not lines or x + taken > width:
                lines.append([])
                x = 0
            lines[-1].append(item)
            x += taken + self._gap
        return lines


def in_row(*widgets: QWidget) -> QWidget:
    """A row of `widgets`; fields and lists take the room that is left."""
    row = QWidget()
    layout = QHBoxLayout(row)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(6)
    for widget in widgets:
        layout.addWidget(widget, 1 if isinstance(widget, (QLineEdit, QComboBox)) else 0)
    return row


def flowing(*widgets: QWidget, gap: int = 6) -> QWidget:
    """Beside each other; what has no room goes to the next line."""
    row = QWidget()
    lines = FlowLayout(row, gap=gap)
    for widget in widgets:
        lines.addWidget(widget)
    return row


def named(label: str | QLabel, field: QWidget) -> QWidget:
    """A field after its name."""
    shown = QLabel(label) if isinstance(label, str) else label
    shown.setBuddy(field)
    return flowing(shown, field)


def below(*widgets: QWidget) -> QWidget:
    """Under each other."""
    column = QWidget()
    layout = QVBoxLayout(column)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(6)
    for widget in widgets:
        layout.addWidget(widget)
    return column


def clear(layout: QLayout) -> None:
    """Take all widgets out of `layout`, and away."""
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.hide()  # it goes only when the event loop comes to it
            widget.deleteLater()
