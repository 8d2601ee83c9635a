from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication, QThread

from attention_explorer.compute import bridge as bridge_module
from attention_explorer.compute.bridge import Bridge, connect
from attention_explorer.compute.worker import EngineLike
from attention_explorer.session.intents import OpenCheckpoint, SetText
from attention_explorer.session.session import Session
from attention_models.protocol.atlas import AtlasRequest
from attention_models.protocol.decoding import into_input
from attention_models.protocol.head import HeadRequest, HeadView
from attention_models.protocol.loading import Loaded, LoadRequest
from attention_models.protocol.request import Failure, Lane, Progress, Request, Result
from attention_models.protocol.running import ForwardRequest, Ran, RerunRequest, RunInputs
from attention_models.protocol.trust import TrustReport
from attention_models.protocol.values import SiteRef
from tests.explorer.compute.engines import GatedEngine, QuickEngine, Report, ShouldStop

MakeBridge = Callable[[Callable[[], EngineLike]], Bridge]


@pytest.fixture
def make_bridge(qapp) -> Iterator[MakeBridge]:
    bridges: list[Bridge] = []

    def make(engine_factory: Callable[[], EngineLike]) -> Bridge:
        bridges.append(Bridge(engine_factory))
        return bridges[-1]

    yield make
    for bridge in bridges:
        assert bridge.stop(timeout=10)


def arrivals(bridge: Bridge) -> list[Result]:
    results: list[Result] = []
    bridge.arrived.connect(results.append)
    return results


def busy_lanes(bridge: Bridge) -> list[set[Lane]]:
    told: list[set[Lane]] = []
    bridge.busy_changed.connect(lambda lanes: told.append(set(lanes)))
    return told


def head(number: int, layer: int = 0) -> HeadRequest:
    return HeadRequest(run=1, site=SiteRef("decoder", layer), head=number)


def test_an_answer_arrives_in_the_gui_thread(make_bridge, qtbot):
    bridge = make_bridge(QuickEngine)
    threads: list[QThread] = []
    bridge.arrived.connect(lambda _: threads.append(QThread.currentThread()))
    with qtbot.waitSignal(bridge.arrived) as blocker:
        bridge.post(ForwardRequest(inputs=RunInputs("a b")))
    assert isinstance(blocker.args[0], Ran)
    assert threads == [bridge.thread()]


def test_the_thread_starts_with_the_first_request(make_bridge, qtbot):
    made = threading.Event()

    def factory() -> EngineLike:
        made.set()
        return QuickEngine()

    bridge = make_bridge(factory)
    assert not made.is_set()
    with qtbot.waitSignal(bridge.arrived):
        bridge.post(head(0))
    assert made.is_set()


# --------------------------------------------------------------------------- five thousand requests


def test_five_thousand_one_after_another_all_arrive_in_order(make_bridge, qtbot):
    count = 5000
    bridge = make_bridge(QuickEngine)
    results = arrivals(bridge)
    bridge.arrived.connect(lambda _: bridge.post(head(len(results))) if len(results) < count else None)
    bridge.post(head(0))
    qtbot.waitUntil(lambda: len(results) == count, timeout=60_000)
    assert [view.request.head for view in results if isinstance(view, HeadView)] == list(range(count))
    for view in results:
        assert isinstance(view, HeadView)
        assert np.array_equal(view.weights, np.full((16, 16), view.request.ticket, np.float32))


