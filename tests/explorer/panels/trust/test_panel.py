"""The trust strip: what it says for each thing that can be true."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt

from attention_explorer.panels.trust.panel import TrustStrip
from attention_explorer.session.intents import Busy
from attention_explorer.session.state import State
from attention_models.protocol.atlas import THUMBNAIL, AtlasRequest, EmptyRow
from attention_models.protocol.trust import AloneReport, InputReport, TrustRequest
from attention_models.protocol.values import SiteRef
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown

ROWS = AtlasRequest(run=1, size=THUMBNAIL)


@pytest.fixture
def session() -> SilentSession:
    return SilentSession(State())


@pytest.fixture
def strip(qtbot, session) -> TrustStrip:
    return shown(qtbot, TrustStrip, session)


def test_before_anything_is_known_nothing_is_claimed(strip):
    assert [chip.kind for chip in (strip.mode, strip.rows, strip.equal)] == ["pending"] * 3
    assert strip.mode.text == "… no model yet"


def test_what_holds_is_said_with_its_numbers_in_the_tooltip(strip, session):
    session.arrive(answers.loaded(), answers.ran(), replace(answers.atlas_view(), row_error=2.4e-7))
    session.arrive(replace(answers.trust_report(), weight_difference=1.2e-7, logit_difference=3e-8))
    assert strip.mode.text == "✓ eval mode"
    assert strip.rows.text == "✓ rows sum to 1"
    assert "2.4e-07" in strip.rows.toolTip()
    assert strip.equal.text == "✓ equals the model (1e-07)"
    assert "1.2e-07" in strip.equal.toolTip()
    assert "3.0e-08" in strip.equal.toolTip()


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (AloneReport(2e-7, 5e-7, 1e-5), "✓ as if alone"),
        (AloneReport(0.547, 0.1, 1e-5), "✕ differs from the text alone (0.5)"),
        (AloneReport(0.002, 0.01, None), "… beside the text alone"),
    ],
)
def test_a_text_of_a_batch_is_held_against_the_text_alone(strip, session, found, text):
    session.arrive(answers.loaded(), answers.ran())
    assert not strip.alone.isVisible()
    session.arrive(replace(answers.trust_report(), alone=found))
    assert strip.alone.isVisible()
    assert strip.alone.text == text
    assert f"{found.weight_difference:.1e}" in strip.alone.toolTip()
    session.arrive(answers.trust_report())
    assert not strip.alone.isVisible()


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (InputReport("Asked again, it gives the same.", equal=True), "✓ ids"),
        (InputReport("Token 3 was run as 7.", equal=False), "✕ wrong ids"),
        (InputReport("The ids were given as they are."), "– ids as given"),
        (InputReport("They begin with <s> twice.", equal=True, starts_twice=True), "! starts twice"),
    ],
)
def test_where_the_ids_come_from_is_said(strip, session, found, text):
    session.arrive(answers.loaded(), answers.ran())
    assert not strip.ids.isVisible()
    session.arrive(replace(answers.trust_report(), input=found))
    assert strip.ids.isVisible()
    assert strip.ids.text == text
    assert strip.ids.toolTip() == found.story
    assert strip.equal.text == "✓ equals the model (exactly)"  # on those ids
    session.arrive(replace(answers.trust_report(), input_difference=0.0))
    assert not strip.ids.isVisible()


def test_no_difference_at_all_is_said(strip, session):
    session.arrive(answers.loaded(), answers.ran(), answers.trust_report())
    assert strip.equal.text == "✓ equals the model (exactly)"


def test_what_does_not_hold_is_said(strip, session):
    session.arrive(replace(answers.loaded(), eval_mode=False), answers.ran())
    session.arrive(replace(answers.atlas_view(), row_error=0.02))
    session.arrive(replace(answers.trust_report(), weight_difference=0.5))
    assert strip.mode.text == "✕ train mode"
    assert strip.rows.text == "✕ rows miss 1 by 2e-02"
    assert strip.equal.text == "✕ differs from the model (5e-01)"


def test_another_picture_than_its_processor_makes_is_said(strip, session):
    session.arrive(answers.loaded(), answers.ran(), replace(answers.trust_report(), input_difference=0.0))
    assert strip.equal.kind == "ok"
    assert "differ from those of this run by at most 0.0e+00" in strip.equal.toolTip()
    session.arrive(replace(answers.trust_report(), input_difference=1.3))
    assert strip.equal.text == "✕ not the picture as the model reads it"
    assert "1.3e+00" in strip.equal.toolTip()


def test_what_sinks_take_is_said(strip, session):
    session.arrive(answers.loaded(), answers.ran(), replace(answers.atlas_view(), sink_shares=(0.031, 0.52)))
    assert strip.rows.text == "✓ rows and sinks sum to 1"
    assert "3.1% to 52.0% of a row" in strip.rows.toolTip()
    session.arrive(replace(answers.atlas_view(), sink_shares=(0.031, 0.52), row_error=0.02))
    assert strip.rows.text == "✕ rows miss 1 by 2e-02"


def test_rows_to_which_nothing_is_visible_are_named(strip, session):
    empty = EmptyRow(SiteRef("decoder", 1), 3, 2)
    session.arrive(answers.loaded(), answers.ran())
    session.arrive(replace(answers.atlas_view(), empty_rows=4, first_empty=empty))
    assert strip.rows.text == "! 4 rows sum to 0"
    word = session.state.ran.tokens[2].word
    assert f"“{word}” (position 2) in decoder layer 1, head 3" in strip.rows.toolTip()
    session.arrive(replace(answers.atlas_view(), empty_rows=1, first_empty=empty))
    assert strip.rows.text == "! 1 row sums to 0"


def test_sums_of_another_run_are_not_claimed_for_this_one(strip, session):
    session.arrive(answers.loaded(), answers.ran(), answers.atlas_view(), answers.ran(run=2))
    assert strip.rows.kind == "pending"
    assert strip.equal.kind == "pending"


def test_a_click_measures_now(strip, session, qtbot):
    session.arrive(answers.loaded(), answers.ran())
    session.asked.clear()
    qtbot.mouseClick(strip.equal, Qt.MouseButton.LeftButton)
    assert session.asked == [TrustRequest(run=1)]
    session.dispatch(Busy(frozenset({TrustRequest.lane})))
    assert strip.equal.text == "… comparing with the model"


def test_before_a_run_a_click_asks_nothing(strip, session, qtbot):
    qtbot.mouseClick(strip.equal, Qt.MouseButton.LeftButton)
    assert session.asked == []


def test_a_run_that_stays_is_compared_by_itself_once(strip, session, qtbot):
    session.arrive(answers.loaded(), answers.ran(), answers.trust_report(), answers.ran(run=2))
    session.asked.clear()
    qtbot.waitUntil(lambda: session.asked == [TrustRequest(run=2)])


def test_where_no_panel_draws_the_heads_it_has_the_rows_summed_itself(strip, session):
    session.arrive(answers.loaded(), answers.ran())
    session.asked.clear()
    session.arrive(answers.trust_report())
    assert session.asked == [ROWS]
    session.arrive(answers.atlas_view())
    assert strip.rows.text == "✓ rows sum to 1"
    assert session.asked == [ROWS]


def test_the_rows_of_every_run_are_summed_not_of_the_first_alone(strip, session):
    session.arrive(answers.loaded(), answers.ran(), answers.trust_report(), answers.atlas_view(), answers.ran(run=2))
    assert strip.rows.text == "… rows to sum"
    session.asked.clear()
    session.arrive(replace(answers.trust_report(), request=TrustRequest(run=2)))
    second = replace(ROWS, run=2)
    assert session.asked == [second]
    session.arrive(replace(answers.atlas_view(), request=second, done=0.5))  # the rest of it too
    assert session.asked == [second, replace(second, have=0.5)]
    session.arrive(replace(answers.atlas_view(), request=replace(second, have=0.5)))
    assert strip.rows.text == "✓ rows sum to 1"
    assert len(session.asked) == 2


def test_a_long_run_is_compared_only_when_asked(strip, session, qtbot):
    long_text = " ".join(["word"] * 300)
    session.arrive(answers.loaded(), answers.ran(), answers.trust_report(), answers.ran(run=2, text=long_text))
    session.asked.clear()
    qtbot.wait(900)
    assert session.asked == []
    assert (strip.rows.text, strip.equal.text) == ("– rows to sum", "– compare with the model")  # nothing is at work
    assert strip.rows.accessibleName() == "rows to sum: not measured"


def test_a_textbook_model_is_held_against_its_formulas(strip, session, qtbot):
    loaded = answers.loaded()
    ran = replace(answers.ran(), sites=())
    session.arrive(replace(loaded, info=replace(loaded.info, textbook=True)), ran)
    assert strip.rows.text == "– no rows to sum"
    assert strip.equal.text == "… textbook model"
    assert "this program's own function" in strip.equal.toolTip()
    session.asked.clear()
    qtbot.mouseClick(strip.equal, Qt.MouseButton.LeftButton)
    assert session.asked == [TrustRequest(run=1)]
    session.arrive(replace(answers.trust_report(), weight_difference=4e-7))
    assert strip.equal.text == "✓ equals the formulas (4e-07)"
    session.arrive(replace(answers.trust_report(), logit_difference=0.5))
    assert strip.equal.text == "✕ differs from the formulas (5e-01)"
    session.dispatch(Busy(frozenset({TrustRequest.lane})))
    assert strip.equal.text == "… comparing with the formulas"


# --------------------------------------------------------------------------- a model that gives its weights alone


@pytest.fixture
def given(strip, session):
    loaded = answers.loaded()
    info = replace(loaded.info, weights_only="It gives its weights alone.")
    session.arrive(replace(loaded, info=info), answers.ran())
    return strip


def test_given_weights_are_the_models_own(given, session):
    assert given.equal.kind == "pending"
    assert given.equal.text == "… the model's own weights"
    assert "output_attentions" in given.equal.toolTip()
    session.arrive(replace(answers.trust_report(), weight_difference=0.0, logit_difference=3e-8))
    assert given.equal.text == "✓ the model's own weights"
    assert "differ by at most 3.0e-08" in given.equal.toolTip()


def test_given_weights_that_come_out_otherwise(given, session):
    session.arrive(replace(answers.trust_report(), weight_difference=0.5))
    assert given.equal.text == "✕ the model's answers differ"
    assert "differ by 5.0e-01" in given.equal.toolTip()


def test_given_weights_are_asked_for_again(given, session):
    session.dispatch(Busy(frozenset({TrustRequest.lane})))
    assert given.equal.text == "… asking the model again"


def test_of_a_long_text_it_says_on_how_many_rows(strip, session):
    session.arrive(answers.loaded(), answers.ran(), replace(answers.atlas_view(), done=0.5))
    assert strip.rows.kind == "pending"  # not every row was summed yet
    session.arrive(answers.atlas_view(), replace(answers.trust_report(), rows=64))
    assert strip.rows.text == "✓ rows sum to 1"
    assert "on 64 rows of every head spread over this long text" in strip.equal.toolTip()


# --------------------------------------------------------------------------- half precision


@pytest.fixture(params=["bfloat16", "float16"])
def dtype(request, strip, session) -> str:
    session.arrive(replace(answers.loaded(), dtype=request.param), answers.ran())
    return str(request.param)


def half(rounding: float, weights: float = 0.0):
    return replace(answers.trust_report(), rounding=rounding, weight_difference=weights, logit_tolerance=1e-2)


def test_in_half_precision_rounding_is_named(strip, session, dtype):
    session.arrive(half(0.634, 1.2e-7))
    assert strip.equal.text == f"✓ equals the model to {dtype} rounding"
    tip = strip.equal.toolTip()
    assert "given the queries and keys of this run" in tip
    assert "In float32 its weights differ by at most 1.2e-07; 1e-05 is allowed" in tip
    step = {"bfloat16": "4e-03", "float16": "5e-04"}[dtype]
    assert f"In {dtype} its weights, and what this run went on with, are off by 63% of what" in tip
    assert f"rounding each step by up to {step} of its size explains" in tip


def test_in_half_precision_more_than_rounding_is_an_error(strip, session, dtype):
    session.arrive(half(12.34))
    assert strip.equal.text == "✕ differs from the model (12.3 × rounding)"
    session.arrive(half(0.5, 3e-4))
    assert strip.equal.text == "✕ differs from the model (3e-04)"
    session.arrive(half(float("inf"), float("inf")))
    assert strip.equal.text == "✕ differs from the model (inf)"


def test_in_half_precision_a_long_text_says_on_how_many_rows(strip, session, dtype):
    session.arrive(replace(half(0.5), rows=64))
    assert "on 64 rows of every head spread over this long text" in strip.equal.toolTip()


def test_what_rounding_adds_up_to_in_float32_is_said(strip, session):
    session.arrive(answers.loaded(), answers.ran(), replace(half(0.2), end_to_end=4.4e-5))
    assert strip.equal.text == "✓ equals the model to float32 rounding"
    tip = strip.equal.toolTip()
    assert "From end to end rounding adds up to 4.4e-05" in tip
    assert "6e-08 of its size" in tip
