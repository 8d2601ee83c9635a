"""An exception that nobody caught reaches the log, and a person hears that there was one."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QApplication

from attention_explorer.window.faults import Faults


class Emitter(QObject):
    emitted = Signal()


@pytest.fixture
def told(qapp, caplog, settings_folder):
    """The sentences of faults that are found during the test."""
    sentences: list[str] = []
    faults = Faults()
    faults.found.connect(sentences.append)
    with faults.caught():
        yield sentences
    QApplication.processEvents()


def fail() -> None:
    raise ZeroDivisionError("nothing to divide by")


def test_of_a_slot(told, caplog, capsys, settings_folder: Path):
    emitter = Emitter()
    emitter.emitted.connect(fail)
    emitter.emitted.emit()
    QApplication.processEvents()
    assert told == [
        "Something went wrong in the program (ZeroDivisionError). What you did last may have had no effect; "
        f"details are in the log, {settings_folder / 'log.txt'}."
    ]
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "nothing to divide by"
    assert "nothing to divide by" in capsys.readouterr().err


def test_of_a_thread(told, caplog, qtbot):
    thread = threading.Thread(target=fail, name="busy")
    thread.start()
    thread.join()
    qtbot.waitUntil(lambda: bool(told))
    assert "ZeroDivisionError" in told[0]
    assert "in the thread busy" in caplog.text


def test_of_a_destructor_only_in_the_log(told, caplog):
    class Ends:
        def __del__(self) -> None:
            fail()

    Ends()
    QApplication.processEvents()
    assert told == []
    assert "nothing to divide by" in caplog.text


def test_what_fails_again_and_again_does_not_fill_the_log(told, caplog, capsys):
    emitter = Emitter()
    emitter.emitted.connect(fail)
    for _ in range(250):
        emitter.emitted.emit()
    assert [bool(record.exc_info) for record in caplog.records] == [True, False, False]
    assert "for the 100th time" in caplog.text


def test_telling_that_fails_is_not_told_without_end(qapp, caplog, capsys):
    faults, calls = Faults(), []

    def tell(_sentence: str) -> None:
        calls.append(1)
        fail()

    faults.found.connect(tell)
    with faults.caught():
        QTimer.singleShot(0, fail)
        for _ in range(20):
            QApplication.processEvents()
    assert len(calls) == 1
