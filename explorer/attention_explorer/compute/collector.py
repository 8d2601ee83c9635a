"""Garbage is looked for in the GUI thread alone: Qt's objects may be deleted in no other.

Python does it in the thread that happens to make an object. That may be the engine's, and a widget or a timer in a
cycle of garbage would be deleted there, which ends the process.
"""

from __future__ import annotations

import gc
import threading
import time
from contextlib import suppress
from functools import partial

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from attention_explorer.compute.gui_queue import GuiQueue
from attention_models.files import collecting

_EVERY = 500  # ms between two looks
_PATIENCE_SECONDS, _MOMENT_SECONDS = 2.0, 0.02  # that another thread waits for this one, which may be busy


class GarbageCollector(QObject):
    """Lives in the GUI thread. From `start` to `stop` there is garbage collection nowhere else."""

    _asked = Signal(object)  # emitted in other threads

    def __init__(self, turns: GuiQueue, parent: QObject | None = None) -> None:
        """It looks in `turns`: what it finds among the oldest objects may take as long as a whole answer."""
        super().__init__(parent)
        self._timer = QTimer(self)
        self._timer.setInterval(_EVERY)
        self._timer.timeout.connect(lambda: turns.do(self._look))
        self._asked.connect(self._answer, Qt.ConnectionType.QueuedConnection)
        self._here, self._is_closing = threading.get_ident(), False
        self.destroyed.connect(partial(collecting.hand_back, self.collect))

    def start(self) -> None:
        if not self._timer.isActive():
            self._timer.start()
            collecting.take_over(self.collect)

    def wait_no_more(self) -> None:
        """Keep no thread waiting: this one is about to wait for them."""
        self._is_closing = True

    def stop(self) -> None:
        self._timer.stop()
        collecting.hand_back(self.collect)

    def collect(self) -> None:
        """Look for all garbage, from any thread."""
        if threading.get_ident() == self._here:
            gc.collect()
            return
        done, until = threading.Event(), time.monotonic() + _PATIENCE_SECONDS
        with suppress(RuntimeError):  # it was deleted
            self._asked.emit(done)
        while not (self._is_closing or done.wait(_MOMENT_SECONDS) or time.monotonic() > until):
            pass

    def _answer(self, done: threading.Event) -> None:
        gc.collect()
        done.set()

    def _look(self) -> None:
        """As Python would: the young often, and the older the more rarely."""
        if collecting.is_deferred() or not self._timer.isActive():
            return
        due = [
            generation
            for generation, (count, most) in enumerate(zip(gc.get_count(), gc.get_threshold(), strict=True))
            if count > most
        ]
        if due:
            gc.collect(due[-1])
