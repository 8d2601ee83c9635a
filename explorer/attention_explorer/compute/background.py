"""Work on files beside the window: one thread, one thing after the other, each answered in the GUI thread."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from PySide6.QtCore import QObject, Qt, Signal, Slot

from attention_models.protocol.request import Cancelled

T = TypeVar("T")

IDLE_SECONDS = 0.5

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class _Done:
    then: Callable[[Any], object]
    outcome: object


class Background(QObject):
    """Owns the thread, which starts with a job and ends where there is none for a while.

    Every method is called in the GUI thread.
    """

    _done = Signal(object)  # emitted in the thread

    def __init__(self, name: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._name = name
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._turns = threading.Lock()  # held while the thread starts or ends
        self._stopped = False
        self._done.connect(self._deliver, Qt.ConnectionType.QueuedConnection)

    def should_stop(self) -> bool:
        """For jobs that take long, to poll."""
        return self._stopped

    def run(self, job: Callable[[], T], then: Callable[[T | Exception], object]) -> None:
        """Do a job in the thread, and `then` with what came of it, or with what it raised, in this one."""
        if self._stopped:
            return
        with self._turns:
            self._jobs.put(lambda: self._done.emit(_Done(then, _outcome(job))))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()

    def stop(self, timeout: float, finish: bool = False) -> bool:
        """End the thread; whether it ended within `timeout` seconds. Nothing is delivered afterwards.

        With `finish` the jobs that wait are done first.
        """
        self._stopped = not finish
        with self._turns:
            self._jobs.put(None)
            thread = self._thread
        if thread is not None:
            thread.join(timeout)
        self._stopped = True
        return thread is None or not thread.is_alive()

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                with self._turns:
                    if self._jobs.empty():
                        self._thread = None
                        return
                continue
            if job is None:
                return
            if not self._stopped:
                job()

    @Slot(object)
    def _deliver(self, done: _Done) -> None:
        if not self._stopped:
            done.then(done.outcome)


def _outcome(job: Callable[[], T]) -> T | Exception:
    try:
        return job()
    except Cancelled as error:
        return error
    except Exception as error:
        if not isinstance(error, (OSError, ValueError)):
            log.exception("work on files failed")
        return error