def test_five_thousand_at_once_the_newest_of_each_lane_arrive_and_nothing_stale(make_bridge, qtbot):
    bridge = make_bridge(QuickEngine)
    results = arrivals(bridge)
    newest: dict[Lane, Request] = {}
    stale: list[Result] = []

    def check(result: Result) -> None:
        if result.request != newest[result.request.lane]:
            stale.append(result)

    bridge.arrived.connect(check)
    for number in range(5000):
        request = ForwardRequest(inputs=RunInputs(str(number))) if number % 3 == 0 else head(number)
        newest[request.lane] = request
        bridge.post(request)
        if number % 100 == 0:
            qtbot.waitUntil(lambda: not bridge.busy)
    qtbot.waitUntil(lambda: not bridge.busy)
    assert stale == []
    assert len(results) >= 50  # at least one each time that nothing more was asked
    for lane in newest:
        tickets = [result.request.ticket for result in results if result.request.lane == lane]
        assert all(a < b for a, b in pairwise(tickets))
    last_forward = [r for r in results if isinstance(r, Ran)][-1]
    last_head = [r for r in results if isinstance(r, HeadView)][-1]
    assert (last_forward.inputs.prompt, last_head.request.head) == ("4998", 4999)


def test_an_answer_under_way_when_a_newer_request_is_posted_is_dropped(make_bridge, qtbot):
    """The stale answer is already in the event queue, where the worker cannot call it back."""
    engine = GatedEngine()
    bridge = make_bridge(lambda: engine)
    results = arrivals(bridge)
    bridge.post(head(1))
    engine.wait_until_working()
    bridge.post(into_input(RunInputs("a")))
    engine.open_gate()
    engine.wait_until_working()  # on the step: the head's answer has left, and no event was processed here
    bridge.post(head(2))
    engine.open_gate()
    engine.open_gate()
    qtbot.waitUntil(lambda: not bridge.busy)
    assert [view.request.head for view in results if isinstance(view, HeadView)] == [2]


# --------------------------------------------------------------------------- busy


def test_busy_tells_which_lanes_wait_for_an_answer(make_bridge, qtbot):
    engine = GatedEngine()
    bridge = make_bridge(lambda: engine)
    told = busy_lanes(bridge)
    bridge.post(ForwardRequest(inputs=RunInputs("a")))
    bridge.post(ForwardRequest(inputs=RunInputs("b")))
    bridge.post(head(1))
    assert told == [{ForwardRequest.lane}, {ForwardRequest.lane, HeadRequest.lane}]
    engine.open_gate()
    engine.open_gate()
    qtbot.waitUntil(lambda: not bridge.busy)
    assert told[2:] == [{HeadRequest.lane}, set()]


def test_what_a_load_called_off_is_no_longer_busy(make_bridge, qtbot):
    engine = GatedEngine()
    bridge = make_bridge(lambda: engine)
    bridge.post(head(1))
    engine.wait_until_working()
    bridge.post(ForwardRequest(inputs=RunInputs("a")))
    bridge.post(LoadRequest(reference="b"))
    assert bridge.busy == {LoadRequest.lane}
    engine.wait_until_working()
    bridge.post(ForwardRequest(inputs=RunInputs("b")))
    bridge.post(LoadRequest(reference="b"))  # the very same: calls nothing off
    assert bridge.busy == {LoadRequest.lane, ForwardRequest.lane}
    results = arrivals(bridge)
    engine.open_gate()
    engine.open_gate()
    qtbot.waitUntil(lambda: not bridge.busy)
    assert [type(result) for result in results] == [Loaded, Ran]


def test_an_answer_that_asks_for_more_does_not_let_busy_flicker(make_bridge, qtbot):
    bridge = make_bridge(QuickEngine)
    told = busy_lanes(bridge)
    bridge.arrived.connect(
        lambda r: bridge.post(ForwardRequest(inputs=RunInputs("a"))) if isinstance(r, Loaded) else None
    )
    bridge.post(LoadRequest(reference="b"))
    qtbot.waitUntil(lambda: not bridge.busy)
    assert told == [{LoadRequest.lane}, {ForwardRequest.lane}, set()]


# --------------------------------------------------------------------------- progress


class ReportingEngine(GatedEngine):
    """Says at once what it does, and then nothing more until it ends."""

    def run(self, request: Request, should_stop: ShouldStop, report: Report) -> Result:
        report("Reading weights", 0.25)
        return super().run(request, should_stop, report)


