"""A process of this program's own that is asked over a pipe: how it is started, and ended with all that it holds."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from importlib import import_module; "
    "from attention_models.files.own_process import end_with_input; "
    "end_with_input(); import_module(sys.argv[2]).serve()"
)

LAST_SECONDS = 2.0
"""That such a process may take to finish what it does, a file that it writes say, once its program is gone."""


def end_with_input() -> None:
    """End this process soon after its standard input, whatever it is doing: also while it imports, which reads nothing.

    Called first of all in such a process. Where it cannot be told (on Windows) the one who reads has to see to it.
    """
    if hasattr(select, "poll"):
        threading.Thread(target=_end_when_closed, name="until the program ends", daemon=True).start()


def _end_when_closed() -> None:
    waiting = select.poll()
    waiting.register(0, 0)  # nothing is read: a pipe that was closed is told of unasked
    waiting.poll()
    time.sleep(LAST_SECONDS)
    os._exit(0)


class OwnProcess:
    """Runs `serve()` of a module, with the search path of this program. Its users see to it that one thread asks."""

    def __init__(self, module: str, argument: str) -> None:
        """`argument` starts the program as this process where it was frozen into one file with its interpreter."""
        self._module, self._argument = module, argument
        self._process: subprocess.Popen[bytes] | None = None

    def running(self) -> subprocess.Popen[bytes]:
        """The process, started where there is none, or where it has ended.

        Raises:
            OSError: it cannot be started.
        """
        if self._process is None or self._process.poll() is not None:
            self.end()
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        return self._process

    def end(self) -> None:
        """End it, if it runs, and close its pipes."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what it was asked and did not read
                    pipe.close()

    def end_if_fallen(self) -> None:
        """Close the pipes of one that has ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            self.end()

    def _command(self) -> list[str]:
        if getattr(sys, "frozen", False):  # by PyInstaller: the program is its own interpreter, and takes no -c
            return [_with_streams(sys.executable), self._argument]
        places = [str(Path(__file__).parents[2]), *filter(None, sys.path)]
        return [sys.executable, "-P", "-c", _PROGRAM, json.dumps(places), self._module]


def _with_streams(program: str) -> str:
    """The frozen program that has standard streams: on Windows one without a console has none, whatever it is given.

    Its twin with one lies beside it, named without "-gui", as the commands of an installation are.
    """
    path = Path(program)
    twin = path.with_stem(path.stem.removesuffix("-gui"))
    return str(twin) if sys.platform == "win32" and twin.is_file() else program
