"""How the window starts: what it shows first, and what comes only when it is used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from attention_explorer.panels.registry import BUILT_IN
from attention_explorer.session.state import Document, State
from attention_explorer.settings import Settings, load
from attention_explorer.window.contents import SEEN_FIRST
from attention_explorer.window.window import MainWindow
from attention_models.protocol.request import Failure, Request, Result
from tests.explorer.real_window import destroy, look_put_back, wait_until

ROOT = Path(__file__).resolve().parents[3]

ON_FIRST_USE = (
    "torch",
    "transformers",
    "pyqtgraph",
    "httpx",
    "httpx2",
    "huggingface_hub",
    "PIL",
    "attention_explorer.chooser",
    "attention_explorer.session.files",
    "attention_explorer.window.help",
    "attention_explorer.window.dialogs",
    *(point.module.removesuffix(".panel") for point in BUILT_IN if point.name not in SEEN_FIRST),
)
"""Modules that nothing needs which is seen at first."""

WITH_CONTENTS = (
    "numpy",
    "logging.handlers",
    "importlib.metadata",
    "attention_explorer.language",
    "attention_explorer.compute",
    "attention_explorer.panels",
    "attention_explorer.session.session",
    "attention_explorer.window.contents",
    "attention_explorer.window.menus",
)
"""Modules that the window's own first paint does not wait for."""

PAINTED = """
import json
import sys
from attention_explorer import app
from attention_explorer.window import window

class Watched(window.MainWindow):
    painted = ()

    def paintEvent(self, event):
        super().paintEvent(event)
        self.painted = (*self.painted, list(sys.modules))

    def start(self):
        filled, size = len(self.painted), self.size()
        super().start()
        self.once_painted(lambda: self.tell(filled, size))

    def tell(self, filled, size):
        print(json.dumps([self.painted[0], self.painted[filled], self.input.text.text(), self.size() == size]))
        self.close()

window.MainWindow = Watched
sys.exit(app.main(["--text", "Tom ran"]))
"""


UNFILLED = """
import sys
from attention_explorer import app
from attention_explorer.window import window

class Unfilled(window.MainWindow):
    def fill(self, state):
        raise RuntimeError("no contents")

window.MainWindow = Unfilled
sys.exit(app.main([]))
"""


def started(program: str, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ATTENTION_EXPLORER_HOME": str(home)}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.full
def test_the_window_is_painted_first_and_then_what_is_seen_in_it(tmp_path):
    ran = started(PAINTED, tmp_path)
    empty, filled, text, same_size = json.loads(ran.stdout)
    assert set(empty) & {*WITH_CONTENTS, *ON_FIRST_USE} == set()
    assert {"attention_explorer.panels.flow.panel", *WITH_CONTENTS} <= set(filled)
    assert set(filled) & set(ON_FIRST_USE) == set()
    assert text == "Tom ran"
    assert same_size


@pytest.mark.full
def test_settings_that_cannot_be_read_are_named_in_the_log_and_not_on_standard_error(tmp_path):
    (tmp_path / "settings.json").write_text('{"theme": "pink"}')
    ran = started(PAINTED, tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"The settings in {tmp_path / 'settings.json'} could not be read" in (tmp_path / "log.txt").read_text()


def test_a_window_that_cannot_be_filled_is_not_left_empty(tmp_path):
    ran = started(UNFILLED, tmp_path)
    assert ran.returncode == 1
    assert "RuntimeError: no contents" in ran.stderr


class Refusing:
    """An engine that answers nothing."""

    def run(self, request: Request, should_stop: object, report: object) -> Result:
        return Failure(request=request, sentence="There is no engine.")


class Windows(QObject):
    """Collects the windows that are shown."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[QWidget] = []

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Show and isinstance(watched, QWidget) and watched.isWindow():
            self.shown.append(watched)
        return False


@pytest.mark.full
def test_panels_come_one_by_one_and_no_other_window_is_shown_meanwhile(qapp):
    windows, turns = Windows(), []
    qapp.installEventFilter(windows)
    with look_put_back():
        window = MainWindow(State(Document()), engine_factory=Refusing, remembers=False)
        names = list(window.dock_host.docks)
        assert names == [point.name for point in BUILT_IN]  # a tab for each from the beginning
        window.show()
        window.start()
        timer = QTimer()
        timer.timeout.connect(lambda: turns.append(len(window.findChildren(QWidget))))
        timer.start(0)
        wait_until(window.has_all_panels)
        timer.stop()
        assert len(set(turns)) > len(names) / 2  # the event loop went on in between
        assert [panel.name for panel in window.panels] == names
        assert set(windows.shown) == {window}
        window.close()
        destroy(window)
    qapp.removeEventFilter(windows)


def test_keys_pressed_while_the_window_is_empty_are_typed_into_its_input(qapp):
    with look_put_back():
        window = MainWindow(None, engine_factory=Refusing, remembers=False)
        window.show()
        for key in (Qt.Key.Key_Space, Qt.Key.Key_U, Qt.Key.Key_P, Qt.Key.Key_S, Qt.Key.Key_Backspace):
            QTest.keyClick(window.windowHandle(), key)
        window.once_painted(lambda: window.fill(State(Document(text="Tom ran"))))
        wait_until(lambda: window.centralWidget() is not None)
        QTest.keyClick(window.windowHandle(), Qt.Key.Key_Period)
        assert window.input.text.text() == "Tom ran up."
        assert window.session.state.document.text == "Tom ran up."
        window.close()
        destroy(window)


def test_a_window_that_is_closed_while_empty_stays_so_and_keeps_what_was_remembered(qapp, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_EXPLORER_HOME", str(tmp_path))
    filled = []
    with look_put_back():
        window = MainWindow(None, Settings(layout=b"as it was", text_scale=1.5), engine_factory=Refusing)
        window.once_painted(lambda: filled.append(True))
        window.show()
        window.close()
        QApplication.processEvents()
        assert window.stopped
        assert filled == []
        settings, sentence = load()
        assert (settings.layout, settings.text_scale, sentence) == (b"as it was", 1.5, "")
        assert settings.geometry == bytes(window.saveGeometry().data())
        destroy(window)


def test_a_window_that_is_closed_at_once_makes_no_more_panels(qapp):
    with look_put_back():
        window = MainWindow(State(Document()), engine_factory=Refusing, remembers=False)
        window.show()
        window.start()
        window.close()
        QApplication.processEvents()
        assert not window.has_all_panels()
        destroy(window)
