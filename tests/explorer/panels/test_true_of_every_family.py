"""Sentences that were true of one family of models only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from attention_explorer.panels.all_heads.panel import about as about_heads
from attention_explorer.panels.effects.pages import lens_sentence
from attention_explorer.panels.effects.panel import EffectsPanel
from attention_explorer.panels.lookup.panel import of_head
from attention_explorer.panels.masks.effect import prediction_title
from attention_explorer.session.effects_choices import EffectsChoices
from attention_explorer.session.intents import AskEffects
from attention_explorer.session.state import Document, State
from attention_models.protocol.effects import EffectsRequest, LensRequest, LensView, Metric
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown


def test_a_model_that_fills_in_says_what_stands_at_a_place() -> None:
    ran = answers.ran()
    assert prediction_title(ran, 1) == "Next token after “and”"
    assert prediction_title(ran, 1, fills_in=True) == "Token at “and”"


def test_a_row_beside_a_sink_sums_to_less() -> None:
    assert "are shares of 1, over 3 of 4 tokens" in of_head("x", 3, 4, 1.0).sentences[-1]
    assert "sum to 0.250 (the rest is a sink's), over 4 tokens" in of_head("x", 4, 4, 0.25).sentences[-1]
    assert of_head("x", 0, 4, 0.0).sentences[-1] == "x"


@pytest.mark.parametrize(
    ("stack", "said"), [("decoder", "a token's own place"), ("cross", "source and target in step")]
)
def test_a_diagonal_of_cross_attention_is_no_token_that_looks_at_itself(stack: str, said: str) -> None:
    ran = answers.ran(stack=stack)
    view = replace(answers.atlas_view(), images=np.full((8, 8, 4, 4), 0.25, np.float32))
    state = answers.after(State(), answers.loaded(), ran, view)
    assert said in " ".join(about_heads(state, stack).sentences)


def test_a_stream_that_shrinks_does_not_grow() -> None:
    ids = np.zeros((2, 4), np.int64)
    one = np.ones((2, 4), np.float32)
    norms = np.array([[9.0] * 4, [3.0] * 4], np.float32)
    view = LensView(
        request=LensRequest(run=1),
        norms=norms,
        written=one[:1],
        best=ids,
        best_share=one,
        entropy=one,
        targets=ids[0],
        target_share=one,
        target_rank=ids + 1,
        labels={0: "x"},
    )
    assert "goes from 9.000 to 3.000" in lens_sentence(view, answers.ran(), 1)


@pytest.mark.parametrize(("family", "offered"), [("causal", True), ("masked", False), ("vision", False)])
def test_a_loss_is_offered_of_models_that_go_on_with_a_text(qtbot, family, offered) -> None:
    loaded = answers.loaded()
    loaded = replace(loaded, info=replace(loaded.info, family=family))
    session = SilentSession(answers.after(State(Document("story-gpt")), loaded, answers.ran()))
    panel = shown(qtbot, EffectsPanel, session)
    session.dispatch(AskEffects(EffectsChoices(loss=True)))
    asked = session.asked[-1]
    assert isinstance(asked, EffectsRequest)
    assert asked.aim.measure == ("loss" if offered else Metric().measure)
    assert panel.controls.loss.isVisible() is offered
