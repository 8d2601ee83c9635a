"""What is to be done in the GUI thread, one thing each turn of the event loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, QTimer, Signal


class GuiQueue(QObject):
    """Qt delivers all queued signals in one turn, and each of them may change what every panel shows.

    Here a key, a wheel or a paint comes between two of them, however many arrive at once.
    """

    _came = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: deque[Callable[[], object]] = deque()
        self._timer = QTimer(self)  # without an interval it fires once in each turn
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._do_next)
        self._came.connect(self._timer.start, Qt.ConnectionType.QueuedConnection)

    def do(self, call: Callable[[], object]) -> None:
        """Call it in the GUI thread, after all that was asked for before. May be asked from any thread.

        Raises:
            RuntimeError: this was deleted.
        """
        self._waiting.append(call)
        self._came.emit()

    def _do_next(self) -> None:
        if not self._waiting:
            return
        call = self._waiting.popleft()
        if self._waiting:
            self._timer.start()  # before: it may run an event loop of its own
        call()
