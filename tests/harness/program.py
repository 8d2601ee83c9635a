"""Starts the real program, asks it things and ends it, all from outside."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0  # s: an import of torch on a busy machine
_NOISE = "This plugin does not support"


_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None  # loaded before a fork, after which nothing is
_SIGNAL_AT_PARENTS_DEATH = 1  # PR_SET_PDEATHSIG of prctl


def heed_signals() -> None:
    """Run in a process that is being started: what was started in the background ignores Ctrl+C, and so would it.

    It ends with the process that started it, however that ends: a run of tests that is killed leaves none behind.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if _LIBC is not None:
        _LIBC.prctl(_SIGNAL_AT_PARENTS_DEATH, signal.SIGKILL)


@contextmanager
def giving_up(process: subprocess.Popen[str]) -> Iterator[None]:
    """A process that does not answer within `PATIENCE` is ended, which ends the wait; it writes what it is at."""
    watch = threading.Timer(PATIENCE, process.send_signal, (signal.SIGABRT,))
    watch.start()
    try:
        yield
    finally:
        watch.cancel()


class Program:
    """A running program. See `driven_program.py` for what it can be asked."""

    def __init__(self, folder: Path, **environment: str) -> None:
        """Its settings, and what it saves, go to `folder`."""
        self.said = folder / "stderr"
        with self.said.open("w") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "error", "-m", "tests.harness.driven_program"],
                cwd=ROOT,
                env=os.environ
                | {"ATTENTION_EXPLORER_HOME": str(folder / "settings"), "PYTHONFAULTHANDLER": "1"}
                | environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                preexec_fn=heed_signals,
            )

    def started(self) -> None:
        """Wait until it can be asked."""
        assert self._line() == "started"

    def ask(self, expression: str) -> Any:
        """The value of a Python expression over `window`."""
        self.tell(expression)
        return self._line()

    def tell(self, expression: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()

    def wait_until(self, expression: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self.ask(f"bool({expression})"):
            assert time.monotonic() < deadline, f"waited in vain for {expression}"
            time.sleep(0.02)

    def settle(self) -> None:
        self.wait_until("window.is_settled()")

    def closed_while(self, lane: str, delay: int, how: str) -> tuple[list[str], float] | None:
        """Close it while `lane` is at work, `delay` ms after that began.

        Args:
            how: "window" as by its button, or the name of a signal.

        Returns:
            What it was at when it was closed, and the seconds from then to the end of the process; None where `lane`
            had ended by then, and nothing was done.
        """
        self.tell(f"window.closes_when({lane!r}, {delay}, {how!r})")
        assert self._line() is None
        said = self._line()
        if said == "missed":
            return None
        began = time.monotonic()
        if said == "busy":
            self.process.send_signal(getattr(signal, how))
            said = [*self._line(), lane]  # it was at work when the signal was asked for
        closing, *lanes = said
        assert closing == "closing"
        self.process.wait(PATIENCE)
        return lanes, time.monotonic() - began

    def closed_now(self) -> None:
        """Close it as by its button."""
        self.tell("window.close()")
        self.process.wait(PATIENCE)
        assert self.process.returncode == 0

    def ended(self) -> int:
        """Wait until it has ended by itself; its exit code."""
        return self.process.wait(PATIENCE)

    def complaints(self) -> list[str]:
        """What it wrote to standard error."""
        lines = self.said.read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line.strip() and _NOISE not in line]

    def _line(self) -> Any:
        assert self.process.stdout is not None
        with giving_up(self.process):
            line = self.process.stdout.readline()
        if not line:
            code = self.process.wait(PATIENCE)
            raise AssertionError(f"the program ended with {code}: {self.said.read_text(encoding='utf-8')}")
        return json.loads(line)


@contextmanager
def started(folder: Path, **environment: str) -> Iterator[Program]:
    """The program, ended in any case."""
    program = Program(folder, **environment)
    try:
        program.started()
        yield program
    finally:
        program.process.kill()
        program.process.wait()
        for pipe in (program.process.stdin, program.process.stdout):
            assert pipe is not None
            pipe.close()
