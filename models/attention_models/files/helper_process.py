"""A process of the program's own for work that may hang or take memory without end: it is ended when it does.

It answers one request a line, and ends with this program, or when nothing was asked for long. Where it can (on Linux)
it does each in a copy of itself: what was imported once serves the next request also after one was ended, and one
request waits for no other.
"""

from __future__ import annotations

import atexit
import json
import queue
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Literal

import psutil

from attention_models.files.helper_work import OUT_OF_MEMORY
from attention_models.files.own_process import OwnProcess
from attention_models.protocol.request import Cancelled, ShouldStop, never

_EVERY = 0.02  # seconds between two checks
_MOMENT = 0.3  # seconds that a process has to say that it was ended
_IN_COPIES = sys.platform == "linux"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may take. Seconds of a busy computer are no fault of a file, so those of the processor count;
    on a slow one there are more of them (`helper_work.leeway`)."""

    processor_seconds: float
    seconds: float  # by the clock; also how long work may go on after this program is gone
    memory: int  # bytes beyond what the process starts with


class Ended(Exception):
    """The process ended before it had an answer.

    Attributes:
        limit: what it took too much of; "" where it fell.
        seconds: how many it had been given.
        at: what it was at.
    """

    def __init__(self, limit: Literal["time", "memory", ""], limits: Limits, seconds: float, at: str) -> None:
        self.limit, self.limits, self.seconds, self.at = limit, limits, seconds, at
        super().__init__(f"{at} {self.why}")

    @property
    def why(self) -> str:
        """A clause that goes on from the name of what it was at."""
        if self.limit == "time":
            return f"takes longer than {self.seconds:.0f} seconds to read"
        if self.limit == "memory":
            return f"takes more than {self.limits.memory / 1e9:.1f} GB of memory to read"
        return "ended the process that reads it"


class HelperProcess:
    """Asks a process that runs `serve()` of a module. Thread-safe."""

    def __init__(self, module: str, argument: str) -> None:
        """`argument` starts the program as this process where it was frozen into one file with its interpreter."""
        self._own = OwnProcess(module, argument)
        self._lines: _Lines | None = None
        self._asked = 0
        self._turns = threading.Lock()  # over the three above
        self._one = threading.Lock()  # where it does one request after the other
        atexit.register(self.close)

    def start(self) -> None:
        """Have it ready for what will be asked, without waiting for it."""
        with self._turns, suppress(OSError):  # which is said to who asks
            self._own.running()

    def ask(self, request: str, limits: Limits, should_stop: ShouldStop = never) -> str:
        """What it answers.

        Raises:
            Ended: it took more than `limits`, or fell.
            Cancelled: `should_stop` said so.
            OSError: it cannot be started.
        """
        if _IN_COPIES:
            return self._ask(request, limits, should_stop)
        while not self._one.acquire(timeout=_EVERY):
            if should_stop():
                raise Cancelled
        try:
            return self._ask(request, limits, should_stop)
        finally:
            self._one.release()

    def close(self) -> None:
        """End it, if it runs. The next request starts another."""
        with self._turns:
            self._own.end()

    def _ask(self, request: str, limits: Limits, should_stop: ShouldStop) -> str:
        for _ in range(2):
            told = _Told(limits, *self._send(request, limits))
            try:
                answer = told.answer(should_stop)
            finally:
                self._settle(told)
            if answer is not None:
                return answer
            # it ended, as it does when it has nothing to do, just when it was asked: another takes its place
        raise Ended("", limits, 0.0, "")

    def _send(self, request: str, limits: Limits) -> tuple[int, _Lines, queue.SimpleQueue[dict[str, Any]]]:
        with self._turns:
            process = self._own.running()
            if self._lines is None or self._lines.process is not process:
                self._lines = _Lines(process)
            self._asked += 1
            lines = self._lines
            told = lines.of(self._asked)
            self._write(process, {"id": self._asked, "request": request, **asdict(limits)})
            return self._asked, lines, told

    def _settle(self, told: _Told) -> None:
        """Nobody waits any longer for what was asked: end it where it is not over."""
        if told.is_over:
            with self._turns:
                self._own.end_if_fallen()
            return
        with self._turns:
            if _IN_COPIES:
                self._write(told.lines.process, {"end": told.number})
        told.end()
        if not told.lines.are_over(told.number, _MOMENT) and told.lines.is_alone(told.number):
            told.lines.process.kill()  # it is still importing
            told.lines.process.wait()
            with self._turns:
                self._own.end_if_fallen()

    @staticmethod
    def _write(process: subprocess.Popen[bytes], what: dict[str, Any]) -> None:
        assert process.stdin is not None
        with suppress(OSError, ValueError):  # it has fallen: then no line comes
            process.stdin.write(json.dumps(what).encode() + b"\n")
            process.stdin.flush()


class _Lines:
    """Reads what a process says, in a thread that lives as long as something of it is awaited.

    Not everywhere can a pipe be waited for with a limit.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._awaited: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def of(self, request: int) -> queue.SimpleQueue[dict[str, Any]]:
        """Where what it says of a request will come. To be called before that is asked."""
        told: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        with self._changed:
            self._awaited[request] = told
            if self._thread is None:
                self._thread = threading.Thread(target=self._read, name="helper's answers", daemon=True)
                self._thread.start()
        return told

    def are_over(self, request: int, seconds: float) -> bool:
        """Whether the last line about a request has come, or comes within so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: request not in self._awaited, seconds)

    def is_alone(self, request: int) -> bool:
        """Whether nothing is awaited but the last line about a request."""
        with self._changed:
            return set(self._awaited) == {request}

    def _read(self) -> None:
        assert self.process.stdout is not None
        while True:
            try:
                line = self.process.stdout.readline()
            except (OSError, ValueError):  # closed
                line = b""
            if not line:
                with self._changed:
                    for told in self._awaited.values():
                        told.put({"fell": 0})
                    self._awaited.clear()
                    self._thread = None
                    self._changed.notify_all()
                return
            try:
                said = json.loads(line)
            except ValueError:  # its end is missing: who wrote it was ended
                continue
            if self._hand_on(said):
                return

    def _hand_on(self, said: dict[str, Any]) -> bool:
        """Give a line to who awaits it; whether nothing is awaited any more."""
        with self._changed:
            told = self._awaited.get(said.get("id", 0))
            if told is not None:
                told.put(said)
                if _is_last(said):
                    del self._awaited[said["id"]]
                    self._changed.notify_all()
            if not self._awaited:
                self._thread = None
            return not self._awaited


class _Told:
    """What is told of one request, and the process that works on it: the helper itself, or a copy of it."""

    def __init__(self, limits: Limits, number: int, lines: _Lines, told: queue.SimpleQueue[dict[str, Any]]) -> None:
        self.number, self.lines, self.is_over = number, lines, False
        self._limits, self._told = limits, told
        self._limit: Literal["time", "memory", ""] = ""  # what it was ended for
        self._process: psutil.Process | None = None
        self._started = self._seconds = self._clock_seconds = self._processor = 0.0
        self._memory = 0

    def answer(self, should_stop: ShouldStop) -> str | None:
        """Wait for it; None where the helper ended before it took the request."""
        at, was_taken = "", False
        while True:
            try:
                line = self._told.get(timeout=_EVERY)
            except queue.Empty:
                if should_stop():
                    raise Cancelled from None
                self._check()
                continue
            self.is_over = _is_last(line)
            if "answer" in line:
                return str(line["answer"])
            if "pid" in line:
                was_taken = True
                self._watch(int(line["pid"]), float(line["leeway"]))
            elif "note" in line:
                at = str(line["note"])
            elif was_taken:
                limit = self._limit or ("memory" if line["fell"] == OUT_OF_MEMORY else "")
                raise Ended(limit, self._limits, self._seconds, at)
            else:
                return None

    def end(self) -> None:
        if self._process is not None:
            with suppress(psutil.Error):
                self._process.kill()

    def _watch(self, pid: int, leeway: float) -> None:
        self._started, self._seconds = time.monotonic(), leeway * self._limits.processor_seconds
        self._clock_seconds = leeway * self._limits.seconds
        with suppress(psutil.Error):  # it has ended already
            process = psutil.Process(pid)
            self._processor, self._memory = _spent(process), process.memory_info().rss
            self._process = process

    def _check(self) -> None:
        """End it if it has taken more than it may."""
        if self._process is None or self._limit:
            return
        try:
            spent, held = _spent(self._process), self._process.memory_info().rss
        except psutil.Error:
            return
        elapsed = time.monotonic() - self._started
        if held - self._memory > self._limits.memory:
            self._limit = "memory"
        # several threads spend more than a second of the processor in a second of the clock
        elif min(spent - self._processor, elapsed) > self._seconds or elapsed > self._clock_seconds:
            self._limit = "time"
        if self._limit:
            self.end()


def _is_last(line: dict[str, Any]) -> bool:
    return "answer" in line or "fell" in line


def _spent(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
