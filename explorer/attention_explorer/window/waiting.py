"""Waiting for a window that no person sits at."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QDeadlineTimer, QEventLoop, QTimer
from PySide6.QtWidgets import QApplication


def wait_for(is_so: Callable[[], bool], deadline: QDeadlineTimer) -> bool:
    """Let Qt work until `is_so`, or until the deadline; whether it is so."""
    waker = QTimer()
    waker.start(20)  # with a time limit of its own processEvents would not sleep
    while not is_so():
        if deadline.hasExpired():
            return False
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
    return True


def wait_within(seconds: float, is_so: Callable[[], bool]) -> bool:
    """The same for so many seconds at most."""
    return wait_for(is_so, QDeadlineTimer(int(seconds * 1000)))
