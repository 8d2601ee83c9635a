"""The command among others: what it prints and who reads that, and the signals that end it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name))
"""Signals that ask a program to end: Ctrl+C, `kill`, a terminal that closes, Ctrl+Break."""

GRACE_SECONDS = 2.0
"""A signal that comes later than this after the first ends the process at once. `timeout` sends two together."""


class Interrupted(KeyboardInterrupt):
    """A signal asks the program to end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class Unwritable(Exception):
    """Standard output takes nothing more."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


def run(work: Callable[[], int]) -> int:
    """Call `work` and return its exit code. No traceback comes of a signal, a closed pipe or a full disk.

    A signal ends the process as it ends one that is no Python program, and so does a closed pipe: a shell sees 130, 143
    or 141, and a loop around the command ends too. Where there are no such signals these are the exit codes.

    Raises:
        SystemExit: by `work`.
    """
    _escape_what_cannot_be_written()
    try:
        with handling(signal.SIG_DFL):
            try:
                return work()
            finally:
                flush()
    except Interrupted as end:
        return end_by(end.number)
    except Unwritable as unwritable:
        _write_nowhere()
        if isinstance(unwritable.error, BrokenPipeError):
            return end_by(getattr(signal, "SIGPIPE", 13))
        complain(f"Standard output could not be written: {(unwritable.error.strerror or 'it is closed').lower()}.")
        return 1


def say(text: str) -> None:
    """Print a line to standard output, now. Raises Unwritable."""
    try:
        print(text, flush=True)
    except OSError as error:
        raise Unwritable(error) from error


def complain(sentence: str) -> None:
    """Print a line to standard error, if there is one that takes it."""
    with suppress(OSError):
        print(sentence, file=sys.stderr, flush=True)


def flush() -> None:
    """Have standard output written. Raises Unwritable."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError as error:
        raise Unwritable(error) from error


@contextmanager
def signals_raised() -> Iterator[None]:
    """While a file is written: a signal that ends programs raises `Interrupted`, so that no half of it is left.

    Only then: raised within an import it aborts Qt's, and transformers takes it for a package that is missing.
    """
    asked: float | None = None

    def interrupt(number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        now = time.monotonic()
        if asked is None:
            asked = now
            raise Interrupted(number)
        if now - asked > GRACE_SECONDS:
            end_by(number)

    with handling(interrupt):
        yield


@contextmanager
def signals_noted() -> Iterator[list[int]]:
    """While it lasts, signals that would end the program are put into the list, and whoever works looks there."""
    noted: list[int] = []
    with handling(lambda number, _frame: noted.append(number)):
        yield noted


@contextmanager
def handling(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> Iterator[None]:
    """Handle the signals that end a program by `handler`, but for those that it was started to ignore.

    In another thread than the main one nothing is changed.
    """
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in ENDING:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):  # by nohup, or by `&` in a script
                before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def end_by(number: int) -> int:
    """End the process by a signal; where there is no such thing, the exit code that stands for it."""
    if sys.platform != "win32":
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return 128 + number


def _escape_what_cannot_be_written() -> None:
    """Let a terminal of another alphabet show `\\u2019` where it has no sign, instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _write_nowhere() -> None:
    """Let what is left in standard output's buffer go, which Python would try to write once more at its end."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
