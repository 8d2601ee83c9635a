"""Qt's objects that have become garbage go in the GUI thread, whichever thread makes the objects that fill memory."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QObject

from attention_explorer.compute.bridge import GarbageCollector
from attention_explorer.compute.gui_queue import GuiQueue
from attention_models.files import collecting

ROOT = Path(__file__).resolve().parents[3]

CYCLES = """
import gc, os, sys, threading
from PySide6.QtCore import QCoreApplication, QObject, QTimer
from attention_explorer.compute.bridge import GarbageCollector
from attention_explorer.compute.gui_queue import GuiQueue
from attention_models.files import collecting

app = QCoreApplication([])
collector = GarbageCollector(GuiQueue())
if sys.argv[1] == "ours":
    collector.start()
left = []

class InACycle(QObject):
    def __init__(self):
        super().__init__()
        self.myself = self
        self.timer = QTimer(self)
        self.timer.start(1000)
        self.timer.timeout.connect(self.tick)

    def tick(self):
        pass

    def __del__(self):
        left.append(threading.current_thread() is threading.main_thread())

def work():
    for _ in range(300):
        keep = [[] for _ in range(2000)]
    collecting.collect()

for _ in range(10):
    InACycle()
    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        app.processEvents()
print(len(left), all(left), gc.isenabled())
"""


@pytest.fixture
def collector(qapp) -> Iterator[GarbageCollector]:
    collector = GarbageCollector(GuiQueue())
    collector.start()
    yield collector
    collector.stop()


def test_none_is_deleted_in_another_thread():
    done = subprocess.run([sys.executable, "-c", CYCLES, "ours"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["10", "True", "False"]
    assert done.stderr == ""


def test_pythons_own_way_ends_the_process():
    """Else all this were not needed."""
    done = subprocess.run([sys.executable, "-c", CYCLES, "none"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0 or "another thread" in done.stderr


def test_garbage_goes_while_events_are_served(collector, qtbot):
    class Node:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            gone.append(threading.get_ident())

    gone: list[int] = []
    Node()
    assert not gc.isenabled()
    kept: list[list[int]] = [[] for _ in range(2 * gc.get_threshold()[0])]
    qtbot.waitUntil(lambda: bool(gone))
    assert gone == [threading.get_ident()]
    del kept


def test_it_waits_while_that_is_deferred(collector, qtbot):
    with collecting.deferred():
        before = gc.get_stats()
        kept: list[list[int]] = [[] for _ in range(2 * gc.get_threshold()[0])]
        qtbot.wait(1200)
        assert gc.get_stats() == before
        del kept


def test_another_thread_does_not_wait_for_one_that_waits_for_it(collector):
    thread = threading.Thread(target=collector.collect)
    thread.start()
    collector.wait_no_more()
    thread.join(1.0)
    assert not thread.is_alive()


def test_one_that_is_deleted_is_asked_no_more(qapp):
    parent = QObject()
    collector = GarbageCollector(GuiQueue(parent), parent)
    collector.start()
    assert not gc.isenabled()
    del collector, parent
    assert gc.isenabled()
    collecting.collect()
