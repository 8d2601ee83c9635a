"""Panels that float get a window as others are: with a title bar that maximises, whose place and state come back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, QTimer
from PySide6.QtGui import QCursor, QGuiApplication
from PySide6.QtWidgets import QApplication, QDockWidget

from attention_explorer.settings import Floated

_FRAMED = (
    Qt.WindowType.Window
    | Qt.WindowType.CustomizeWindowHint
    | Qt.WindowType.WindowTitleHint
    | Qt.WindowType.WindowSystemMenuHint
    | Qt.WindowType.WindowMinMaxButtonsHint
    | Qt.WindowType.WindowCloseButtonHint
)
"""Qt makes of a dock that floats a tool window without any of these."""

_BESIDE = QPoint(40, 40)
"""From the corner of all docks: where one floats that has no place of its own on a screen."""

_HELD = 50
"""ms between two looks at whether the mouse still drags the dock: another window would be another drag."""

_MAPPED = 150
"""ms: a window manager that still takes leave of the window as it was before forgets what is asked for sooner."""


class FloatedDocks(QObject):
    """Watches docks, and remembers of each how it floated last."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._kept: dict[str, Floated] = {}

    def watch(self, dock: QDockWidget) -> None:
        dock.topLevelChanged.connect(lambda floats: self._frame(dock) if floats else None)
        dock.installEventFilter(self)

    def remembered(self) -> dict[str, Floated]:
        return dict(self._kept)

    def restore(self, kept: Mapping[str, Floated]) -> None:
        """Take up what was remembered, before the docks float again."""
        self._kept = dict(kept)

    def _frame(self, dock: QDockWidget, began: QPoint | None = None) -> None:
        """Once no button is held: `began` is where the mouse was at first, from where a drag moves it on."""
        if not dock.isFloating() or is_framed(dock):
            return
        if QGuiApplication.mouseButtons() != Qt.MouseButton.NoButton:
            at = QCursor.pos() if began is None else began
            QTimer.singleShot(_HELD, dock, lambda: self._frame(dock, at))
            return
        was_visible, place = dock.isVisible(), dock.geometry()
        dock.setWindowFlags(_FRAMED)
        kept = self._kept.get(dock.objectName())
        moved = QPoint() if began is None else QCursor.pos() - began
        was_dragged = moved.manhattanLength() >= QApplication.startDragDistance()  # who drags says where it is to be
        if kept is not None and not was_dragged:
            normal = QRect(kept.x, kept.y, kept.width, kept.height)
            place = normal if _is_on_a_screen(normal) else place
        owner = dock.parentWidget()
        if owner is not None and not _is_on_a_screen(place):  # behind a tab Qt keeps a dock off every screen
            place = QRect(owner.mapToGlobal(_BESIDE), place.size())
        dock.setGeometry(place)
        dock.setVisible(was_visible)
        if kept is not None and kept.is_maximised and not was_dragged:
            QTimer.singleShot(_MAPPED, dock, partial(self._fill, dock))

    def _fill(self, dock: QDockWidget) -> None:
        if dock.isFloating() and dock.isVisible():
            dock.setWindowState(Qt.WindowState.WindowMaximized)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        changes = (QEvent.Type.Resize, QEvent.Type.Move, QEvent.Type.WindowStateChange)
        if not isinstance(watched, QDockWidget) or not is_framed(watched):
            return False
        if event.type() in changes:
            QTimer.singleShot(0, watched, partial(self._note, watched))  # Qt restores it on the way back to its dock
        elif event.type() == QEvent.Type.MouseButtonDblClick:
            QTimer.singleShot(0, watched, partial(_bring_back, watched))
        return False

    def _note(self, dock: QDockWidget) -> None:
        """Keep how it floats now; while it is maximised its place is that to go back to."""
        if dock.isFloating() and is_framed(dock) and dock.isVisible() and not dock.isMinimized():
            normal = dock.normalGeometry() if dock.isMaximized() else dock.geometry()
            if normal.isValid():
                self._kept[dock.objectName()] = Floated(
                    normal.x(), normal.y(), normal.width(), normal.height(), dock.isMaximized()
                )


def _bring_back(dock: QDockWidget) -> None:
    """To the front of its tabs, where whoever put it back looks for it."""
    if not dock.isFloating():
        dock.show()
        dock.raise_()


def is_framed(dock: QDockWidget) -> bool:
    return bool(dock.windowFlags() & Qt.WindowType.WindowMaximizeButtonHint)


def _is_on_a_screen(place: QRect) -> bool:
    """Whether enough of it can be seen to take hold of it; the screen that it was on may be gone."""
    seen = [screen.availableGeometry() & place for screen in QGuiApplication.screens()]
    return any(part.width() >= 80 and part.height() >= 40 for part in seen)
