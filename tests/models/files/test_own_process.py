"""How a process of the program's own is started: from an installation, and from a program that was frozen."""

from __future__ import annotations

import select
import subprocess
import sys
from pathlib import Path

import pytest

from attention_models.files.own_process import OwnProcess

_PYTHON = sys.executable


@pytest.fixture
def started(monkeypatch, tmp_path):
    """What is started, and from which program in a folder of it and its twin."""
    commands: list[list[str]] = []

    class Started(subprocess.Popen[bytes]):
        def __init__(self, command: list[str], **options: object) -> None:
            commands.append(command)
            super().__init__([_PYTHON, "-c", ""], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    for name in ("attention-explorer.exe", "attention-explorer-gui.exe"):
        (tmp_path / name).touch()
    monkeypatch.setattr(subprocess, "Popen", Started)
    monkeypatch.setattr(subprocess, "CREATE_NO_WINDOW", 0, raising=False)
    monkeypatch.setattr(sys, "frozen", True, raising=False)

    def start(platform: str, program: str) -> Path:
        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.setattr(sys, "executable", str(tmp_path / program))
        commands.clear()
        own = OwnProcess("a.module", "--do-it")
        try:
            own.running()
        finally:
            own.end()
        ((path, argument),) = commands
        assert argument == "--do-it"
        return Path(path)

    return start


def test_on_windows_the_twin_with_a_console_is_started(started, tmp_path):
    assert started("win32", "attention-explorer-gui.exe") == tmp_path / "attention-explorer.exe"
    assert started("win32", "attention-explorer.exe") == tmp_path / "attention-explorer.exe"


def test_without_a_twin_the_program_itself_is_started(started, tmp_path):
    (tmp_path / "attention-explorer.exe").unlink()
    assert started("win32", "attention-explorer-gui.exe") == tmp_path / "attention-explorer-gui.exe"


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_elsewhere_every_program_has_streams(started, tmp_path, platform):
    assert started(platform, "attention-explorer-gui.exe") == tmp_path / "attention-explorer-gui.exe"


@pytest.mark.skipif(not hasattr(select, "poll"), reason="a closed pipe is told of to those who read it alone")
def test_one_that_still_imports_ends_with_the_program_that_started_it(tmp_path, monkeypatch):
    (tmp_path / "imports_for_ever.py").write_text("print(flush=True)\nimport time\ntime.sleep(600)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    own = OwnProcess("imports_for_ever", "")
    process = own.running()
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        process.stdin.close()  # as the system does where the program was killed
        assert process.wait(60) == 0
    finally:
        own.end()
