"""A process of the program's own for work that may hang or take memory without end: it is ended when it does.

It answers one request a line, and ends with this program. Where it can (on Linux) it does each in a copy of itself, so
that what was imported once serves the next request also after one was ended.
"""

from __future__ import annotations

import atexit
import json
import queue
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import psutil

from models.files.helper_work import OUT_OF_MEMORY
from models.files.own_process import OwnProcess
from models.protocol.work import Cancelled, ShouldStop, never

_EVERY = 0.02  # seconds between two checks
_MOMENT = 0.3  # seconds that a process has to say that it was ended


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may take. Seconds of a busy computer are no fault of a file, so those of the processor count."""

    processor_seconds: float
    seconds: float  # by the clock; also how long work may go on after this program is gone
    memory: int  # bytes beyond what the process starts with

    @property
    def too_much_memory(self) -> str:
        return f"takes more than {self.memory / 1e9:.1f} GB of memory to read"


class Ended(Exception):
    """The process ended before it had an answer. `why` goes on from the name of what it was at (`at`)."""

    def __init__(self, why: str, at: str) -> None:
        super().__init__(f"{at} {why}")
        self.why, self.at = why, at


class HelperProcess:
    """Asks a process that runs `serve()` of a module. Thread-safe; one request at a time."""

    def __init__(self, module: str, argument: str) -> None:
        """`argument` starts the program as this process where it was frozen into one file with its interpreter."""
        self._own = OwnProcess(module, argument)
        self._asked = 0
        self._lock = threading.Lock()
        atexit.register(self.close)

    def start(self) -> None:
        """Have it ready for what will be asked, without waiting for it."""
        with self._lock, suppress(OSError):  # which is said to who asks
            self._own.running()

    def ask(self, request: str, limits: Limits, should_stop: ShouldStop = never) -> str:
        """What it answers.

        Raises:
            Ended: it took more than `limits`, or fell.
            Cancelled: `should_stop` said so.
            OSError: it cannot be started.
        """
        with self._lock:
            try:
                return self._answer(request, limits, should_stop)
            except BaseException:
                self._own.end_if_fallen()
                raise

    def close(self) -> None:
        """End it, if it runs. The next request starts another."""
        with self._lock:
            self._own.end()

    def _answer(self, request: str, limits: Limits, should_stop: ShouldStop) -> str:
        process = self._own.running()
        assert process.stdin is not None
        self._asked += 1
        envelope = {"id": self._asked, "request": request, **asdict(limits)}
        with suppress(OSError):  # it has fallen: then no line comes
            process.stdin.write(json.dumps(envelope).encode() + b"\n")
            process.stdin.flush()
        lines = _Lines(process, self._asked)
        worker: _Watched | None = None
        at = ""
        try:
            while True:
                line = lines.next(_EVERY)
                if line is None:
                    if should_stop():
                        raise Cancelled
                    if worker is not None:
                        worker.check()
                elif "answer" in line:
                    return str(line["answer"])
                elif "pid" in line:
                    worker = _Watched(int(line["pid"]), limits)
                elif "note" in line:
                    at = str(line["note"])
                else:
                    if worker is not None and line["fell"] == OUT_OF_MEMORY:
                        worker.why = limits.too_much_memory
                    raise Ended((worker.why if worker is not None else "") or "ended the process that reads it", at)
        finally:
            if not lines.are_over and worker is not None:
                worker.end("")
            lines.close()


class _Lines:
    """Reads what a process says of one request, in a thread: not everywhere can a pipe be waited for with a limit."""

    def __init__(self, process: subprocess.Popen[bytes], request: int) -> None:
        self.are_over = False
        self._process, self._request = process, request
        self._queue: queue.Queue[dict[str, Any]] = queue.Queue()
        self._thread = threading.Thread(target=self._read, name="helper's answer", daemon=True)
        self._thread.start()

    def next(self, seconds: float) -> dict[str, Any] | None:
        """What it says next; None where it says nothing for so many seconds."""
        try:
            line = self._queue.get(timeout=seconds)
        except queue.Empty:
            return None
        self.are_over = "answer" in line or "fell" in line
        return line

    def close(self) -> None:
        """Nobody waits for what is still to come; the process is ended where it does not come at once."""
        self._thread.join(_MOMENT)
        if self._thread.is_alive():
            self._process.kill()
            self._process.wait()
            self._thread.join()  # before its pipe is closed

    def _read(self) -> None:
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            try:
                said = json.loads(line)
            except ValueError:  # its end is missing: who wrote it was ended
                continue
            if said.get("id") == self._request:
                self._queue.put(said)
                if "answer" in said or "fell" in said:
                    return
        self._queue.put({"fell": 0})


class _Watched:
    """The process that does the work: the helper itself, or a copy of it."""

    def __init__(self, pid: int, limits: Limits) -> None:
        self.why = ""
        self._limits, self._started = limits, time.monotonic()
        self._process: psutil.Process | None = None
        with suppress(psutil.Error):  # it has ended already
            self._process = psutil.Process(pid)
            self._processor, self._memory = self._spent(self._process), self._process.memory_info().rss

    def check(self) -> None:
        """End it if it has taken more than it may."""
        if self._process is None or self.why:
            return
        try:
            spent, held = self._spent(self._process), self._process.memory_info().rss
        except psutil.Error:
            return
        elapsed, limits = time.monotonic() - self._started, self._limits
        if held - self._memory > limits.memory:
            self.end(limits.too_much_memory)
        # several threads spend more than a second of the processor in a second of the clock
        elif min(spent - self._processor, elapsed) > limits.processor_seconds or elapsed > limits.seconds:
            self.end(f"takes longer than {limits.processor_seconds:.0f} seconds to read")

    def end(self, why: str) -> None:
        self.why = why
        if self._process is not None:
            with suppress(psutil.Error):
                self._process.kill()

    @staticmethod
    def _spent(process: psutil.Process) -> float:
        times = process.cpu_times()
        return float(times.user + times.system)
