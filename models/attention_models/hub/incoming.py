"""What a server sends, received in a thread: whoever waits for it can be called off, however slowly it comes."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from typing import Any

import httpx2

from attention_models.protocol.work import Cancelled, ShouldStop

PATIENCE_SECONDS = 30.0
"""An answer may take so long, and besides as long as it takes at `SLOWEST`."""
SLOWEST = 10_000
"""Bytes a second."""

_EVERY = 0.1  # seconds between two looks at whether it was called off
_AHEAD = 1  # pieces that are received before they are asked for: they are lost where the transfer is called off


class Incoming:
    """An answer that is being received. It is closed when it is no longer wanted."""

    def __init__(self, ask: Callable[[], AbstractContextManager[Any]], should_stop: ShouldStop) -> None:
        """`ask` gives the answer, of httpx, once its first line has come."""
        self._ask, self._should_stop = ask, should_stop
        self._received: queue.Queue[Any] = queue.Queue(_AHEAD)
        self._is_closed = threading.Event()
        self._started, self._bytes = time.monotonic(), 0
        threading.Thread(target=self._receive, name="hub's answer", daemon=True).start()
        self.status: int = self._next()

    def pieces(self, patiently: bool = False) -> Iterator[bytes]:
        """The pieces as they come.

        Args:
            patiently: a download may take as long as it takes; the person sees how far it is.

        Raises:
            Cancelled: waiting for one was called off.
            httpx2.HTTPError: the connection broke, or it comes more slowly than `SLOWEST`.
        """
        while piece := self._next(patiently):
            self._bytes += len(piece)
            yield piece

    def close(self) -> None:
        """Receive no more of it."""
        self._is_closed.set()

    def _next(self, patiently: bool = False) -> Any:
        while True:
            with suppress(queue.Empty):
                received = self._received.get(timeout=_EVERY)
                if isinstance(received, BaseException):
                    raise received
                if received and not patiently:
                    self._check_pace()
                return received
            if self._should_stop():
                self.close()
                raise Cancelled
            if not patiently:
                self._check_pace()

    def _check_pace(self) -> None:
        if time.monotonic() - self._started > PATIENCE_SECONDS + self._bytes / SLOWEST:
            self.close()
            raise httpx2.ReadTimeout("it comes too slowly")

    def _receive(self) -> None:
        try:
            with self._ask() as response:
                self._put(response.status_code)
                for piece in response.iter_raw():
                    if piece:
                        self._put(piece)
                    if self._is_closed.is_set():
                        return
            self._put(b"")
        except BaseException as error:  # it is raised where the answer is waited for
            self._put(error)

    def _put(self, received: Any) -> None:
        while not self._is_closed.is_set():
            with suppress(queue.Full):
                self._received.put(received, timeout=_EVERY)
                return
