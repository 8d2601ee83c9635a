"""The guards of conftest.py, tried on tests that break each of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

CULPRITS = """
import os, threading, warnings
import pytest
from PySide6.QtCore import QObject, QTimer, Signal, qWarning
from PySide6.QtWidgets import QLabel

never = threading.Event()
kept = []

class Source(QObject):
    fired = Signal()

def broken():
    raise ValueError("on purpose")

def test_clean(qtbot):
    label = QLabel("value")
    qtbot.addWidget(label)
    label.show()
    thread = threading.Thread(target=lambda: None)
    thread.start()

def test_settings_are_apart(settings_folder):
    assert os.environ["ATTENTION_EXPLORER_HOME"] == str(settings_folder)
    assert not any(settings_folder.iterdir())

@pytest.fixture(scope="module")
def home_of_the_file():
    return os.environ.get("ATTENTION_EXPLORER_HOME")

def test_settings_of_a_file_are_apart(home_of_the_file, settings_folder):
    assert os.path.isdir(home_of_the_file)
    assert home_of_the_file != str(settings_folder)

def test_expected_exception(qtbot, unhandled_exceptions):
    source = Source()
    source.fired.connect(broken)
    source.fired.emit()
    assert [type(e) for e in unhandled_exceptions] == [ValueError]
    unhandled_exceptions.clear()

def test_leaks_thread():
    threading.Thread(target=never.wait, args=(10,), name="forgotten", daemon=True).start()

def test_leaks_window(qapp):
    kept.append(QLabel("left open"))

def test_slot_raises(qtbot):
    source = Source()
    source.fired.connect(broken)
    source.fired.emit()

def test_timer_raises(qtbot):
    QTimer.singleShot(0, broken)
    qtbot.wait(20)

def test_thread_raises():
    thread = threading.Thread(target=broken)
    thread.start()
    thread.join()

def test_qt_warns(qtbot):
    qWarning("on purpose")

def test_python_warns():
    warnings.warn("on purpose")

@pytest.mark.short("first-*")
@pytest.mark.parametrize("case", ["first-1", "second"])
def test_short(case):
    assert case == "first-1"

def test_fails_once(qapp):
    window = QLabel("kept by the traceback")
    kept.append(window)
    assert window is None
"""

EXPECTED = {
    "test_clean": {"PASSED"},
    "test_settings_are_apart": {"PASSED"},
    "test_settings_of_a_file_are_apart": {"PASSED"},
    "test_expected_exception": {"PASSED"},
    "test_leaks_thread": {"PASSED", "ERROR"},  # passed its call, then an error at teardown
    "test_leaks_window": {"PASSED", "ERROR"},
    "test_slot_raises": {"PASSED", "ERROR"},
    "test_timer_raises": {"PASSED", "ERROR"},
    "test_thread_raises": {"PASSED", "ERROR"},
    "test_qt_warns": {"FAILED"},
    "test_python_warns": {"FAILED"},
    "test_short": {"PASSED"},  # the other case is left to the full run
    "test_fails_once": {"FAILED"},
}


def test_each_guard_fails_its_culprit(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_culprits.py").write_text(CULPRITS, encoding="utf-8")
    for name in ("conftest.py", "real_disks.py"):  # the latter is imported by the former
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "--color=no", "tests"]
    unset = {name: value for name, value in os.environ.items() if name != "ATTENTION_EXPLORER_HOME"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=unset)
    outcomes: dict[str, set[str]] = {}
    for outcome, name in re.findall(r"^(PASSED|FAILED|ERROR) \S+::(\w+)", done.stdout, flags=re.MULTILINE):
        outcomes.setdefault(name, set()).add(outcome)
    assert outcomes == EXPECTED, done.stdout + done.stderr
