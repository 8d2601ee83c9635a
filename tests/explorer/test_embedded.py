"""The window started from Python on a model that the program has as an object."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

import attention_explorer as ax
from attention_explorer import embedded
from attention_explorer.compute.bridge import GarbageCollector
from attention_explorer.compute.gui_queue import GuiQueue
from attention_explorer.session.intents import OpenCheckpoint
from attention_explorer.session.results import Results
from attention_explorer.session.text_limits import MOST_CHARACTERS
from attention_explorer.window.window import MainWindow
from attention_models.protocol.batch import MOST_TEXTS, Batch
from attention_models.protocol.chat import Pair
from attention_models.protocol.errors import CheckpointError, InputError
from attention_models.protocol.head import HeadView
from tests.explorer.real_window import destroy, look_put_back
from tests.models.own_modules import CHARACTERS, HEADS, Blind, Writer

pytestmark = pytest.mark.x


def settle(qtbot, window, borrowed: bool) -> Results:
    """Wait until the window shows a model that is (or is not) an object of ours."""

    def settled() -> bool:
        loaded = window.session.state.results.loaded
        return window.is_settled() and loaded is not None and loaded.info.borrowed is borrowed

    qtbot.waitUntil(settled, timeout=60_000)
    results: Results = window.session.state.results
    return results


@pytest.fixture
def closing() -> Iterator[list[MainWindow]]:
    """Windows that are put away at the end."""
    windows: list[MainWindow] = []
    with look_put_back():
        yield windows
        for window in windows:
            destroy(window)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_EXPLORER_HOME", str(tmp_path))
    return tmp_path


def test_a_module_is_shown_and_given_back(qtbot, home, closing):
    module = Writer().train()
    window = ax.open(module, CHARACTERS, "Tom went", name="mine", context=64)
    closing.append(window)
    results = settle(qtbot, window, borrowed=True)
    assert window.session.state.notice is None
    assert window.windowTitle().startswith("mine")
    assert results.ran is not None
    head = results.of(HeadView)
    assert head is not None
    assert [token.label for token in results.ran.tokens[:3]] == ["T", "o", "m"]
    assert [site.heads for site in results.ran.sites] == [HEADS, HEADS]
    assert head.weights.shape == (8, 8)
    assert window.top_bar.menu.currentText() == "mine"
    assert not any(child.training for child in module.modules())
    window.close()
    assert all(child.training for child in module.modules())
    assert window not in embedded._windows
    assert window.settings.recent == []


@pytest.mark.full
def test_one_goes_to_a_shipped_checkpoint_and_back(qtbot, home, closing):
    window = ax.open(Writer(), CHARACTERS, "Tom went", name="mine")
    closing.append(window)
    settle(qtbot, window, borrowed=True)
    window.session.dispatch(OpenCheckpoint("dates-luong"))
    settle(qtbot, window, borrowed=False)
    window.session.dispatch(OpenCheckpoint("python:mine"))
    settle(qtbot, window, borrowed=True)
    assert window.session.state.notice is None
    window.close()


@pytest.mark.full
def test_a_checkpoint_by_name(qtbot, home, closing):
    window = ax.open("dates-luong")
    closing.append(window)
    loaded = settle(qtbot, window, borrowed=False).loaded
    assert loaded is not None
    assert loaded.info.reference == "dates-luong"
    assert window.session.state.document.text == loaded.info.example
    window.close()


@pytest.mark.full
def test_several_texts_and_a_pair(qtbot, home, closing):
    window = ax.open("story-gpt", text=["Tom went", "A cat sat"])
    closing.append(window)
    results = settle(qtbot, window, borrowed=False)
    assert results.ran is not None
    assert results.ran.inputs.prompt == Batch(("Tom went", "A cat sat"))
    window.close()
    pairs = ax.open("story-next", text=("Tom fell.", "He cried."))
    closing.append(pairs)
    ran = settle(qtbot, pairs, borrowed=False).ran
    assert ran is not None
    assert ran.inputs.prompt == Pair("Tom fell.", "He cried.")
    pairs.close()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a" * (MOST_CHARACTERS + 1), r"Its text has 200,001 characters, and the window takes 200,000\. Give it a"),
        (["Tom", "a" * (MOST_CHARACTERS + 1)], "Text 1 beside it has 200,001"),
        (("Tom", "a" * (MOST_CHARACTERS + 1)), "Its second text has 200,001"),
        (["Tom"] * (MOST_TEXTS + 1), "256 are run at once at most"),
        ([], "no texts to run"),
        ([1, 2], "not with a list"),
        (b"Tom", "not with a bytes"),
    ],
)
def test_a_text_that_the_window_does_not_take(qtbot, home, text, words):
    with pytest.raises(InputError, match=words):
        ax.open("story-gpt", text=text)
    assert not embedded._windows


def test_what_can_not_be_shown_opens_no_window(qtbot, home):
    before = set(embedded._windows)
    with pytest.raises(CheckpointError, match="no attention was seen"):
        ax.open(Blind(), CHARACTERS)
    with pytest.raises(TypeError, match="needs a tokenizer"):
        ax.open(Blind())
    with pytest.raises(TypeError, match="brings its own tokenizer"):
        ax.open("story-gpt", CHARACTERS)
    assert embedded._windows == before


def test_a_notebook_is_asked_to_serve_qt(qapp, monkeypatch):
    asked: list[str] = []
    shell = SimpleNamespace(enable_gui=asked.append, events=Cells())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(embedded, "_shells", [])
    for _ in range(2):
        assert not embedded._application()  # somebody else runs the events
    assert asked == ["qt6", "qt6"]
    assert {name: len(told) for name, told in shell.events.told.items()} == {"pre_run_cell": 1, "post_run_cell": 1}


class Cells:
    """What IPython tells of the cells that it runs."""

    def __init__(self) -> None:
        self.told: dict[str, list[Callable[..., None]]] = {}

    def register(self, event: str, told: Callable[..., None]) -> None:
        self.told.setdefault(event, []).append(told)


def test_python_looks_for_garbage_while_a_cell_runs(qapp, monkeypatch):
    """A training loop in a cell is served no events for an hour, and with them no collection of ours."""
    shell = SimpleNamespace(enable_gui=lambda _: None, events=Cells())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(embedded, "_shells", [])
    embedded._application()
    collector = GarbageCollector(GuiQueue())
    collector.start()
    try:
        assert not gc.isenabled()
        shell.events.told["pre_run_cell"][0]("the cell")
        assert gc.isenabled()
        shell.events.told["post_run_cell"][0]("what came of it")
        assert not gc.isenabled()
    finally:
        collector.stop()
    assert gc.isenabled()


SCRIPT = """
from PySide6.QtCore import QTimer
import attention_explorer as ax
from attention_explorer import embedded
from tests.explorer.real_window import destroy, look_put_back
from tests.models.own_modules import CHARACTERS, Writer

