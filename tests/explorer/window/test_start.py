"""How the window starts: what it shows first, and what comes only when it is used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QApplication, QWidget

from explorer.panels.registry import BUILT_IN
from explorer.session.state import Document, State
from explorer.window.window import SEEN_FIRST, MainWindow
from models.protocol.request import Failure, Request, Result
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
    "explorer.chooser",
    "explorer.session.files",
    "explorer.window.help",
    "explorer.window.saving",
    *(point.module.removesuffix(".panel") for point in BUILT_IN if point.name not in SEEN_FIRST),
)
"""Modules that nothing needs which is painted at first."""

PAINTED_FIRST = """
import sys
from PySide6.QtCore import QEvent, QObject
from explorer import app
from explorer.window import window

class Watched(window.MainWindow):
    def paintEvent(self, event):
        super().paintEvent(event)
        print(*sys.modules, sep="\\n")
        self.close()

window.MainWindow = Watched
sys.exit(app.main([]))
"""


def test_nothing_is_imported_before_the_first_paint_that_it_does_not_show(tmp_path):
    environment = {**os.environ, "ATTENTION_EXPLORER_HOME": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", PAINTED_FIRST], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    imported = set(ran.stdout.split())
    assert "explorer.panels.head_map.panel" in imported
    assert imported & set(ON_FIRST_USE) == set()


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


def test_a_window_that_is_closed_at_once_makes_no_more_panels(qapp):
    with look_put_back():
        window = MainWindow(State(Document()), engine_factory=Refusing, remembers=False)
        window.show()
        window.start()
        window.close()
        QApplication.processEvents()
        assert not window.has_all_panels()
        destroy(window)
