"""Dialogs that are answered before anything else in the program, and that do not keep it from being closed.

Qt's modal dialogs do: a window manager that asks a window behind one to close is not heard, and nothing tells of it.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QEventLoop, QObject, Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog

_INPUT = frozenset(
    {
        *(QEvent.Type.MouseButtonPress, QEvent.Type.MouseButtonRelease, QEvent.Type.MouseButtonDblClick),
        *(QEvent.Type.MouseMove, QEvent.Type.Enter, QEvent.Type.Wheel, QEvent.Type.ContextMenu),
        *(QEvent.Type.KeyPress, QEvent.Type.KeyRelease, QEvent.Type.ShortcutOverride),
        *(QEvent.Type.TouchBegin, QEvent.Type.TouchUpdate, QEvent.Type.TouchEnd, QEvent.Type.NativeGesture),
        *(QEvent.Type.TabletPress, QEvent.Type.TabletMove, QEvent.Type.TabletRelease),
        *(QEvent.Type.DragEnter, QEvent.Type.DragMove, QEvent.Type.Drop),
    }
)
_REFUSED = frozenset({QEvent.Type.DragEnter, QEvent.Type.DragMove, QEvent.Type.Drop})


def open_in_front(dialog: QDialog) -> None:
    """Show `dialog`. Until it is closed no other window of the program takes input; closing one of them cancels it."""
    dialog.setWindowModality(Qt.WindowModality.NonModal)
    front = _Front(dialog)
    dialog.show()
    front.come_forward()


def answer_of(dialog: QDialog) -> int:
    """As `open_in_front`, and wait until it is closed, as `QDialog.exec` does; its result.

    It is deleted once the caller is back in the event loop.
    """
    loop, results = QEventLoop(), list[int]()
    dialog.finished.connect(results.append)
    for over in (dialog.finished, dialog.destroyed):
        over.connect(lambda *_: loop.quit())
    dialog.finished.connect(dialog.deleteLater)
    open_in_front(dialog)
    loop.exec()
    return results[0] if results else QDialog.DialogCode.Rejected.value  # it went with its parent


class _Front(QObject):
    """Takes the input of the windows that are open when `dialog` opens, as long as it is."""

    def __init__(self, dialog: QDialog) -> None:
        super().__init__(dialog)
        self._dialog = dialog
        self._is_over = False
        for window in QGuiApplication.topLevelWindows():
            if window is not dialog.windowHandle():
                window.installEventFilter(self)
        dialog.finished.connect(self._end)

    def _end(self) -> None:
        self._is_over = True
        self.deleteLater()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if self._is_over:
            return False
        kind = event.type()
        if kind in _INPUT:
            event.setAccepted(kind not in _REFUSED)  # a key that is taken here is no shortcut of the window behind
            if kind == QEvent.Type.MouseButtonPress:
                self.come_forward()
            return True
        if kind == QEvent.Type.FocusIn:
            QTimer.singleShot(0, self, self.come_forward)
        elif kind == QEvent.Type.Close:
            self._dialog.reject()
        return False

    def come_forward(self) -> None:
        self._dialog.raise_()
        self._dialog.activateWindow()
