"""A process that is told what to do over a pipe: a thread reads what it says, another one tells it."""

from __future__ import annotations

import logging
import queue
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from attention_models.files.own_process import OwnProcess
from attention_models.protocol.training_messages import MOST_BYTES, Failed, Fell, Message, line_of

log = logging.getLogger(__name__)

_KILLED_WITHIN = 0.5  # seconds

HeardT = TypeVar("HeardT", bound=Message)


@dataclass(frozen=True, slots=True)
class Work(Generic[HeardT]):
    """What a process is for."""

    module: str  # whose `serve()` it runs
    argument: str  # starts the program as that process, where it was frozen into one file with its interpreter
    read: Callable[[bytes], HeardT]  # of a line that it says; raises ValueError for anything else than a message
    again: str  # what a person does where it has failed, as a sentence: "Train again."


class MessageProcess(Generic[HeardT]):
    """One process, from its start to its end, and the threads that talk with it."""

    def __init__(
        self,
        work: Work[HeardT],
        first: Message,
        deliver: Callable[[HeardT | Failed | Fell], None],
        prepare: Callable[[], str] = lambda: "",
    ) -> None:
        """`first` is told before anything else. `deliver` is called in a thread of its own, and so is `prepare`,
        before the process is started: where it says a sentence, that is why there is none.
        """
        self._own = OwnProcess(work.module, work.argument)
        self._work, self._first, self._deliver, self._prepare = work, first, deliver, prepare
        self._to_tell: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ending = threading.Event()
        self._has_begun = False
        self._thread = threading.Thread(target=self._live, name="listening to what trains", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def tell(self, message: Message) -> None:
        self._to_tell.put(message)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def pid(self) -> int | None:
        """Of the process, once it is started."""
        return None if self._process is None else self._process.pid

    def end(self) -> None:
        """Tell it to end, without waiting: a file that it writes is finished first."""
        self._is_ending.set()
        self._to_tell.put(None)
        if not self._has_begun:
            self.kill()  # it is still importing, and has nothing to finish

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def wait(self, timeout: float) -> bool:
        """For its end, at most so many seconds; whether it has ended."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _live(self) -> None:
        if sentence := self._prepare():
            self._deliver(Failed(sentence))
            return
        try:
            process = self._process = self._own.running()
        except OSError as error:
            why = error.strerror or str(error)
            self._deliver(Failed(f"The process that trains cannot be started ({why}). Close other programs."))
            return
        if self._is_ending.is_set():
            process.kill()
        threading.Thread(target=self._tell, args=(process,), name="telling what trains", daemon=True).start()
        has_failed = self._listen(process)
        self._to_tell.put(None)
        code = process.wait()
        self._own.end()
        if not (has_failed or self._is_ending.is_set()):
            self._deliver(Fell(code))

    def _tell(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        message: Message | None = self._first
        with suppress(OSError, ValueError):  # it has ended, which is told elsewhere
            while message is not None:
                process.stdin.write(line_of(message))
                process.stdin.flush()
                message = self._to_tell.get()
        with suppress(OSError, ValueError):
            process.stdin.close()

    def _listen(self, process: subprocess.Popen[bytes]) -> bool:
        """Until it says nothing more; whether it has said that it failed."""
        assert process.stdout is not None
        while True:
            try:
                line = process.stdout.readline(MOST_BYTES + 1)
                if not line:
                    return False
                message = self._work.read(line)
            except (OSError, ValueError) as error:
                if self._process_is_over(process):
                    return False  # it was ended in the middle of a line
                log.warning("the process that trains said what cannot be read: %s", error)
                process.kill()
                said = "The process that trains said what cannot be read, and was ended."
                self._deliver(Failed(f"{said} {self._work.again}"))
                return True
            self._has_begun = True
            if self._is_ending.is_set():
                continue
            self._deliver(message)
            if isinstance(message, Failed):
                if message.cause:
                    log.warning("%s\n%s", message.sentence, message.cause)
                return True

    @staticmethod
    def _process_is_over(process: subprocess.Popen[bytes]) -> bool:
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
        return process.poll() is not None


def end_all(processes: list[MessageProcess[HeardT]], timeout: float) -> bool:
    """End them; whether that was done within `timeout` seconds.

    With a timeout of 0 they are only told; else those that do not end are killed.
    """
    deadline = time.monotonic() + timeout
    for process in processes:
        process.end()
    ended = [process.wait(max(0.0, deadline - time.monotonic())) for process in processes]
    if timeout and not all(ended):
        for process in processes:
            process.kill()
        ended = [process.wait(_KILLED_WITHIN) for process in processes]
    return all(ended)
