from __future__ import annotations

import logging
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from attention_explorer.compute import worker as worker_module
from attention_explorer.compute.mailbox import Mailbox
from attention_explorer.compute.worker import EngineLike, Worker
from attention_models.protocol.loading import Loaded, LoadRequest
from attention_models.protocol.request import Cancelled, Failure, Progress, Request, Result
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from tests.explorer.compute.engines import GatedEngine, QuickEngine, Report, ShouldStop
from tests.explorer.session import answers

FORWARD = ForwardRequest(inputs=RunInputs("a b"))
STARTING = "Starting the engine"


class Desk:
    """A mailbox, its worker, and what the worker delivered once the engine had started."""

    def __init__(self, engine_factory: Callable[[], EngineLike]) -> None:
        self.mailbox = Mailbox()
        self.delivered: queue.Queue[Result] = queue.Queue()
        self.worker = Worker(self.mailbox, self._deliver, engine_factory)
        self.worker.start()

    def _deliver(self, result: Result) -> None:
        if not (isinstance(result, Progress) and result.label == STARTING):
            self.delivered.put(result)

    def next(self) -> Result:
        return self.delivered.get(timeout=10)


@pytest.fixture
def open_desk() -> Iterator[Callable[[Callable[[], EngineLike]], Desk]]:
    desks: list[Desk] = []

    def open_one(engine_factory: Callable[[], EngineLike]) -> Desk:
        desks.append(Desk(engine_factory))
        return desks[-1]

    yield open_one
    for desk in desks:
        assert desk.worker.stop(timeout=10)


class FaultyEngine:
    """Raises what it was given."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def run(self, request: Request, should_stop: ShouldStop, report: Report) -> Result:
        raise self.error


class TalkingEngine:
    """Reports each of the given labels, then answers."""

    def __init__(self, *labels: str) -> None:
        self.labels = labels

    def run(self, request: Request, should_stop: ShouldStop, report: Report) -> Result:
        for number, label in enumerate(self.labels):
            report(label, number / len(self.labels))
        return answers.failure(request, "Done.")


def test_a_request_is_answered_with_its_ticket(open_desk):
    desk = open_desk(QuickEngine)
    posted = desk.mailbox.post(FORWARD)
    result = desk.next()
    assert isinstance(result, Ran)
    assert result.request == posted


def test_the_engine_is_made_and_runs_in_the_worker_only(open_desk):
    threads: list[threading.Thread] = []

    class Noting(QuickEngine):
        def __init__(self) -> None:
            super().__init__()
            threads.append(threading.current_thread())

        def run(self, request: Request, should_stop: ShouldStop, report: Report) -> Result:
            threads.append(threading.current_thread())
            return super().run(request, should_stop, report)

    desk = open_desk(Noting)
    desk.mailbox.post(FORWARD)
    desk.next()
    assert threads == [desk.worker, desk.worker]


def test_an_exception_is_a_failure_with_a_sentence_and_the_next_request_works(open_desk, caplog):
    class OnceFaulty(QuickEngine):
        def run(self, request: Request, should_stop: ShouldStop, report: Report) -> Result:
            if request == first:
                raise MemoryError("out of memory")
            return super().run(request, should_stop, report)

    desk = open_desk(OnceFaulty)
    first = desk.mailbox.post(LoadRequest(reference="big"))
    with caplog.at_level(logging.WARNING):
        result = desk.next()
    assert isinstance(result, Failure)
    assert result.request == first
    assert result.sentence == (
        "Something went wrong while opening the checkpoint: MemoryError. "
        "The session is as it was; details are in the log."
    )
    assert "MemoryError: out of memory" in result.cause
    assert "Traceback" in caplog.text
    desk.mailbox.post(LoadRequest(reference="small"))
    assert isinstance(desk.next(), Loaded)


class Panic(BaseException):
    """What Rust's panics are in Python: no Exception."""


@pytest.mark.parametrize("kind", [Panic, SystemExit, KeyboardInterrupt])
def test_what_is_no_exception_does_not_end_the_thread(open_desk, kind):
    class OncePanicking(QuickEngine):
        def run(self, request: Request, should_stop: ShouldStop, report: Report) -> Result:
            if request == first:
                raise kind("retry-limit-in-match over")
            return super().run(request, should_stop, report)

    desk = open_desk(OncePanicking)
    first = desk.mailbox.post(LoadRequest(reference="evil"))
    result = desk.next()
    assert isinstance(result, Failure)
    assert kind.__name__ in result.sentence
    desk.mailbox.post(LoadRequest(reference="small"))
    assert isinstance(desk.next(), Loaded)


