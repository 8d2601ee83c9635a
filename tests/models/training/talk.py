"""A process that trains, in a thread of the test: both ends of its pipes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import IO, Any, Protocol

from attention_models.protocol.training_messages import Message, from_process, line_of
from attention_models.training.training_process import Learner


class Serves(Protocol):
    def serve(self) -> None: ...


class Talk:
    """What trains, in a thread, and both ends of its pipes."""

    def __init__(
        self,
        made: Callable[[IO[bytes], IO[bytes]], Serves] = Learner,
        read: Callable[[bytes], Message] = from_process,
    ) -> None:
        """`read` makes messages of the lines that it says."""
        self._made, self._read = made, read
        source, told = os.pipe()
        heard, out = os.pipe()
        self._to: IO[bytes] = os.fdopen(told, "wb", buffering=0)
        self._from: IO[bytes] = os.fdopen(heard, "rb")
        self._ends = os.fdopen(source, "rb"), os.fdopen(out, "wb")
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        source, out = self._ends
        with source, out:
            self._made(source, out).serve()

    def tell(self, *said: Message) -> None:
        for message in said:
            self.write(line_of(message))

    def write(self, line: bytes) -> None:
        self._to.write(line)

    def until(self, kind: type[Any], holds: Any = lambda _: True) -> tuple[list[Message], Any]:
        """What is said until a message of a kind, and that."""
        before: list[Message] = []
        while True:
            message = self._read(self._from.readline())
            if isinstance(message, kind) and holds(message):
                return before, message
            before.append(message)

    def close(self) -> None:
        self._to.close()
        while self._from.readline():  # it does not wait for a reader
            pass
        self._from.close()
        self.thread.join(20)
        assert not self.thread.is_alive()
