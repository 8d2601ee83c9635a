"""What changed in a long text: pictures and numbers against float64 arithmetic on the whole weights of two runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import attention_models as models
from attention_models.attention.incremental import BlockSize
from attention_models.engine.engine import Engine
from attention_models.forward import current_run
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.comparison import CompareRequest, CompareView
from attention_models.protocol.interventions import Intervention, Mask, Scale
from attention_models.protocol.request import Cancelled
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.values import SiteRef
from attention_models.views import comparison, long_comparison
from attention_models.views.comparison import compare, peeks
from attention_models.views.long_comparison import LongComparison
from tests.models.asking import ask
from tests.models.tiny import text_of

SITE, HEAD, TOKENS = SiteRef("decoder", 5), 5, 301  # squares of 2 x 2, and a last one of a single row and key
REQUEST = CompareRequest(run=1, site=SITE, head=HEAD, position=200)
EDITS: dict[str, tuple[Intervention, ...]] = {
    "scale": (Scale(0.4, site=SITE, head=HEAD),),
    "window": (Mask("window", window=9),),
    "open": (Mask("none", site=SITE),),
    "dead": (Mask("painted", cells=tuple((3, key, False) for key in range(4)), site=SITE, head=HEAD),),
}


@pytest.fixture(scope="module")
def text(story_gpt: Model) -> str:
    return text_of(story_gpt, TOKENS)


@pytest.fixture(scope="module")
def before(story_gpt: Model, text: str) -> Trace:
    return models.run(story_gpt, text)


@pytest.fixture(params=EDITS)
def after(request: pytest.FixtureRequest, story_gpt: Model, text: str) -> Trace:
    return models.run(story_gpt, text, interventions=EDITS[request.param])


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks of rows, the last of them smaller."""
    monkeypatch.setattr(long_comparison, "_BLOCK", BlockSize(40 * TOKENS))


