"""The mailbox between the window and the worker: one slot a lane, where the newest request waits."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TypeVar

from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.request import Lane, Request

RequestT = TypeVar("RequestT", bound=Request)

LOAD = LoadRequest.lane


class Mailbox:
    """Holds at most one waiting request a lane. Every method may be called from any thread; one thread takes.

    A request is superseded by a newer one in its lane, by a newer load in any lane (it speaks of a model that is going
    away), and by closing. Once superseded it stays so. In a lane that finishes, a newer request does not supersede the
    one that was taken, but waits until that one is `handled`.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting: dict[Lane, Request] = {}  # lane -> request, in the order in which the lanes began to wait
        self._running: Request | None = None
        self._newest: dict[Lane, int] = {}  # lane -> ticket
        self._begun: dict[Lane, int] = {}  # lane that finishes -> the ticket that was taken and is not handled yet
        self._tickets = 0
        self._closed = False

    def post(self, request: RequestT) -> RequestT:
        """Put `request` into its lane's slot; returns it with its ticket.

        Where the lane's newest request asks for the very same and is not answered yet, that one is returned instead.
        """
        with self._condition:
            same = self._unanswered(request)
            if same is not None:
                return same
            self._tickets += 1
            ticketed = replace(request, ticket=self._tickets)
            if self._closed:
                return ticketed
            self._newest[request.lane] = self._tickets
            if request.lane == LOAD:
                self._waiting.clear()
                self._begun.clear()
            elif not request.lane.finishes:
                self._begun.pop(request.lane, None)
            self._waiting[request.lane] = ticketed
            self._condition.notify()
            return ticketed

    def take(self, timeout: float | None = None) -> Request | None:
        """Wait for a request to work on, at most `timeout` seconds; None when there is none or the box is closed."""
        with self._condition:
            self._condition.wait_for(lambda: self._closed or bool(self._ready()), timeout)
            ready = self._ready()
            if self._closed or not ready:
                return None
            request = min(ready, key=lambda request: request.lane.order)  # the first of equals
            self._running = self._waiting.pop(request.lane)
            if request.lane.finishes:
                self._begun[request.lane] = request.ticket
            return request

    def call_off(self, lane: Lane) -> None:
        """Nobody waits any longer for the answer to the lane's newest request, and nothing takes its place."""
        with self._condition:
            self._tickets += 1
            self._newest[lane] = self._tickets
            self._waiting.pop(lane, None)
            self._begun.pop(lane, None)

    def done(self) -> None:
        """The request taken last is answered. Called before its answer leaves, so that asking again is not refused."""
        with self._condition:
            self._running = None

    def handled(self, request: Request) -> None:
        """Whoever asked has the answer, and has asked for what follows from it: a newer one comes next, behind that."""
        with self._condition:
            if self._begun.get(request.lane) != request.ticket:
                return
            del self._begun[request.lane]
            if request.lane in self._waiting:
                self._waiting[request.lane] = self._waiting.pop(request.lane)  # at the end
            self._condition.notify()

    def superseded(self, request: Request) -> bool:
        """Whether nobody waits for the answer to `request` any longer."""
        with self._condition:
            return self._superseded(request)

    def is_current(self, request: Request) -> bool:
        """Whether the answer to `request` is still wanted."""
        return not self.superseded(request)

    def close(self) -> None:
        """Call off everything, waiting or running; nothing is handed out any more."""
        with self._condition:
            self._closed = True
            self._waiting.clear()
            self._condition.notify_all()

    def _superseded(self, request: Request) -> bool:
        load, newest = self._newest.get(LOAD, 0), self._newest.get(request.lane, 0)
        is_begun = self._begun.get(request.lane) == request.ticket
        return self._closed or load > request.ticket or (newest > request.ticket and not is_begun)

    def _ready(self) -> list[Request]:
        return [request for lane, request in self._waiting.items() if lane not in self._begun]

    def _unanswered(self, request: RequestT) -> RequestT | None:
        for other in (self._waiting.get(request.lane), self._running):
            if isinstance(other, type(request)) and other == request and not self._superseded(other):
                return other
        return None
