"""The area that a widget scrolls in, and scrolling to a point of it."""

from __future__ import annotations

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QScrollArea, QWidget


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
