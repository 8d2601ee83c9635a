"""Closing the window in the middle of work: it ends at once, with nothing left running, and exit code 0."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QFileDialog, QMessageBox, QWidget

from attention_explorer.session.intents import OpenCheckpoint, SetText
from attention_explorer.session.state import Document, State
from attention_explorer.settings import Settings
from attention_explorer.window.window import MainWindow
from attention_models.protocol.running import ForwardRequest
from tests.explorer.real_window import EXAMPLE, destroy, look_put_back, opened_window, settle, wait_until

pytestmark = pytest.mark.x

ROOT = Path(__file__).resolve().parents[2]

DRIVER = """
import sys
import time
from PySide6.QtCore import QTimer
from attention_explorer import app
from attention_explorer.window import window
from attention_explorer.compute.worker import open_engine

window.STOP_SECONDS = {patience}

class Hasty(window.MainWindow):
    def __init__(self, state, settings, **options):
        super().__init__(state, settings, engine_factory={engine}, **options)

    def start(self):
        super().start()
        self.timer = QTimer(self)
        self.timer.timeout.connect(lambda: self.close() if {condition} else None)
        self.timer.start(1)

window.MainWindow = Hasty
sys.exit(app.main([]))
"""


def closed_when(
    condition: str, engine: str = "open_engine", patience: float = 60.0
) -> subprocess.CompletedProcess[str]:
    """Run the program as the command does, and close its window as soon as `condition` (on `self`) holds."""
    program = DRIVER.format(condition=condition, engine=engine, patience=patience)
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def assert_ended_well(done: subprocess.CompletedProcess[str]) -> None:
    noise = "This plugin does not support propagateSizeHints()"
    said = [line for line in done.stderr.splitlines() if line.strip() and noise not in line]
    assert (done.returncode, said, done.stdout) == (0, [], "")


@pytest.mark.short("when the first run is shown")
@pytest.mark.parametrize(
    "condition",
    [
        "True",
        "'torch' in sys.modules and not hasattr(sys.modules.get('attention_models.engine.engine'), 'Engine')",
        # in the middle of it
        "self.session.state.ran is not None",
    ],
    ids=["before anything", "while torch is imported", "when the first run is shown"],
)
def test_the_program_ends_with_code_0(condition):
    assert_ended_well(closed_when(condition))


DIALOGS = {
    "a dialog that is modal": "QFileDialog.getSaveFileName(self, 'a')",
    "one that is not": "self.menus['help'].trigger()",
    "the chooser": "self.choose_checkpoint()",
    "the chooser's own dialog": "(self.choose_checkpoint(), self.chooser.dialog.browse_folder())",
    "a message": "QMessageBox.critical(self, 'a', 'b')",
    "a menu": "self.top_bar.devices.choices.exec()",
    "a list of choices": "self.top_bar.menu.showPopup()",
    "a panel in a window of its own": "self.dock_host.docks['map'].setFloating(True)",
}


CLOSES, SIGNAL = "self.close()", "os.kill(os.getpid(), signal.SIGTERM)"


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="a signal comes from outside")
@pytest.mark.parametrize(
    ("dialog", "way"), [*((dialog, SIGNAL) for dialog in DIALOGS), *((dialog, CLOSES) for dialog in list(DIALOGS)[:2])]
)
def test_what_is_open_over_the_window_does_not_hold_the_program(dialog, way):
    opens = "self.timer.stop(), QTimer.singleShot(300, self.end), " + DIALOGS[dialog]
    program = DRIVER.format(condition="self.session.state.ran is not None", engine="open_engine", patience=60)
    program = program.replace("self.close() if", f"({opens}) if")
    program = program.replace("    def start(self):", f"    def end(self):\n        {way}\n\n    def start(self):")
    program = f"import os, signal\nfrom PySide6.QtWidgets import QFileDialog, QMessageBox\n{program}"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert_ended_well(done)


@pytest.mark.full
def test_a_thread_that_does_not_stop_does_not_keep_the_program():
    assert_ended_well(closed_when("self.bridge.busy", engine="lambda: time.sleep(3600)", patience=0.1))


@pytest.fixture
def at_work(qapp) -> Callable[[MainWindow], None]:
    """Closes a window and checks that its thread has gone and that it is no longer on screen."""

    def close(window: MainWindow) -> None:
        assert window.bridge.busy
        assert window.close()
        assert window.stopped
        assert not window.isVisible()
        assert not any(thread.name == "engine" for thread in threading.enumerate())

    return close


def test_closing_while_a_checkpoint_is_opened(at_work):
    with opened_window() as window:
        window.session.dispatch(OpenCheckpoint("story-bert"))
        at_work(window)


@pytest.mark.full
def test_closing_during_a_forward_pass(at_work):
    with opened_window() as window:
        window.session.dispatch(SetText("the " * 500))
        wait_until(lambda: window.bridge.busy == frozenset({ForwardRequest.lane}))
        at_work(window)


@pytest.mark.full
def test_closing_with_every_lane_waiting(at_work):
    with opened_window() as window:
        settle(window)
        window.session.dispatch(SetText(EXAMPLE + " Anna"))
        wait_until(lambda: len(window.bridge.busy) > 1)
        at_work(window)


def test_closing_before_the_engine_was_started(qapp):
    with look_put_back():
        window = MainWindow(State(Document()), Settings(), remembers=False)
        window.show()
        window.close()
        assert window.stopped
        QApplication.processEvents()
        destroy(window)


@pytest.mark.full
@pytest.mark.parametrize(
    "opens",
    [
        lambda window: QFileDialog.getSaveFileName(window, "a"),
        lambda window: QMessageBox.critical(window, "a", "b"),
        lambda window: (window.choose_checkpoint(), window.chooser.dialog.browse_folder()),
        lambda window: window.top_bar.devices.choices.exec(),
    ],
    ids=["file", "message", "folder over chooser", "menu"],
)
@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)  # an offscreen menu takes no keyboard
def test_dialogs_end_with_their_window_where_the_program_goes_on(qapp, opens):
    """As in a notebook: no end of the event loop takes them away."""
    still: list[QWidget] = []

    def give_up() -> None:
        still.extend(widget for widget in QApplication.topLevelWidgets() if widget.isVisible())
        for widget in still:
            widget.close()

    with opened_window() as window:
        late = QTimer(window)
        late.setSingleShot(True)
        late.timeout.connect(give_up)
        late.start(20_000)
        QTimer.singleShot(200, window.close)
        opens(window)
        late.stop()
        assert still == []
        assert not any(widget.isVisible() for widget in QApplication.topLevelWidgets())


@pytest.mark.full
def test_after_closing_nothing_arrives(qapp):
    with opened_window() as window:
        window.session.dispatch(SetText("Tom went"))
        window.close()
        state = window.session.state
        QApplication.processEvents()
        assert window.session.state is state
        assert window.bridge.busy == frozenset()
