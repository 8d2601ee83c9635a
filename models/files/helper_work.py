"""What runs in a process of the program's own: a request a line is answered, each in a copy of the process on Linux."""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

Note = Callable[[str], None]
Work = Callable[[str, Note], str]
"""From a request to its answer. A note says what is being read, for the sentence about one that is ended there."""

TRY_CHECKPOINTS = "--try-checkpoints"
"""Starts the program as the process that tries checkpoints, where it was frozen into one file with its interpreter."""

OUT_OF_MEMORY = "memory"
"""What is said of a request that fell for want of memory."""

_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux
_GRACE = 5.0  # seconds in which it is ended from outside
_ROOM = 1.25  # the limit that the system keeps stands behind the one that is watched


def serve_requests(work: Work) -> None:
    """Answer what standard input asks until it ends.

    Of each request comes first the number of the process that does it, then notes, then the answer, or that it fell.
    """
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        if sys.platform == "linux":
            _in_a_copy(work, asked)
        else:
            _do(work, asked)


def _in_a_copy(work: Work, asked: dict[str, Any]) -> None:
    parent, pid = os.getpid(), os.fork()
    if pid == 0:
        status = 1
        try:
            _limit(asked, parent)
            _do(work, asked)
            status = 0
        except BaseException as error:
            if _ran_out_of_memory(error):
                _say(asked, fell=OUT_OF_MEMORY)
                status = 0
        finally:
            os._exit(status)  # nothing of the process that was copied may be run down here
    _, status = os.waitpid(pid, 0)
    if status != 0:
        _say(asked, fell=status)


def _ran_out_of_memory(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, MemoryError):
        error = error.__cause__ or error.__context__
    return error is not None


def _do(work: Work, asked: dict[str, Any]) -> None:
    _say(asked, pid=os.getpid())
    with _Deadline(asked["seconds"] + _GRACE):
        _say(asked, answer=work(asked["request"], lambda at: _say(asked, note=at)))


def _limit(asked: dict[str, Any], parent: int) -> None:
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
    seconds = int(asked["processor_seconds"] * (os.cpu_count() or 1)) + 2
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
    # a line of its own, whatever a library printed and wherever another process was ended
    out.write(b"\n" + json.dumps({"id": asked["id"], **what}).encode() + b"\n")
    out.flush()
