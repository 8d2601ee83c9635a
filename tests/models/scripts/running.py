"""Runs scripts as a person would: in a fresh process with torch and transformers alone, and no network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from attention_models.engine.engine import Engine
from attention_models.protocol.request import Request
from attention_models.protocol.scripts import ScriptRequest, ScriptView
from tests.models.asking import ask

_RUNNER = """
import contextlib, io, json, os, socket, sys, traceback
import torch, transformers
from transformers import AutoModel, AutoTokenizer, PreTrainedModel

def refused(*_):
    raise OSError("a script must not need a network")

def run(folder, path, environ):
    os.chdir(folder)
    os.environ.update(environ)
    sys.path[:0] = path
    said = {}
    for name, code in json.load(open("scripts.json", encoding="utf-8")).items():
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, name, "exec"), {"__name__": "__main__"})
        said[name] = out.getvalue()
    json.dump(said, open("said.json", "w", encoding="utf-8"))

socket.socket.connect = refused
for line in sys.stdin:
    child = os.fork()
    if not child:
        asked = json.loads(line)
        try:
            run(**asked)
        except BaseException:
            with open(asked["folder"] + "/error", "w", encoding="utf-8") as file:
                traceback.print_exc(file=file)
            os._exit(1)
        os._exit(0)
    print(os.waitpid(child, 0)[1], flush=True)
"""
"""Forks a process for each dictionary of scripts, so that torch and transformers are imported once."""


class Line(NamedTuple):
    """What one line of output says."""

    name: str
    computed: float
    shown: float


def few_first(every: Iterable[str], *few: str) -> pytest.MarkDecorator:
    """Gives a test `kinds`: the `few` that run with the other tests, and the rest of `every`, which run in full."""
    rest = [kind for kind in every if kind not in few]
    return pytest.mark.parametrize(
        "kinds", [pytest.param(few, id="few"), pytest.param(rest, id="rest", marks=pytest.mark.full)]
    )


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
    (folder / "scripts.json").write_text(json.dumps(dict(scripts)), encoding="utf-8")
    runner = _runner()
    assert runner.stdin is not None
    assert runner.stdout is not None
    root = Path(__file__).parents[3]
    path = [*([str(root / "explorer"), str(root / "models")] if own_classes else []), str(folder)]
    print(json.dumps({"folder": str(folder), "path": path, "environ": _environ()}), file=runner.stdin, flush=True)
    status, error = runner.stdout.readline(), folder / "error"
    assert status == "0\n", error.read_text(encoding="utf-8")[-3000:] if error.exists() else f"it crashed: {status}"
    said = json.loads((folder / "said.json").read_text(encoding="utf-8"))
    return {name: read(text) for name, text in said.items()}


def _environ() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return kept | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


@cache
def _runner() -> subprocess.Popen[str]:
    """Started once; it ends with this process, which holds the other end of its pipe."""
    return subprocess.Popen(
        [sys.executable, "-c", _RUNNER],
        cwd=tempfile.gettempdir(),
        env=_environ(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


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
