"""Work in a process that is ended: by what it takes, by who asked, and by falling; and there again for the next."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest

from attention_models.files import helper_work
from attention_models.files.helper_process import Ended, HelperProcess, Limits
from attention_models.protocol.request import Cancelled

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
        ("spin", r"takes longer than \d seconds to read"),  # more on a slow computer
        ("grow", r"takes more than 0\.2 GB of memory to read"),
        ("fall", "ended the process that reads it"),
        ("fail", "ended the process that reads it"),
    ],
)
def test_what_takes_too_much_is_ended_and_the_next_is_answered(helper: HelperProcess, work: str, why: str) -> None:
    with pytest.raises(Ended) as ended:
        helper.ask(work, LIMITS)
    assert ended.value.at == "the file"
    assert re.fullmatch(why, ended.value.why)
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


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere one request is done after the other")
def test_one_request_waits_for_no_other(helper: HelperProcess) -> None:
    is_over = threading.Event()

    def wait() -> None:
        with suppress(Cancelled):
            helper.ask("sleep", PATIENT, is_over.is_set)

    hangs = threading.Thread(target=wait)
    hangs.start()
    assert helper.ask("next", LIMITS).startswith("next by ")
    assert hangs.is_alive()
    is_over.set()
    hangs.join()
    assert helper.ask("next", LIMITS).startswith("next by ")


def test_long_answers_at_once_come_whole(helper: HelperProcess) -> None:
    answers: list[str] = []
    threads = [threading.Thread(target=lambda: answers.append(helper.ask("long", PATIENT))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["x" * 2_000_000] * 6


def test_what_is_called_off_before_it_was_begun_is_not_done(helper: HelperProcess) -> None:
    for _ in range(3):
        with pytest.raises(Cancelled):
            helper.ask("sleep", PATIENT, lambda: True)
    assert helper.ask("next", LIMITS).startswith("next by ")


def test_it_ends_when_nothing_is_asked_for_long_and_is_there_again(
    monkeypatch: pytest.MonkeyPatch, helper: HelperProcess
) -> None:
    monkeypatch.setenv("IDLE_SECONDS", "0.3")
    for _ in range(3):
        assert helper.ask("first", LIMITS).startswith("first by ")
        [process] = [child for child in psutil.Process().children() if "tests.models.files.helped" in child.cmdline()]
        process.wait(30)


@pytest.mark.parametrize(("slower", "leeway"), [(0.5, 1.0), (1.4, 1.0), (3.0, 2.0), (15.0, 10.0), (100.0, 10.0)])
def test_limits_grow_with_how_slow_the_computer_is(
    monkeypatch: pytest.MonkeyPatch, slower: float, leeway: float
) -> None:
    monkeypatch.setattr(helper_work, "_sample", lambda: slower * helper_work._USUAL)
    assert helper_work.leeway() == pytest.approx(leeway)


def test_a_slow_computer_is_given_more_time(monkeypatch: pytest.MonkeyPatch, helper: HelperProcess) -> None:
    monkeypatch.setenv("LEEWAY", "5")
    with pytest.raises(Ended, match="takes longer than 2 seconds to read"):
        helper.ask("spin", LIMITS)


def test_a_python_that_cannot_be_started_is_said(monkeypatch: pytest.MonkeyPatch, helper: HelperProcess) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    helper.start()
    with pytest.raises(OSError, match="No such file"):
        helper.ask("x", LIMITS)
