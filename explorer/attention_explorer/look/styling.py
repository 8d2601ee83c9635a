"""Panels out of sight take on a new look when they are shown: to style their 1,600 widgets takes half a second."""

from __future__ import annotations

from weakref import WeakSet

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QApplication, QWidget

_POLISHED = Qt.WidgetAttribute.WA_WState_Polished
_late: WeakSet[QWidget] = WeakSet()
_stale: WeakSet[QWidget] = WeakSet()


class _WhenShown(QObject):
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Show and isinstance(watched, QWidget) and watched in _stale:
            _stale.discard(watched)
            # A copy: what is styled may make widgets, as a combo box does.
            for widget in (watched, *watched.findChildren(QWidget)):
                if not widget.testAttribute(_POLISHED):
                    QApplication.sendEvent(widget, QEvent(QEvent.Type.Polish))
        return False


def style_when_shown(widget: QWidget) -> None:
    """Style `widget` and what it holds no earlier than it is shown, each time that the look has changed."""
    widget.installEventFilter(_WhenShown(widget))
    _late.add(widget)


def put_off() -> None:
    """Say to Qt that nothing within the widgets of `style_when_shown` that are out of sight is styled.

    To be called right before a new style sheet: Qt restyles what is styled, and nothing else.
    """
    for root in QApplication.allWidgets():  # those of `_late` may be gone in Qt already
        if root in _late and not root.isVisible() and root.testAttribute(_POLISHED):
            _stale.add(root)
            for widget in (root, *root.findChildren(QWidget)):
                widget.setAttribute(_POLISHED, False)
