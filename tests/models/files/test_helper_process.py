"""Work in a process that is ended: by what it takes, by who asked, and by falling; and there again for the next."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import psutil
import pytest

from models.files.helper_process import Ended, HelperProcess, Limits
from models.protocol.work import Cancelled

LIMITS = Limits(processor_seconds=0.3, seconds=60, memory=200 << 20)
PATIENT = Limits(processor_seconds=600, seconds=600, memory=1 << 40)


@pytest.fixture
def helper() -> Iterator[HelperProcess]:
    helper = HelperProcess("tests.models.files.helped", "")
    yield helper
    helper.close()


def test_answers(helper: HelperProcess) -> None:
    text = "naïve \ud800 ☃ " + "x" * 300_000
    assert helper.ask(text, LIMITS).startswith(text)
    assert helper.ask("print", LIMITS).startswith("print")


@pytest.mark.parametrize(
    ("work", "why"),
    [
        ("spin", "takes longer than 0 seconds to read"),
        ("grow", "takes more than 0.2 GB of memory to read"),
        ("fall", "ended the process that reads it"),
        ("fail", "ended the process that reads it"),
    ],
)
def test_what_takes_too_much_is_ended_and_the_next_is_answered(helper: HelperProcess, work: str, why: str) -> None:
    with pytest.raises(Ended) as ended:
        helper.ask(work, LIMITS)
    assert (ended.value.at, ended.value.why) == ("the file", why)
    assert helper.ask("next", LIMITS).startswith("next by ")


def test_waiting_is_bounded_by_the_clock(helper: HelperProcess) -> None:
    with pytest.raises(Ended, match="takes longer"):
        helper.ask("sleep", Limits(processor_seconds=0.1, seconds=0.2, memory=1 << 40))


@pytest.mark.parametrize("work", ["spin", "sleep"])
def test_called_off(helper: HelperProcess, work: str) -> None:
    asked = 0

    def should_stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 5

    with pytest.raises(Cancelled):
        helper.ask(work, PATIENT, should_stop)
    assert helper.ask("next", LIMITS).startswith("next by ")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it is the process itself that is ended")
def test_nothing_is_imported_again_after_one_was_ended(helper: HelperProcess) -> None:
    first = int(helper.ask("first", LIMITS).rpartition(" ")[2])
    [process] = [child for child in psutil.Process().children() if "tests.models.files.helped" in child.cmdline()]
    with pytest.raises(Ended):
        helper.ask("spin", LIMITS)
    assert process.is_running()
    assert int(helper.ask("next", LIMITS).rpartition(" ")[2]) not in (first, process.pid, os.getpid())
    psutil.wait_procs(process.children(), timeout=30)  # the last copy may be ending just now
    assert process.children() == []
    helper.close()
    assert not process.is_running()


def test_a_python_that_cannot_be_started_is_said(monkeypatch: pytest.MonkeyPatch, helper: HelperProcess) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    helper.start()
    with pytest.raises(OSError, match="No such file"):
        helper.ask("x", LIMITS)