def test_a_factory_that_fails_fails_every_request(open_desk):
    def broken() -> EngineLike:
        raise ImportError("no torch here")

    desk = open_desk(broken)
    for request in (FORWARD, LoadRequest(reference="a")):
        posted = desk.mailbox.post(request)
        result = desk.next()
        assert isinstance(result, Failure)
        assert result.request == posted
        assert result.sentence.startswith("Something went wrong while starting the engine: ImportError.")
        assert "no torch here" in result.cause


def test_a_superseded_request_is_stopped_and_answered_by_nothing(open_desk):
    engine = GatedEngine()
    desk = open_desk(lambda: engine)
    first = desk.mailbox.post(FORWARD)
    engine.wait_until_working()
    second = desk.mailbox.post(ForwardRequest(inputs=RunInputs("newer")))
    engine.wait_until_working()
    engine.open_gate()
    assert desk.next().request == second
    assert engine.cancelled == [first]
    assert desk.delivered.empty()


def test_an_answer_that_comes_too_late_is_not_delivered(open_desk):
    class Stubborn(QuickEngine):
        """Replaces its own request while it works, and answers all the same."""

        def run(self, request: Request, should_stop: ShouldStop, report: Report) -> Result:
            if request == first:
                posted.append(desk.mailbox.post(ForwardRequest(inputs=RunInputs("newer"))))
                report("still going", None)
            return super().run(request, should_stop, report)

    ready = threading.Event()

    def factory() -> EngineLike:
        ready.wait(timeout=10)
        return Stubborn()

    posted: list[Request] = []
    desk = open_desk(factory)
    first = desk.mailbox.post(FORWARD)
    ready.set()
    assert desk.next().request == posted[0]
    assert desk.delivered.empty()


def test_giving_up_without_being_told_to_is_a_failure(open_desk):
    desk = open_desk(lambda: FaultyEngine(Cancelled()))
    desk.mailbox.post(FORWARD)
    result = desk.next()
    assert isinstance(result, Failure)
    assert "Cancelled" in result.sentence


def test_starting_the_engine_is_the_first_thing_that_is_said():
    mailbox, delivered = Mailbox(), queue.Queue[Result]()
    worker = Worker(mailbox, delivered.put, QuickEngine)
    posted = [mailbox.post(FORWARD), mailbox.post(answers.trust_report().request)]
    worker.start()
    results = [delivered.get(timeout=10) for _ in range(3)]
    assert worker.stop(timeout=10)
    assert [getattr(result, "label", "answer") for result in results] == [STARTING, "answer", "answer"]
    assert [result.request for result in results] == [posted[0], *posted]


def test_progress_is_delivered_before_the_answer(open_desk):
    desk = open_desk(lambda: TalkingEngine("Reading", "Building"))
    posted = desk.mailbox.post(FORWARD)
    progress = [desk.next(), desk.next()]
    assert all(isinstance(p, Progress) and p.request == posted for p in progress)
    assert [(p.label, p.fraction) for p in progress if isinstance(p, Progress)] == [("Reading", 0), ("Building", 0.5)]
    assert isinstance(desk.next(), Failure)


def test_a_flood_of_the_same_report_is_thinned(open_desk, monkeypatch):
    monkeypatch.setattr(worker_module, "PROGRESS_SECONDS", 3600.0)
    desk = open_desk(lambda: TalkingEngine(*["Training"] * 1000, "Saving"))
    desk.mailbox.post(FORWARD)
    assert [getattr(desk.next(), "label", "answer") for _ in range(3)] == ["Training", "Saving", "answer"]


def test_stopping_in_the_middle_of_work_ends_the_thread(open_desk):
    engine = GatedEngine()
    desk = open_desk(lambda: engine)
    posted = desk.mailbox.post(FORWARD)
    engine.wait_until_working()
    assert desk.worker.stop(timeout=10)
    assert not desk.worker.is_alive()
    assert engine.cancelled == [posted]
    assert desk.delivered.empty()


def test_a_worker_that_never_started_is_stopped_at_once():
    assert Worker(Mailbox(), lambda result: None, QuickEngine).stop(timeout=0)


def test_torch_is_not_imported_until_the_engine_is_made():
    found = "'torch' in sys.modules or 'attention_models.engine.engine' in sys.modules"
    code = f"import sys, attention_explorer.compute.bridge; sys.exit({found})"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
