"""What the engine answers to a `VarianceRequest`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attention_models.engine.engine import Engine
from attention_models.protocol.request import Cancelled, Failure
from attention_models.protocol.values import SiteRef
from attention_models.protocol.variance import VarianceRequest, VarianceView
from attention_models.views.variance import measure
from tests.models.asking import ask, failure_of, forward, opened

SITE = SiteRef("decoder", 5)


def request(**changes: object) -> VarianceRequest:
    numbers = {"batch": 4, "tokens": 8, "deviation": 1.0, "seed": 1, "ticket": 9, **changes}
    return VarianceRequest(**numbers)  # type: ignore[arg-type]


def view_of(engine: Engine, asked: VarianceRequest) -> VarianceView:
    view = ask(engine, asked)
    assert isinstance(view, VarianceView), view
    return view


def test_random_vectors_need_no_model():
    view = view_of(Engine(), request())
    assert view.head is None
    assert view.request.run is None
    np.testing.assert_array_equal(view.experiment.variance, measure(4, 8, 1.0, 1).variance)


def test_a_head_is_measured_and_another_head_needs_no_other_draw():
    engine = opened("story-gpt")
    ran = forward(engine, "Tom and Anna went to the park.")
    first = view_of(engine, request(run=ran.run, site=SITE, head=5))
    second = view_of(engine, request(run=ran.run, site=SITE, head=4))
    assert first.head is not None
    assert second.head is not None
    tokens = len(ran.tokens)
    assert first.head.cells == tokens * (tokens + 1) // 2
    assert first.head.scale == pytest.approx(1 / math.sqrt(first.head.head_dim))
    assert first.head.variance != second.head.variance
    assert second.experiment is first.experiment
    assert view_of(engine, request(seed=2)).experiment is not first.experiment


def test_too_much_is_refused_with_a_sentence():
    failure = failure_of(Engine(), request(batch=4096, tokens=4096))
    assert "at most 16,384" in failure.sentence
    assert failure.cause == ""


def test_a_run_that_is_gone_is_stale():
    failure = ask(Engine(), request(run=3, site=SITE))
    assert isinstance(failure, Failure)
    assert failure.stale


def test_it_can_be_called_off():
    with pytest.raises(Cancelled):
        ask(Engine(), request(), should_stop=lambda: True)
