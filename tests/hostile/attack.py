"""Attacks a program from outside: how long it takes over each hostile thing, how much memory, and what it says."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import psutil

START_SECONDS = 120.0


@dataclass(frozen=True)
class Outcome:
    """Of one thing that the program was told to do."""

    seconds: float  # of the processor, in all its processes, or of the clock where that is less
    memory: int  # bytes beyond those held before, in all its processes
    said: str = ""  # a sentence
    opened: bool = False
    untouched: bool = False  # whether what was open before shows the same weights
    ended: str = ""  # why the program was ended: it hung, or fell


class Attack:
    """A program that is attacked again and again; one that hangs is ended, and another takes its place."""

    def __init__(self, sound: Path, kind: str, source: str, *, most_seconds: float, most_bytes: int) -> None:
        """It has the checkpoint `sound` open, and runs `source`: a "text", or a "picture"."""
        self._arguments = (str(sound), kind, source)
        self._most_seconds, self._most_bytes = most_seconds, most_bytes
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[str] = queue.Queue()

    def __enter__(self) -> Attack:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._end()

    def ask(self, what: str, name: str = "") -> Outcome:
        """What becomes of a program that is told to do this."""
        process = self._running()
        assert process.stdin is not None
        spent, held = _taken(process.pid)
        most, started = held, time.monotonic()
        process.stdin.write(json.dumps([what, name]) + "\n")
        process.stdin.flush()
        while True:
            line: str | None = None
            with suppress(queue.Empty):
                line = self._answers.get(timeout=0.02)
            now, holds = _taken(process.pid)
            most = max(most, holds)
            seconds, memory = min(time.monotonic() - started, now - spent), most - held
            if line:
                return Outcome(seconds, memory, **json.loads(line))
            if line == "":
                self._end()
                return Outcome(seconds, memory, ended="it fell")
            waits = time.monotonic() - started > 10 * self._most_seconds
            if seconds > self._most_seconds or memory > self._most_bytes or waits:
                self._end()
                why = "it takes memory without end" if memory > self._most_bytes else "it hangs"
                return Outcome(seconds, memory, ended=why)

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.hostile.attacked", *self._arguments],
                cwd=Path(__file__).parents[2],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            self._answers = queue.Queue()
            threading.Thread(target=_lines, args=(self._process, self._answers), daemon=True).start()
            assert self._answers.get(timeout=START_SECONDS), "the program does not start"
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for started in (*_tree(process.pid), process):
            with suppress(psutil.Error):
                started.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError, ValueError):
                if pipe is not None:
                    pipe.close()


def _lines(process: subprocess.Popen[str], answers: queue.Queue[str]) -> None:
    assert process.stdout is not None
    with suppress(ValueError):  # closed
        for line in process.stdout:
            answers.put(line)
    answers.put("")


def _tree(pid: int) -> list[psutil.Process]:
    try:
        return [*psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def _taken(pid: int) -> tuple[float, int]:
    """Seconds of the processor that a process and those that it started have spent, and bytes that are theirs alone."""
    seconds, held = 0.0, 0
    for process in (*_tree(pid), psutil.Process(pid)):
        with suppress(psutil.Error):
            times = process.cpu_times()
            seconds += times.user + times.system + times.children_user + times.children_system
            held += process.memory_full_info().uss
    return seconds, held
