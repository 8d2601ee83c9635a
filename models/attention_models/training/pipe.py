"""A process that a window tells what to do, a message a line: its side of the pipe."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import IO, Generic, TypeVar

import psutil
import torch
from transformers.utils import logging

from attention_models.files import devices
from attention_models.files.own_process import LAST_SECONDS
from attention_models.protocol.errors import NO_MEMORY_TO_TRAIN
from attention_models.protocol.training_messages import MOST_BYTES, Message, Said, line_of

_MOST_THREADS = 4
_NICE = 5

MessageT = TypeVar("MessageT", bound=Message)


class Pipe(Generic[MessageT]):
    """Messages as `read` makes them of the lines of `source`; what is said goes to `out`."""

    def __init__(
        self,
        source: IO[bytes],
        out: IO[bytes],
        read: Callable[[bytes], MessageT],
        on_closed: Callable[[], None] = lambda: None,
    ) -> None:
        """`read` raises ValueError for what is no message. `on_closed` is called, in a thread, when `source` ends."""
        self._source, self._out, self._read, self._on_closed = source, out, read, on_closed
        self._heard: queue.SimpleQueue[MessageT | None] = queue.SimpleQueue()
        self.is_closed = False
        threading.Thread(target=self._listen, name="what the window says", daemon=True).start()

    def next(self) -> MessageT | None:
        """The next message, waited for; None when the source has ended."""
        return None if self.is_closed and self._heard.empty() else self._heard.get()

    def said_by_now(self) -> Iterator[MessageT]:
        """Messages that have come, without waiting for more."""
        while not self._heard.empty():
            if (message := self._heard.get()) is not None:
                yield message

    def say(self, message: Message) -> None:
        with suppress(OSError, ValueError):  # nobody listens any more
            self._out.write(line_of(message))
            self._out.flush()

    def _listen(self) -> None:
        while line := self._source.readline(MOST_BYTES + 1):
            try:
                self._heard.put(self._read(line))
            except ValueError as error:
                self.say(Said(f"The process that trains was told what it does not understand: {error}"[:400]))
        self.is_closed = True
        self._heard.put(None)
        self._on_closed()


def threads_beside_a_window() -> int:
    """How many torch takes in such a process, of those that it takes where a window's models run."""
    here = torch.get_num_threads()
    if os.environ.get("OMP_NUM_THREADS"):
        return here
    return min(_MOST_THREADS, max(1, here - 1))  # one core is left to the window


def be_process(serve: Callable[[IO[bytes], IO[bytes], Callable[[], None]], None]) -> None:
    """Run `serve` on standard input and output, beside a window, until it returns; then the process ends.

    The third thing that it is given is what to call when the input has ended.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl+C is the window's, which closes the pipe
    out = _own_output()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    devices.set_threads()
    torch.set_num_threads(threads_beside_a_window())
    with suppress(psutil.Error, OSError):  # what a person waits for comes first
        psutil.Process().nice(psutil.BELOW_NORMAL_PRIORITY_CLASS if sys.platform == "win32" else _NICE)
    serve(sys.stdin.buffer, out, _end_soon)
    out.close()
    os._exit(0)  # the interpreter's end aborts the process while a thread is inside torch


def _end_soon() -> None:
    """The window is gone: what is being done may be finished, if it does not take long."""
    timer = threading.Timer(LAST_SECONDS, os._exit, (0,))
    timer.daemon = True
    timer.start()


def _own_output() -> IO[bytes]:
    """Standard output; what libraries print goes nowhere from now on."""
    out = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return out


def sentence_of_crash(error: BaseException) -> str:
    """What a person is told of an error that nobody foresaw."""
    if devices.is_out_of_memory(error):
        return NO_MEMORY_TO_TRAIN
    return f"Something went wrong while training: {type(error).__name__}. Details are in the log."
