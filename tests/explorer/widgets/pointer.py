"""A pointer that moves the same on every platform, and may hold a button, which QTest's cannot."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication, QWidget


def move_pointer(widget: QWidget, position: QPoint, held: Qt.MouseButton = Qt.MouseButton.NoButton) -> None:
    """Tell `widget` that the pointer is at `position`, in its own coordinates."""
    where = QPointF(position)
    event = QMouseEvent(
        QEvent.Type.MouseMove,
        where,
        widget.mapToGlobal(where),
        Qt.MouseButton.NoButton,
        held,
        Qt.KeyboardModifier.NoModifier,
    )
    QApplication.sendEvent(widget, event)
