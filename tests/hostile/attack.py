"""Attacks a program from outside: how long it takes over each hostile thing, how much memory, and what it says."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

START_SECONDS = 120.0


@dataclass(frozen=True)
class Outcome:
    seconds: float
    memory: int  # bytes beyond those held before, of the program and what it started
    said: tuple[str, ...] = ()  # sentences
    opened: bool = False
    untouched: bool = False  # whether what was open before shows the same weights
    ended: str = ""  # why the program was ended: it hung, or fell
    errors: str = field(default="", repr=False)


class Attack:
    """A program that is attacked again and again; one that hangs is ended, and another takes its place."""

    def __init__(self, *arguments: str, most_seconds: float, most_bytes: int) -> None:
        self._arguments = arguments
        self._most_seconds, self._most_bytes = most_seconds, most_bytes
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[str] = queue.Queue()

    def __enter__(self) -> Attack:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._end()

    def on(self, kind: str, name: Path) -> Outcome:
        """What becomes of a program that is told to open `name`."""
        process = self._running()
        assert process.stdin is not None
        before, most = _held(process.pid), 0
        started = time.monotonic()
        process.stdin.write(json.dumps([kind, str(name)]) + "\n")
        process.stdin.flush()
        while True:
            with suppress(queue.Empty):
                line = self._answers.get(timeout=0.02)
                seconds = time.monotonic() - started
                if not line:
                    self._end()
                    return Outcome(seconds, most, ended="it fell")
                answer: dict[str, Any] = json.loads(line)
                return Outcome(
                    seconds, most, tuple(answer["said"]), answer["opened"], bool(answer.get("untouched", True))
                )
            most = max(most, _held(process.pid) - before)
            seconds = time.monotonic() - started
            if seconds > self._most_seconds or most > self._most_bytes:
                self._end()
                why = "it hung" if seconds > self._most_seconds else "it took memory without end"
                return Outcome(seconds, most, ended=why)

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
            assert json.loads(self._answers.get(timeout=START_SECONDS) or '"it fell"') == "ready"
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


def _held(pid: int) -> int:
    """Bytes that a process and those that it started hold."""
    held = 0
    for process in (*_tree(pid), psutil.Process(pid)):
        with suppress(psutil.Error):
            held += process.memory_info().rss
    return held