def test_long_work_that_reported_once_shows_its_progress_after_the_patience(make_bridge, qtbot):
    engine = ReportingEngine()
    bridge = make_bridge(lambda: engine)
    with qtbot.waitSignal(bridge.arrived) as blocker:
        bridge.post(LoadRequest(reference="b"))
    progress = blocker.args[0]
    assert isinstance(progress, Progress)
    assert (progress.label, progress.fraction) == ("Reading weights", 0.25)  # the last word, not the first
    with qtbot.waitSignal(bridge.arrived) as blocker:
        engine.open_gate()
    assert isinstance(blocker.args[0], Loaded)


def test_short_work_shows_no_progress(make_bridge, qtbot, monkeypatch):
    monkeypatch.setattr(bridge_module, "PATIENCE_SECONDS", 3600.0)
    engine = ReportingEngine()
    bridge = make_bridge(lambda: engine)
    results = arrivals(bridge)
    engine.open_gate()
    bridge.post(LoadRequest(reference="b"))
    qtbot.waitUntil(lambda: not bridge.busy)
    assert [type(result) for result in results] == [Loaded]


def test_work_beyond_the_patience_shows_each_report_at_once(make_bridge, qtbot, monkeypatch):
    monkeypatch.setattr(bridge_module, "PATIENCE_SECONDS", 0.0)
    engine = ReportingEngine()
    bridge = make_bridge(lambda: engine)
    results = arrivals(bridge)
    engine.open_gate()
    bridge.post(LoadRequest(reference="b"))
    qtbot.waitUntil(lambda: not bridge.busy)
    labels = [result.label if isinstance(result, Progress) else "answer" for result in results]
    assert labels == ["Starting the engine", "Reading weights", "answer"]


def test_progress_of_work_that_was_called_off_never_shows(make_bridge, qtbot, monkeypatch):
    monkeypatch.setattr(bridge_module, "PATIENCE_SECONDS", 1.0)
    engine = ReportingEngine()
    bridge = make_bridge(lambda: engine)
    results = arrivals(bridge)
    bridge.post(ForwardRequest(inputs=RunInputs("a")))
    engine.wait_until_working()
    QCoreApplication.processEvents()  # its report is held back now
    bridge.post(LoadRequest(reference="b"))
    engine.wait_until_working()
    qtbot.waitUntil(lambda: bool(results))
    assert {result.request.lane for result in results} == {LoadRequest.lane}
    engine.open_gate()
    qtbot.waitUntil(lambda: not bridge.busy)


def test_work_that_is_called_off_ends_at_once_and_is_answered_by_nothing(make_bridge, qtbot):
    engine = GatedEngine()
    bridge, session = make_bridge(lambda: engine), Session()
    connect(session, bridge)
    results, told = arrivals(bridge), busy_lanes(bridge)
    session.request(head(1))
    engine.wait_until_working()
    session.call_off(HeadRequest.lane)
    assert told == [{HeadRequest.lane}, set()]
    session.request(head(2))
    engine.wait_until_working()  # the first has ended without its gate being opened
    engine.open_gate()
    qtbot.waitUntil(lambda: not bridge.busy)
    assert [result.request.head for result in results if isinstance(result, HeadView)] == [2]


# --------------------------------------------------------------------------- failures and stopping


def test_a_failure_arrives_like_any_answer(make_bridge, qtbot):
    bridge = make_bridge(QuickEngine)
    with qtbot.waitSignal(bridge.arrived) as blocker:
        bridge.post(AtlasRequest(run=1, size=8))  # this engine knows no atlas
    assert isinstance(blocker.args[0], Failure)
    assert "computing the thumbnails of all heads: NotImplementedError" in blocker.args[0].sentence


