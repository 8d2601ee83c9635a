"""The program ends as it does when its window is closed, whoever asks for it: a terminal, `kill`, a shutdown."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

from PySide6.QtCore import QSocketNotifier
from PySide6.QtWidgets import QApplication, QDialog, QWidget

from attention_explorer import console


class Ends(Protocol):
    """A window that can be closed when nobody is there to answer."""

    def end(self) -> None: ...


@contextmanager
def closing_on_signals(window: Ends) -> Iterator[None]:
    """Around the event loop: a signal that ends programs closes `window` unasked, and the loop ends with exit code 0.

    Python calls a signal's handler only between two steps of Python, and Qt's loop may take none for hours. The signal
    therefore writes a byte into a socket that the loop listens to.
    """
    asked: float | None = None

    def on_signal(number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        now = time.monotonic()
        if asked is None:
            asked = now
        elif now - asked > console.GRACE_SECONDS:  # the loop is held up
            console.end_by(number)

    def close() -> None:
        received.recv(64)
        window.end()
        QApplication.exit(0)

    received, written = socket.socketpair()
    for end in (received, written):
        end.setblocking(False)
    notifier = QSocketNotifier(received.fileno(), QSocketNotifier.Type.Read)
    notifier.activated.connect(close)
    with received, written, console.handling(on_signal):
        before = signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            notifier.setEnabled(False)


def close_dialogs(window: QWidget) -> None:
    """Cancel every dialog and close every menu that is open over `window`: each may hold an event loop of its own."""
    while (popup := QApplication.activePopupWidget()) is not None:
        popup.close()
        if QApplication.activePopupWidget() is popup:
            break
    for dialog in window.findChildren(QDialog):
        if dialog.isVisible():
            dialog.reject()
