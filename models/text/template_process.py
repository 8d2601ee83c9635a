"""Renders chat templates in a process of its own, which is ended where a template asks for too much.

A template is somebody else's program. transformers runs it in a sandbox that reaches neither files nor Python's inside;
what it does not bound is time and memory, and one operation of it ("x" * 3000000000) cannot be stopped from inside.
The process starts when the first template is rendered, answers one request a line and ends with this one. The modules
that it imports are few, and torch is not among them.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import psutil

from models.files.own_process import OwnProcess
from models.text.template_limits import ARGUMENT, MOST_SECONDS, MOST_WRITTEN, Failed, Refused, Stopped

MOST_MEMORY = 1 << 30
"""Bytes that the process may hold. It starts with about a tenth of that."""

_GRACE = 1.0  # seconds beyond the limit that the process keeps itself, until it is ended from here
_EVERY = 0.02  # seconds between two checks


class TemplateProcess:
    """Renders templates elsewhere. Thread-safe; one at a time."""

    def __init__(self) -> None:
        self._own = OwnProcess("models.text.template_limits", ARGUMENT, greets=True)
        self._lock = threading.Lock()

    def render(
        self, template: str, messages: Sequence[Mapping[str, str]], prompts: bool, special: Mapping[str, Any]
    ) -> str:
        """What `template` makes of `messages`, with the prompt for the assistant if `prompts`.

        Args:
            special: names of special tokens and their texts, as the template may use them.

        Raises:
            Refused: by the template itself; its words.
            Failed: an error in it, or it could not be run at all.
            Stopped: it ran too long, wrote too much or took too much memory.
        """
        request = {
            "template": template,
            "messages": messages,
            "prompts": prompts,
            "special": special,
            "seconds": MOST_SECONDS,
            "written": MOST_WRITTEN,
            "ends": MOST_SECONDS + 2 * _GRACE,
        }
        with self._lock:
            kind, said = self._answer(json.dumps(request).encode())
        if kind == "text":
            return said
        raise {"refused": Refused, "stopped": Stopped}.get(kind, Failed)(said)

    def close(self) -> None:
        """End the process, if it runs. The next template starts another."""
        with self._lock:
            self._own.end()

    def _answer(self, request: bytes) -> tuple[str, str]:
        try:
            process = self._own.running()
            assert process.stdin is not None
            assert process.stdout is not None
            with _Watch(process) as watch:
                process.stdin.write(request + b"\n")
                process.stdin.flush()
                line = process.stdout.readline()
            if line:
                kind, said = json.loads(line)
                return kind, said
        except OSError as error:
            self._own.end()
            return "failed", f"the program that runs templates does not answer: {error.strerror or error}"
        self._own.end()
        return ("stopped", watch.why) if watch.why else ("failed", "the program that runs templates ended")


class _Watch:
    """Watches a process from a thread while it renders, and ends it when it takes too long or too much memory."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.why = ""
        self._process = process
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="template watch", daemon=True)

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        until = time.monotonic() + MOST_SECONDS + _GRACE
        while not self._done.wait(_EVERY):
            try:
                held = psutil.Process(self._process.pid).memory_info().rss
            except psutil.Error:  # it has ended
                return
            if held > MOST_MEMORY:
                self.why = "it took more than 1 GB of memory"
            elif time.monotonic() > until:
                self.why = f"it did not end within {MOST_SECONDS:.0f} seconds"
            else:
                continue
            self._process.kill()
            return


THE_PROCESS = TemplateProcess()
atexit.register(THE_PROCESS.close)