def close_when_settled():
    window = next(iter(embedded._windows), None)
    if window is not None and window.is_settled():
        print(window.session.state.ran.inputs.prompt)
        window.close()

from PySide6.QtWidgets import QApplication
made = QApplication.exec
def run():
    timer = QTimer()
    timer.timeout.connect(close_when_settled)
    timer.start(50)
    return made()
QApplication.exec = run
ax.open(Writer(), CHARACTERS, "Tom went")
print("closed")
"""


@pytest.mark.full
def test_a_script_waits_until_the_window_is_closed(home):
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split("\n")[:2] == ["Tom went", "closed"], done.stderr
    assert done.returncode == 0


UNSHOWN = """
import sys, threading
import attention_explorer as ax
from attention_models.protocol.errors import DisplayError
from tests.models.own_modules import CHARACTERS, Writer

def tried():
    module = Writer().train()
    try:
        ax.open(module, CHARACTERS, "Tom went")
    except DisplayError as error:
        print(error)
    assert all(child.training for child in module.modules())

if sys.argv[1] == "thread":
    thread = threading.Thread(target=tried)
    thread.start()
    thread.join()
else:
    if sys.argv[1] == "core":
        from PySide6.QtCore import QCoreApplication
        application = QCoreApplication([])
    tried()
print("alive")
"""


@pytest.mark.full
@pytest.mark.parametrize(
    ("where", "environment", "words"),
    [
        ("script", {}, "There is no display to show a window on: DISPLAY and WAYLAND_DISPLAY are not set"),
        ("script", {"DISPLAY": ":4711"}, "The display does not answer (DISPLAY=:4711)"),
        ("script", {"QT_QPA_PLATFORM": "paper"}, "QT_QPA_PLATFORM asks Qt for “paper”"),
        ("core", {"QT_QPA_PLATFORM": "offscreen"}, "This program runs a QCoreApplication"),
        ("thread", {"QT_QPA_PLATFORM": "offscreen"}, "A window opens from the main thread alone"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="of X and Wayland")
def test_where_no_window_can_be_shown_the_process_lives_on(home, monkeypatch, where, environment, words):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    done = subprocess.run(
        [sys.executable, "-c", UNSHOWN, where], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    said, alive = done.stdout.splitlines()
    assert said.startswith(words)
    assert alive == "alive"
