"""The mailbox between the window and the worker: one slot a lane, and the newest request wins."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TypeVar

from models.protocol.loading import LoadRequest
from models.protocol.request import Lane, Request

RequestT = TypeVar("RequestT", bound=Request)

LOAD = LoadRequest.lane


class Mailbox:
    """Holds at most one waiting request a lane. Every method may be called from any thread; one thread takes.

    A request is superseded by a newer one in its lane, by a newer load in any lane (it speaks of a model that is going
    away), and by closing. Once superseded it stays so.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting: dict[Lane, Request] = {}  # lane -> request, in the order in which the lanes began to wait
        self._running: Request | None = None
        self._newest: dict[Lane, int] = {}  # lane -> ticket
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
            self._waiting[request.lane] = ticketed
            self._condition.notify()
            return ticketed

    def take(self, timeout: float | None = None) -> Request | None:
        """Wait for a request to work on, at most `timeout` seconds; None when there is none or the box is closed."""
        with self._condition:
            self._condition.wait_for(lambda: self._closed or bool(self._waiting), timeout)
            if self._closed or not self._waiting:
                return None
            lane = min(self._waiting, key=lambda lane: lane.order)  # the first of equals
            self._running = self._waiting.pop(lane)
            return self._running

    def call_off(self, lane: Lane) -> None:
        """Nobody waits any longer for the answer to the lane's newest request, and nothing takes its place."""
        with self._condition:
            self._tickets += 1
            self._newest[lane] = self._tickets
            self._waiting.pop(lane, None)

    def done(self) -> None:
        """The request taken last is answered. Called before its answer leaves, so that asking again is not refused."""
        with self._condition:
            self._running = None

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
        newest = max(self._newest.get(request.lane, 0), self._newest.get(LOAD, 0) if request.lane != LOAD else 0)
        return self._closed or newest > request.ticket

    def _unanswered(self, request: RequestT) -> RequestT | None:
        for other in (self._waiting.get(request.lane), self._running):
            if isinstance(other, type(request)) and other == request and not self._superseded(other):
                return other
        return None