def pooled(values: np.ndarray, how: Callable[[np.ndarray], float]) -> np.ndarray:
    """(down, across) of squares of 2 x 2, each by itself."""
    side = -(-len(values) // 2)
    return np.array(
        [[how(values[2 * i : 2 * i + 2, 2 * j : 2 * j + 2]) for j in range(side)] for i in range(side)], np.float64
    )


def furthest(square: np.ndarray) -> float:
    high, low = float(square.max()), float(square.min())
    return high if high >= -low else low


@pytest.mark.short("scale", "open")
def test_pictures_and_rows_are_those_of_whole_weights(story_gpt: Model, before: Trace, after: Trace) -> None:
    view = LongComparison(story_gpt, before, after).answer(REQUEST)
    whole = [trace.weights(SITE, HEAD).astype(np.float64) for trace in (before, after)]
    for w, trace, picture, masked, bits, top, key in (
        (whole[0], before, view.before, view.masked_before, view.entropy_before, view.top_before, view.top_key_before),
        (whole[1], after, view.after, view.masked_after, view.entropy_after, view.top_after, view.top_key_after),
    ):
        np.testing.assert_allclose(picture, pooled(w, np.max), atol=1e-6)
        shut = trace.masked(SITE, HEAD)
        hidden = pooled(np.zeros(w.shape, bool) if shut is None else shut, np.all)
        np.testing.assert_array_equal(masked, hidden)
        np.testing.assert_allclose(bits, -(w * np.log2(np.where(w > 0, w, 1))).sum(axis=1), atol=1e-5)
        np.testing.assert_allclose(top, w.max(axis=1), atol=1e-6)
        np.testing.assert_allclose(w[np.arange(TOKENS), key], w.max(axis=1), atol=1e-6)
    np.testing.assert_allclose(view.difference, pooled(whole[1] - whole[0], furthest), atol=1e-6)
    assert view.largest_difference == pytest.approx(np.abs(whole[1] - whole[0]).max(), abs=1e-6)
    assert (view.cell, view.done, view.difference.shape) == (2, 1.0, (151, 151))
    assert not view.difference.flags.writeable


def test_all_else_is_as_of_a_text_that_is_held_whole(story_gpt: Model, before: Trace, after: Trace) -> None:
    view = LongComparison(story_gpt, before, after).answer(REQUEST)
    whole = compare(REQUEST, story_gpt, before, after)
    for name in ("head_dim", "scale", "factor", "token_changes", "peeks", "dead_rows", "loss_before", "loss_after"):
        assert getattr(view, name) == getattr(whole, name), name
    assert view.prediction_after == whole.prediction_after
    assert whole.masked_before is not None
    np.testing.assert_array_equal(whole.top_after, whole.after.max(axis=1))


@pytest.mark.parametrize(("kind", "found"), [("none", True), ("causal", False)])
def test_a_look_ahead_is_found_in_whichever_rows_it_is(
    story_gpt: Model, text: str, before: Trace, kind: str, found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "_MASK_BLOCK", 8 * TOKENS * 10)  # ten rows at once
    assert peeks(before, models.run(story_gpt, text, interventions=[Mask(kind, site=SITE, head=7)])) is found
    late = Mask("painted", cells=((290, 300, True),), site=SITE, head=7)
    assert peeks(before, models.run(story_gpt, text, interventions=[late]))


def test_it_comes_in_parts_and_says_how_far_it_is(story_gpt: Model, before: Trace, text: str) -> None:
    after = models.run(story_gpt, text, interventions=EDITS["open"])
    whole = LongComparison(story_gpt, before, after).answer(REQUEST)
    parts = LongComparison(story_gpt, before, after)
    view = parts.answer(REQUEST, 1)
    assert 0 < view.done < 1
    assert np.isnan(view.difference[20:]).all()
    np.testing.assert_array_equal(view.difference[:20], whole.difference[:20])
    assert not np.isnan(view.entropy_after[:40]).any()
    assert np.isnan(view.entropy_after[40:]).all()
    assert view.loss_after is not None
    assert np.isnan(view.loss_after)
    shares = [view.done]
    while view.done < 1:
        view = parts.answer(REQUEST, 1)
        shares.append(view.done)
    assert shares == sorted(set(shares))
    np.testing.assert_array_equal(view.difference, whole.difference)
    assert (view.loss_before, view.loss_after, view.peeks) == (whole.loss_before, whole.loss_after, True)


def test_it_stops_between_blocks_and_goes_on(story_gpt: Model, before: Trace) -> None:
    parts = LongComparison(story_gpt, before, before)
    with pytest.raises(Cancelled):
        parts.answer(REQUEST, should_stop=lambda: True)
    view = parts.answer(REQUEST)
    assert view.done == 1
    np.testing.assert_array_equal(view.before, view.after)
    assert view.largest_difference == 0
    assert view.loss_before == view.loss_after


def test_another_head_costs_no_second_loss(story_gpt: Model, before: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = LongComparison(story_gpt, before, before)
    first = parts.answer(REQUEST)
    monkeypatch.setattr(
        "attention_models.views.comparison.F.cross_entropy", lambda *_, **__: pytest.fail("computed again")
    )
    other = parts.answer(CompareRequest(run=1, site=SITE, head=2, position=3))
    assert other.loss_before == first.loss_before
    np.testing.assert_allclose(other.before, pooled(before.weights(SITE, 2), np.max), atol=1e-6)


def long_site(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attention_models.protocol.values.LARGEST_WHOLE", 16)


def test_the_engine_answers_in_moments_and_keeps_the_run_that_nothing_changed(
    gpt: Engine, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_site(monkeypatch)
    monkeypatch.setitem(current_run.WORK_PER_ANSWER, "cpu", 1)

    def whole(run: int) -> CompareView:
        view: CompareView | None = None
        while view is None or view.done < 1:
            have = 0.0 if view is None else view.done
            answer = ask(gpt, CompareRequest(run=run, site=SITE, head=HEAD, position=9, have=have))
            assert isinstance(answer, CompareView)
            assert answer.done > have
            view = answer
        return view

    assert isinstance(ask(gpt, ForwardRequest(inputs=RunInputs(text), ticket=81)), Ran)
    plain = whole(81)
    monkeypatch.setattr(current_run, "run_each", lambda *_, **__: pytest.fail("the untouched run is known"))
    for ticket, factor in ((82, 0.5), (83, 0.25)):
        edited = ForwardRequest(
            inputs=RunInputs(text, interventions=(Scale(factor, site=SITE, head=HEAD),)), ticket=ticket
        )
        assert isinstance(ask(gpt, edited), Ran)
        view = whole(ticket)
        np.testing.assert_array_equal(view.before, plain.before)
        assert view.loss_before == plain.loss_before
        assert view.factor == factor
        assert view.largest_difference > 0
