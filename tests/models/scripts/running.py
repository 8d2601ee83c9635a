"""Runs scripts as a person would: in a fresh process with torch and transformers alone, and no network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from models.engine.engine import Engine
from models.protocol.request import Request
from models.protocol.scripts import ScriptRequest, ScriptView
from tests.models.asking import ask

_RUNNER = """
import contextlib, io, json, socket, sys

def refused(*_):
    raise OSError("a script must not need a network")

socket.socket.connect = refused
said = {}
for name, code in json.load(open(sys.argv[1], encoding="utf-8")).items():
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, name, "exec"), {"__name__": "__main__"})
    said[name] = out.getvalue()
json.dump(said, open(sys.argv[2], "w", encoding="utf-8"))
"""


class Line(NamedTuple):
    """What one line of output says."""

    name: str
    computed: float
    shown: float


def script(engine: Engine, request: Request) -> str:
    """What “Show as PyTorch” writes of a request."""
    view = ask(engine, ScriptRequest(of=request))
    assert isinstance(view, ScriptView), view
    return view.code


def check_lines(found: Mapping[str, list[Line]], tolerance: float) -> None:
    """Each script computed what is on screen, within `tolerance` of the largest number that it prints."""
    for name, lines in found.items():
        assert lines, name
        largest = max(1.0, *(abs(line.shown) for line in lines))
        for line in lines:
            assert line.computed == pytest.approx(line.shown, abs=tolerance * largest), (name, line)


def printed(scripts: Mapping[str, str], folder: Path, own_classes: bool = False) -> dict[str, list[Line]]:
    """What each script prints. All run in one process, each in a module of its own, outside of this repository.

    With `own_classes` they may import this program's own classes.
    """
    given, said = folder / "scripts.json", folder / "said.json"
    given.write_text(json.dumps(dict(scripts)), encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if own_classes:
        kept["PYTHONPATH"] = str(Path(__file__).parents[3])
    kept |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _RUNNER, str(given), str(said)], cwd=folder, env=kept, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return {name: read(text) for name, text in json.loads(said.read_text(encoding="utf-8")).items()}


def left_by(code: str) -> dict[str, Any]:
    """What a script leaves behind, run in a namespace of its own: all of its numbers, beside the few that it prints."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, "script", "exec"), names)
    return names


def read(output: str) -> list[Line]:
    """The lines “name: computed   on screen: shown”."""
    found = []
    for line in output.splitlines():
        if "  on screen: " not in line:
            continue  # whole matrices and tables are printed too
        before, _, shown = line.rpartition("  on screen: ")
        name, _, computed = before.rpartition(": ")
        found.append(Line(name, float(computed), float(shown)))
    return found