def test_stopping_in_the_middle_of_work_leaves_no_thread_and_no_answer(make_bridge, qtbot):
    engine = GatedEngine()
    bridge = make_bridge(lambda: engine)
    results = arrivals(bridge)
    before = threading.active_count()
    bridge.post(head(1))
    engine.wait_until_working()
    assert threading.active_count() == before + 1
    assert bridge.stop()
    assert threading.active_count() == before
    assert bridge.busy == frozenset()
    bridge.post(head(2))
    qtbot.wait(10)
    assert results == []
    assert bridge.busy == frozenset()


def test_stopping_gives_up_on_an_engine_that_does_not_listen(qapp):
    release = threading.Event()

    class Deaf(QuickEngine):
        def run(self, request: Request, should_stop: ShouldStop, report: Report) -> Result:
            release.wait(timeout=30)
            return super().run(request, should_stop, report)

    bridge = Bridge(Deaf)
    bridge.post(head(1))
    assert not bridge.stop(timeout=0.01)
    release.set()
    assert bridge.stop(timeout=10)


def test_a_bridge_that_was_never_used_stops_at_once(qapp):
    assert Bridge(QuickEngine).stop(timeout=0)


# --------------------------------------------------------------------------- session and bridge together


@pytest.fixture
def session(make_bridge) -> Session:
    session = Session()
    bridge = make_bridge(QuickEngine)
    connect(session, bridge)
    session.start()
    return session


def settled(session: Session) -> Callable[[], bool]:
    return lambda: session.state.up_to_date and not session.live.busy and session.state.loading is None


def test_a_session_starts_by_itself(session, qtbot):
    qtbot.waitUntil(settled(session))
    assert session.state.document.text == "The example of story-gpt"
    assert session.state.site is not None
    assert session.state.results.of(TrustReport) is not None


def test_fast_typing_ends_with_the_last_text(session, qtbot):
    qtbot.waitUntil(settled(session))
    for number in range(300):
        session.dispatch(SetText("word " * (number % 40 + 1)))
        if number % 20 == 0:
            qtbot.wait(0)
    qtbot.waitUntil(settled(session))
    assert session.state.ran is not None
    assert session.state.ran.inputs.prompt == session.state.document.text == "word " * 20
    assert session.state.selection.query == 19


def test_switching_back_and_forth_while_typing_ends_with_the_right_model_and_text(session, qtbot):
    """What ran last ran on the checkpoint that is shown, whatever was in flight meanwhile."""
    for number in range(60):
        session.dispatch(OpenCheckpoint(("story-bert", "story-gpt", "en-es")[number % 3]))
        session.dispatch(SetText(f"text {number}"))
        if number % 7 == 0:
            qtbot.wait(0)
    qtbot.waitUntil(settled(session))
    state = session.state
    assert state.results.loaded is not None
    assert state.results.loaded.info.reference == state.document.checkpoint == "en-es"
    assert state.ran is not None
    assert state.ran.inputs.prompt == "text 59"


def test_where_a_lane_finishes_every_step_under_way_arrives_and_its_views_before_the_next(make_bridge, qtbot):
    engine = GatedEngine()
    bridge = make_bridge(lambda: engine)
    results = arrivals(bridge)
    bridge.arrived.connect(lambda r: bridge.post(head(r.run)) if isinstance(r, Ran) else None)
    bridge.post(RerunRequest(inputs=RunInputs("1")))
    engine.wait_until_working()
    for text in ("2", "3"):
        bridge.post(RerunRequest(inputs=RunInputs(text)))
    assert bridge.busy == {ForwardRequest.lane}
    for _ in range(4):
        engine.open_gate()
    qtbot.waitUntil(lambda: not bridge.busy)
    assert engine.cancelled == []
    kinds = [r.inputs.prompt if isinstance(r, Ran) else "head" for r in results if isinstance(r, (Ran, HeadView))]
    assert kinds == ["1", "head", "3", "head"]
