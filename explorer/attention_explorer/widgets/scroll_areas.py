"""The area that a widget scrolls in, and scrolling to a point of it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QWidget


class BoundedArea(QScrollArea):
    """Draws nothing of its own and takes no focus: what is inside does. A subclass says in `wanted_height` how high."""

    def __init__(self, inside: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidget(inside)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)
        inside.setAutoFillBackground(False)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def wanted_height(self) -> int:
        """Pixels, at the present width."""
        raise NotImplementedError

    def fit_height(self) -> None:
        """Take the height that is wanted now."""
        height = self.wanted_height()
        if height != self.height() or height != self.minimumHeight():
            self.setFixedHeight(height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit_height()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.fit_height()


def area_around(widget: QWidget) -> QScrollArea | None:
    """The innermost that `widget` is in."""
    around = widget.parentWidget()
    while around is not None and not isinstance(around, QScrollArea):
        around = around.parentWidget()
    return around


def scroll_to(area: QScrollArea, point: QPoint, across: int, down: int) -> None:
    """Scroll no further than it takes to show `point` of what is inside, with so much around it; less where the area is
    smaller than that.
    """
    # with margins that are more than half of it Qt scrolls past the point
    most = [max(0, length // 2 - 1) for length in (area.viewport().width(), area.viewport().height())]
    area.ensureVisible(point.x(), point.y(), min(across, most[0]), min(down, most[1]))
