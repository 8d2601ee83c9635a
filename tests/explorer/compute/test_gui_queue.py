"""However many things come at once, the event loop serves everything else between two of them."""

from __future__ import annotations

import threading
from functools import partial
from itertools import pairwise

from PySide6.QtCore import QEventLoop, QObject, QTimer

from attention_explorer.compute.gui_queue import GuiQueue


def test_what_comes_at_once_is_done_one_thing_a_turn_and_in_order(qtbot):
    turns = GuiQueue()
    done: list[tuple[int, int]] = []
    ticks: list[int] = []

    def note(number: int) -> None:
        done.append((number, threading.get_ident()))

    def ask() -> None:
        for number in range(20):
            turns.do(partial(note, number))

    ticking = QTimer()
    ticking.timeout.connect(lambda: ticks.append(len(done)))
    ticking.start(0)
    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert done == []
    qtbot.waitUntil(lambda: len(done) == 20)
    assert done == [(i, threading.get_ident()) for i in range(20)]
    assert all(later - sooner <= 1 for sooner, later in pairwise([0, *ticks]))  # the other timer had its turn each time


def test_something_that_runs_an_event_loop_does_not_hold_up_the_rest(qtbot):
    turns, loop = GuiQueue(), QEventLoop()
    done: list[str] = []

    def ask() -> None:
        done.append("asks")
        loop.exec()
        done.append("is answered")

    turns.do(ask)
    turns.do(lambda: done.append("answer"))
    turns.do(loop.quit)
    qtbot.waitUntil(lambda: len(done) == 3)
    assert done == ["asks", "answer", "is answered"]


def test_something_that_fails_does_not_hold_up_the_rest(qtbot):
    turns, done = GuiQueue(), list[bool]()
    with qtbot.captureExceptions() as raised:
        turns.do(lambda: 1 / 0)
        turns.do(lambda: done.append(True))
        qtbot.waitUntil(lambda: bool(done))
    assert [kind for kind, *_ in raised] == [ZeroDivisionError]


def test_what_is_asked_for_meanwhile_comes_last(qtbot):
    turns, done = GuiQueue(), list[str]()
    turns.do(lambda: turns.do(lambda: done.append("meanwhile")))
    turns.do(lambda: done.append("before"))
    qtbot.waitUntil(lambda: len(done) == 2)
    assert done == ["before", "meanwhile"]


def test_nothing_is_done_once_it_is_deleted(qtbot):
    parent, done = QObject(), list[bool]()
    GuiQueue(parent).do(lambda: done.append(True))
    del parent
    qtbot.wait(20)
    assert done == []
