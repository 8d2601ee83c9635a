"""A program that fell leaves a file that says where, and the next start tells of it once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from PySide6.QtWidgets import QWidget

from attention_explorer.recovery import crashes, owners
from attention_explorer.window.faults import tell_of_crashes

FALLS = "import ctypes\nfrom attention_explorer.recovery import crashes\nwith crashes.watched():\n    {}"


def run(what: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", FALLS.format(what)], capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="it ends by no signal there")
def test_a_fault_in_a_library_leaves_a_file_that_says_where(qtbot):
    assert run("ctypes.string_at(0)").returncode == -signal.SIGSEGV
    (path,) = crashes.left_behind()
    said = path.read_text()
    assert "Segmentation fault" in said
    assert "string_at" in said
    window = QWidget()
    qtbot.addWidget(window)
    box = tell_of_crashes(window)
    assert box is not None
    told = path.with_name(f"{path.stem}.told.txt")
    assert str(told) in box.informativeText()
    assert told.read_text() == said
    box.close()
    assert tell_of_crashes(window) is None  # once


def test_a_program_that_ends_as_it_should_leaves_none():
    assert run("pass").returncode == 0
    assert list(crashes.crash_folder().iterdir()) == []


def test_one_that_was_killed_had_no_fault():
    assert run("import os; os.kill(os.getpid(), 9)").returncode == -9
    assert len(list(crashes.crash_folder().iterdir())) == 1
    assert crashes.left_behind() == []
    assert list(crashes.crash_folder().iterdir()) == []


def test_only_the_newest_are_kept_and_the_file_of_a_program_that_runs_is_left_alone():
    with crashes.watched():
        (own,) = crashes.crash_folder().iterdir()
        host = owners.own_mark().rsplit("-", 2)[0]
        elsewhere = crashes.crash_folder() / f"another{host}-{2**22}-1.txt"
        elsewhere.write_text("Attention Explorer\n")
        for number in range(crashes.KEPT + 2):
            path = crashes.crash_folder() / f"{host}-{2**22 + number}-{number}1.txt"
            path.write_text("Attention Explorer\nFatal Python error\n")
            os.utime(path, (number, number))
        assert len(crashes.left_behind()) == crashes.KEPT
        left = set(crashes.crash_folder().iterdir())
        assert {own, elsewhere} <= left
        assert len(left) == crashes.KEPT + 2
