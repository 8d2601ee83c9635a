"""The real program in a process of its own, which does what the test asks and tells what it is at.

Started by `program.py`. Each line of standard input is a Python expression over `window`, the main window; the answer,
as JSON, is a line of standard output. What the window is busy with when it is closed is the last line.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import psutil
from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from attention_explorer import app
from attention_explorer.session import intents
from attention_explorer.window import window as windows
from tests.explorer.answering import open_dialogs

OUT = sys.stdout
POLL = 1  # ms
BEAT = 20  # ms
MOST_LOOKS = 2000


def answer(value: object) -> None:
    print(json.dumps(value, default=str), file=OUT, flush=True)


class Asked(QObject):
    """Lines of standard input, handed to the window's thread."""

    line = Signal(str)

    def listen(self) -> None:
        for line in sys.stdin:
            self.line.emit(line)
        os._exit(1)  # whoever asks is gone


class Heart(QTimer):
    """Beats in the window's thread; between two beats that thread was busy with something else."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._last, self._worked = time.monotonic(), time.thread_time()
        self._longest = [0.0, 0.0]
        self.timeout.connect(self.beat)
        self.start(BEAT)

    def beat(self) -> None:
        now, worked = time.monotonic(), time.thread_time()
        gap = now - self._last, worked - self._worked
        self._longest = [max(one, other) for one, other in zip(self._longest, gap, strict=True)]
        self._last, self._worked = now, worked

    def silence(self) -> list[float]:
        """The longest since it was asked for last: in seconds, and in seconds of work of this thread alone."""
        self.beat()
        longest, self._longest = self._longest, [0.0, 0.0]
        return longest


class Driven(windows.MainWindow):
    closed_at: list[str] | None = None

    def start(self, *given: object) -> None:
        super().start(*given)
        self.heart = Heart(self)
        self.asked = Asked()
        self.asked.line.connect(self.do, Qt.ConnectionType.QueuedConnection)
        threading.Thread(target=self.asked.listen, daemon=True).start()
        answer("started")

    def do(self, line: str) -> None:
        answer(eval(line, {"window": self, "panel": self.panel, **TOOLS}))

    def panel(self, name: str) -> Any:
        return next(panel for panel in self.panels if panel.name == name)

    def at_work(self) -> list[str]:
        """What is under way, by the names of its lanes.

        Beside them "download" for what the chooser fetches, "play" for what is written step by step, each of which is a
        request of its own, "save" for a session file, and "autosave".
        """
        chooser = self._chooser
        fetching = ["download"] if chooser is not None and chooser.hub.is_fetching else []
        playing = ["play"] if self.has_all_panels() and self.panel("decoding").player.playing else []
        saving = ["save"] if self.sessions._reading.isActive() else []
        keeping = ["autosave"] if self.autosave is not None and self.autosave.is_writing else []
        return [*sorted(lane.name for lane in self.bridge.busy), *fetching, *playing, *saving, *keeping]

    def closes_when(self, lane: str, delay: int, how: str) -> None:
        """Once `lane` is at work, wait `delay` ms and, while it still is, close, or ask for a signal.

        The answer is "missed" where it was at work for less than that, or not at all.
        """
        looks = 0

        def look() -> None:
            nonlocal looks
            looks += 1
            if lane in self.at_work():
                timer.stop()
                QTimer.singleShot(delay, end)
            elif looks == MOST_LOOKS:
                timer.stop()
                answer("missed")

        def end() -> None:
            if lane not in self.at_work():
                answer("missed")
            elif how == "window":
                self.closed_at = self.at_work()  # a dialog in front is cancelled before the window hears of it
                self.close()
            else:
                answer("busy")

        timer = QTimer(self)
        timer.setInterval(POLL)
        timer.timeout.connect(look)
        timer.start()

    def closeEvent(self, event: QCloseEvent) -> None:
        answer(["closing", *(self.closed_at or self.at_work())])
        super().closeEvent(event)


def spots(window: Driven, name: str) -> list[list[Any]]:
    """Left, top, width and height on the screen, and class, of every widget of a panel of which something shows.

    Without a name those of the window itself: menus, top bar, input, the tabs of the panels.
    """
    host = window.dock_host
    roots = [window.menuBar(), window.top_bar, window.input, *host.tab_bars()] if not name else [window.panel(name)]
    found = []
    for root in roots:
        for widget in (root, *root.findChildren(QWidget)):
            seen = widget.visibleRegion().boundingRect()
            if widget.window() is root.window() and seen.width() > 4 and seen.height() > 4:
                at = widget.mapToGlobal(seen.topLeft())
                found.append([at.x(), at.y(), seen.width(), seen.height(), type(widget).__name__])
    return found


def tip() -> list[int] | None:
    """Where on the screen the tooltip is, if one is open."""
    for shown in QApplication.topLevelWidgets():
        if shown.objectName() == "qtooltip_label" and shown.isVisible():
            return list(shown.geometry().getRect())  # type: ignore[call-overload, no-any-return]
    return None


def memory() -> float:
    """Megabytes that the process holds."""
    held: int = psutil.Process().memory_info().rss
    return held / 1e6


def keys(window: Driven, text: str) -> None:
    """Type into the input as fast as events are handled."""
    for letter in text:
        QTest.keyClicks(window.input.text, letter)
        QApplication.processEvents()


def later(work: Callable[[], object]) -> None:
    """Do it when the answer has left: what opens a dialog may come back only when that is closed."""
    QTimer.singleShot(0, work)


TOOLS = {
    "intents": intents,
    "QTest": QTest,
    "Qt": Qt,
    "memory": memory,
    "spots": spots,
    "tip": tip,
    "keys": keys,
    "later": later,
    "open_dialogs": open_dialogs,
}


if __name__ == "__main__":
    windows.MainWindow = Driven  # type: ignore[misc]
    sys.stdout = sys.stderr  # what the program prints is no answer
    sys.exit(app.main(sys.argv[1:]))
