"""A process that trains, in a thread of the test: both ends of its pipes."""

from __future__ import annotations

import os
import threading
from typing import IO, Any

from models.protocol.training_messages import Message, from_process, line_of
from models.training.training_process import Learner


class Talk:
    """A `Learner` in a thread, and both ends of its pipes."""

    def __init__(self) -> None:
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
            Learner(source, out).serve()

    def tell(self, *said: Message) -> None:
        for message in said:
            self.write(line_of(message))

    def write(self, line: bytes) -> None:
        self._to.write(line)

    def until(self, kind: type[Any], holds: Any = lambda _: True) -> tuple[list[Message], Any]:
        """What is said until a message of a kind, and that."""
        before: list[Message] = []
        while True:
            message = from_process(self._from.readline())
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
