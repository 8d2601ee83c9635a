"""The bridge: requests go from the GUI thread to the worker, answers come back as a signal in the GUI thread."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from attention_explorer.compute.gui_queue import GuiQueue
from attention_explorer.compute.mailbox import LOAD, Mailbox
from attention_explorer.compute.worker import EngineLike, Worker, open_engine
from attention_explorer.session.intents import Arrived, Busy
from attention_explorer.session.session import Session
from attention_models.files import collecting
from attention_models.protocol.request import Lane, Progress, Request, Result

# Garbage is looked for in the GUI thread alone: Qt's objects may be deleted in no other.
# Python does it in the thread that happens to make an object. That may be the engine's, and a widget or a timer in a
# cycle of garbage would be deleted there, which ends the process.


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


PATIENCE_SECONDS = 0.3
"""Work that ends sooner than this says nothing about its progress: a label that flashes cannot be read."""


class Bridge(QObject):
    """Owns the mailbox and the worker. Every method is called in the GUI thread.

    The thread starts with the first request, so that torch is imported after the window is up.
    """

    arrived = Signal(object)
    """A `Result` whose request is still current: a `Progress`, or the one answer."""
    busy_changed = Signal(object)
    """A frozenset of the lanes whose newest request has no answer yet."""

    def __init__(
        self,
        engine_factory: Callable[[], EngineLike] = open_engine,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._mailbox = Mailbox()
        self.turns = GuiQueue(self)
        """In which answers come. Whatever else takes its time in the GUI thread shares them."""
        self._worker = Worker(self._mailbox, self._deliver, engine_factory)
        self._collector = GarbageCollector(self.turns, self)
        self._started = False
        self._stopped = False
        self._unanswered: dict[Lane, tuple[int, float]] = {}  # lane -> its newest ticket, and when that was posted
        self._held: dict[Lane, Progress] = {}  # lane -> progress of work that may yet end within the patience
        self._announced: frozenset[Lane] = frozenset()
        self._patience = QTimer(self)
        self._patience.setSingleShot(True)
        self._patience.timeout.connect(self._release_progress)

    @property
    def busy(self) -> frozenset[Lane]:
        """The lanes whose newest request has no answer yet."""
        return frozenset(self._unanswered)

    def post(self, request: Request) -> None:
        """Ask the engine. The answer comes through `arrived`, unless a newer request takes this one's place."""
        if self._stopped:
            return
        ticketed = self._mailbox.post(request)
        lane = request.lane
        known = self._unanswered.get(lane)
        if known is None or known[0] != ticketed.ticket:
            if lane == LOAD:  # the mailbox called off everything else, which nobody will answer
                self._unanswered.clear()
                self._held.clear()
            self._unanswered[lane] = (ticketed.ticket, time.monotonic())
            self._held.pop(lane, None)
        self._announce_busy()
        if not self._started:
            self._started = True
            self._collector.start()
            self._worker.start()

    def call_off(self, lane: Lane) -> None:
        """Nobody waits any longer for what `lane` is at; it is answered by nothing."""
        self._mailbox.call_off(lane)
        self._unanswered.pop(lane, None)
        self._held.pop(lane, None)
        self._announce_busy()

    def stop(self, timeout: float = 5.0) -> bool:
        """Call off all work and wait for the thread, at most `timeout` seconds. Returns whether it has ended.

        Nothing arrives afterwards, and later requests are ignored.
        """
        self._stopped = True
        self._patience.stop()
        self._held.clear()
        self._unanswered.clear()
        self._collector.wait_no_more()
        ended = self._worker.stop(timeout)
        if ended:
            self._collector.stop()
        self._announce_busy()
        return ended

    def _deliver(self, result: Result) -> None:
        """Called in the worker's thread."""
        self.turns.do(lambda: self._receive(result))

    def _receive(self, result: Result) -> None:
        if not self._mailbox.is_current(result.request):
            return
        if isinstance(result, Progress):
            self._receive_progress(result)
            return
        lane = result.request.lane
        entry = self._unanswered.get(lane)
        if entry is not None and entry[0] == result.request.ticket:  # else a newer one waits for this one's end
            del self._unanswered[lane]
        self._held.pop(lane, None)
        self.arrived.emit(result)
        self._mailbox.handled(result.request)
        self._announce_busy()  # after the answer, which may ask for more: the lanes in between do not flicker

    def _receive_progress(self, progress: Progress) -> None:
        entry = self._unanswered.get(progress.request.lane)
        if entry is None:
            return
        remaining = entry[1] + PATIENCE_SECONDS - time.monotonic()
        if remaining <= 0:
            self._held.pop(progress.request.lane, None)
            self.arrived.emit(progress)
            return
        self._held[progress.request.lane] = progress
        if not self._patience.isActive():
            self._patience.start(_milliseconds(remaining))

    def _release_progress(self) -> None:
        now = time.monotonic()
        due = {lane: self._unanswered[lane][1] + PATIENCE_SECONDS for lane in self._held}
        ripe = [self._held.pop(lane) for lane, at in due.items() if at <= now]
        if self._held:
            self._patience.start(_milliseconds(min(due[lane] for lane in self._held) - now))
        for progress in ripe:
            self.arrived.emit(progress)

    def _announce_busy(self) -> None:
        if self.busy != self._announced:
            self._announced = self.busy
            self.busy_changed.emit(self.busy)


def connect(session: Session, bridge: Bridge) -> None:
    """Let `bridge` answer what `session` asks. `session.start()` then sets things going."""
    session.requested.connect(bridge.post)
    session.called_off.connect(bridge.call_off)
    bridge.arrived.connect(lambda result: session.dispatch(Arrived(result)))
    bridge.busy_changed.connect(lambda lanes: session.dispatch(Busy(lanes)))


def _milliseconds(seconds: float) -> int:
    return int(seconds * 1000) + 1
