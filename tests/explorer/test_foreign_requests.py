"""A request of another package goes the way of ours: to the engine, back through the bridge, into the state."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from attention_explorer.compute.bridge import Bridge, connect
from attention_explorer.session.intents import OpenCheckpoint, SelectQuery, SetText
from attention_explorer.session.session import Session
from attention_explorer.session.state import Document, State
from attention_models import open_checkpoint, run
from attention_models.engine.engine import Engine
from attention_models.protocol.request import Failure
from attention_models.protocol.values import SiteRef
from tests.explorer.foreign import ClockRequest, ClockView, EntropyRequest, EntropyView
from tests.explorer.real_window import wait_until
from tests.explorer.session import answers
from tests.models.asking import ask, forward, opened

TEXT = "Tom and Anna went to the park."
SITE = SiteRef("decoder", 5)


def test_the_engine_answers_it() -> None:
    engine = opened("story-gpt")
    forward(engine, TEXT, ticket=2)
    view = ask(engine, EntropyRequest(run=2, site=SITE, head=5))
    assert isinstance(view, EntropyView)
    weights = run(open_checkpoint("story-gpt"), TEXT).weights(SITE, 5)
    expected = [sum(-w * math.log2(w) for w in map(float, row) if w > 0) for row in weights]
    np.testing.assert_allclose(view.bits, expected, atol=1e-6)
    stale = ask(engine, EntropyRequest(run=1, site=SITE, head=5))
    assert isinstance(stale, Failure)
    assert stale.stale


def test_what_its_function_keeps_lasts_from_one_request_to_the_next() -> None:
    engine = Engine()
    views = [ask(engine, ClockRequest()) for _ in range(3)]
    assert [view.times for view in views if isinstance(view, ClockView)] == [1, 2, 3]


@pytest.fixture
def session():
    made = Session(State(Document(text=TEXT)))
    bridge = Bridge()
    connect(made, bridge)
    made.start()
    yield made
    assert bridge.stop(60)


@pytest.mark.full
def test_it_comes_through_the_bridge_and_stands_in_the_state(session, qtbot):
    wait_until(lambda: session.state.up_to_date)
    request = EntropyRequest(run=session.state.ran.run, site=SITE, head=5)
    session.request(request)
    session.request(ClockRequest())
    wait_until(lambda: session.state.results.of(ClockView) is not None)
    view = session.state.results.of(EntropyView)
    assert view is not None
    assert view.request == request
    assert view.bits.shape == (len(session.state.ran.tokens),)
    session.dispatch(SelectQuery(2))
    session.undo()
    assert session.state.results.of(EntropyView) is view  # undo walks through documents
    session.dispatch(SetText("Anna went"))
    wait_until(lambda: session.state.up_to_date)
    session.request(replace(request, run=request.run))  # of the run before: nobody hears of it
    wait_until(lambda: not session.live.busy)
    assert session.state.notice is None
    assert session.state.results.of(EntropyView) is view  # the last one stays until the new one is here
    session.dispatch(OpenCheckpoint("story-bert"))
    wait_until(lambda: session.state.loading is None)
    assert session.state.results.of(EntropyView) is None
    assert session.state.results.of(ClockView) is not None  # it holds whatever model is open


def test_of_another_run_it_is_ignored():
    running = answers.after(State(), answers.loaded(), answers.ran())
    request = EntropyRequest(run=1, site=SITE, head=0)
    mine, others = (EntropyView(request=replace(request, run=run), bits=np.zeros(4)) for run in (1, 7))
    assert answers.after(running, others) is running
    assert answers.after(running, mine).results.of(EntropyView) is mine


def test_a_failure_says_what_was_being_done(session, qtbot):
    wait_until(lambda: session.state.up_to_date)
    session.request(EntropyRequest(run=session.state.ran.run, site=SITE, head=99))
    wait_until(lambda: session.state.notice is not None)
    assert "while measuring the entropy of the head" in session.state.notice.text
