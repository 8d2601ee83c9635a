"""What runs in a process of the program's own: requests are answered, a line each. Asked nothing for long, it ends.

On Linux each is done in a copy of the process, several at once.
"""

from __future__ import annotations

import faulthandler
import json
import math
import os
import select
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import IO, Any

Note = Callable[[str], None]
Work = Callable[[str, Note], str]
"""From a request to its answer. A note says what is being read, for the sentence about one that is ended there."""

TRY_CHECKPOINTS = "--try-checkpoints"
"""Starts the program as the process that tries checkpoints, where it was frozen into one file with its interpreter."""

OUT_OF_MEMORY = "memory"
"""What is said of a request that fell for want of memory."""

IDLE_SECONDS = 600.0
"""After so long without a request the process ends; the next request starts another."""

_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux
_GRACE = 5.0  # seconds in which it is ended from outside
_ROOM = 1.25  # the limit that the system keeps stands behind the one that is watched
_EVERY = 0.02  # seconds between two looks for a copy that has ended

_USUAL = 0.0015  # seconds of the processor that `_sample` takes, on the processor that limits are made for
_ALLOWED, _MOST_LEEWAY = 1.5, 10.0  # so much slower may a processor be before limits grow; they do not grow for ever
_MEASURED_EVERY = 10.0  # seconds: a busy computer is slower for a while


def serve_requests(work: Work, idle_seconds: float = IDLE_SECONDS) -> None:
    """Answer what standard input asks until it ends, or nothing is asked for `idle_seconds`.

    Of each request comes first the number of the process that does it, and how much more of the processor's time it
    may take than its limit says (`leeway`); then notes, then the answer, or that it fell. On Linux a line with "end"
    instead of a request ends the one of that number.
    """
    global _speaking
    if sys.platform == "linux":
        with tempfile.TemporaryFile() as _speaking:
            _Copies(work, idle_seconds).serve()
    else:
        idle = _Idle(idle_seconds)
        for line in sys.stdin.buffer:
            idle.stop()
            _do(work, json.loads(line), leeway())
            idle = _Idle(idle_seconds)


class _Idle:
    """Ends this process where nothing is asked."""

    def __init__(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, os._exit, (0,))
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        self._timer.cancel()


class _Copies:
    """Does each request in a copy of this process."""

    def __init__(self, work: Work, idle_seconds: float) -> None:
        self._work, self._idle_seconds = work, idle_seconds
        self._leeway, self._measured = 1.0, -math.inf
        self._at_work: dict[int, dict[str, Any]] = {}  # process id -> what it was asked

    def serve(self) -> None:
        source, read, idle_since = sys.stdin.fileno(), b"", time.monotonic()
        while True:
            ready, _, _ = select.select([source], [], [], _EVERY if self._at_work else self._idle_seconds)
            if ready:
                content = os.read(source, 1 << 20)
                if not content:
                    return
                *lines, read = (read + content).split(b"\n")
                for line in lines:
                    self._take(json.loads(line))
                idle_since = time.monotonic()
            elif not self._at_work and time.monotonic() - idle_since >= self._idle_seconds:
                return
            if self._reap():
                idle_since = time.monotonic()

    def _take(self, asked: dict[str, Any]) -> None:
        if "end" in asked:
            for pid in [pid for pid, other in self._at_work.items() if other["id"] == asked["end"]]:
                os.kill(pid, signal.SIGKILL)
            return
        if time.monotonic() - self._measured > _MEASURED_EVERY:
            self._leeway, self._measured = leeway(), time.monotonic()
        parent, pid = os.getpid(), os.fork()
        if pid == 0:
            self._be_a_copy(asked, parent)
        self._at_work[pid] = asked

    def _be_a_copy(self, asked: dict[str, Any], parent: int) -> None:
        status = 1
        try:
            _limit(asked, parent, self._leeway)
            _do(self._work, asked, self._leeway)
            status = 0
        except BaseException as error:
            if _ran_out_of_memory(error):
                _say(asked, fell=OUT_OF_MEMORY)
                status = 0
        finally:
            os._exit(status)  # nothing of the process that was copied may be run down here

    def _reap(self) -> bool:
        """See which copies have ended, and say so of those that fell; whether there was one."""
        ended = False
        for pid, asked in list(self._at_work.items()):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                ended = True
                del self._at_work[pid]
                if status != 0:
                    _say(asked, fell=status)
        return ended


def leeway() -> float:
    """By how much limits of the processor's time grow on this computer, as busy as it is now: 1.0 where it is quick."""
    slower = min(_sample() for _ in range(3)) / _USUAL
    return min(max(slower / _ALLOWED, 1.0), _MOST_LEEWAY)


@cache
def _table() -> str:
    """Made where it is needed: the program that asks imports this file too."""
    return json.dumps({f"piece {i}": [i, {"a": str(i)}] for i in range(4000)})


def _sample() -> float:
    """Seconds of the processor for work of the kind that reading a checkpoint is: parsing, and objects in tables."""
    table = _table()
    began = time.process_time()
    sum(len(name) * numbers[0] for name, numbers in json.loads(table).items())
    return time.process_time() - began


def _ran_out_of_memory(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, MemoryError):
        error = error.__cause__ or error.__context__
    return error is not None


def _do(work: Work, asked: dict[str, Any], leeway: float) -> None:
    _say(asked, pid=os.getpid(), leeway=leeway)
    with _Deadline(asked["seconds"] * leeway + _GRACE):
        _say(asked, answer=work(asked["request"], lambda at: _say(asked, note=at)))


def _limit(asked: dict[str, Any], parent: int, leeway: float) -> None:
    """Limits that hold also where nobody watches: on private memory, the processor's time, and its life."""
    import ctypes
    import resource

    ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before that
        os._exit(1)
    with open("/proc/self/statm") as file:
        private = int(file.read().split()[5]) * resource.getpagesize()
    most = private + int(_ROOM * asked["memory"])
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    seconds = int(leeway * asked["processor_seconds"] * (os.cpu_count() or 1)) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class _Deadline:
    """Ends this process also where the program that would end it from outside is gone."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)  # standard error is none without a console
        faulthandler.dump_traceback_later(self._seconds, exit=True, file=nowhere)

    def __exit__(self, *_: object) -> None:
        faulthandler.cancel_dump_traceback_later()


def _say(asked: dict[str, Any], **what: Any) -> None:
    out = sys.stdout.buffer
    with _alone():
        # a line of its own, whatever a library printed and wherever another process was ended
        out.write(b"\n" + json.dumps({"id": asked["id"], **what}).encode() + b"\n")
        out.flush()


@contextmanager
def _alone() -> Iterator[None]:
    """While no other copy writes. A lock that goes with the process that has it."""
    if sys.platform != "linux" or _speaking is None:
        yield
        return
    import fcntl

    fcntl.lockf(_speaking, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.lockf(_speaking, fcntl.LOCK_UN)


_speaking: IO[bytes] | None = None  # a file whose lock has who writes
