"""Writing with interventions in the Decode panel."""

from __future__ import annotations

from attention_explorer.panels.decoding.player_view import ATTENTION, CACHE
from attention_explorer.session.intents import (
    Arrived,
    Busy,
    PutIntervention,
)
from attention_models.protocol.decoding import DecodeStepRequest
from attention_models.protocol.interventions import Mask, Scale
from attention_models.protocol.running import ForwardRequest, RunInputs
from attention_models.protocol.values import SiteRef
from tests.explorer.panels.decoding.answered import LEFT, TEXT, press, shown_rows, steps, words
from tests.models.asking import ask


def edit(session, *interventions) -> None:
    for intervention in interventions:
        session.dispatch(PutIntervention(intervention))
    session.run(
        ForwardRequest(inputs=RunInputs(TEXT, interventions=session.state.document.inputs.interventions), ticket=50)
    )


def test_it_writes_with_the_interventions_that_are_on_and_keeps_both_trees(qtbot, session, panel):
    steps(qtbot, session, panel, 3)
    plain = words(panel)
    edit(session, Scale(0.0), Mask("window", window=3))
    assert words(panel) == ""
    steps(qtbot, session, panel, 3)
    edited = words(panel)
    assert edited != plain
    press(qtbot, session, panel.view.tabs.button(ATTENTION))
    shown_rows(session, panel.player.branches.ids())
    session.undo()  # the third step
    assert len(panel.player.branches.path()) == 2
    edit(session, Scale(1.0), Mask("trained"))
    assert words(panel) == plain


def test_a_mask_that_opens_the_future_is_honoured_and_its_price_is_said(qtbot, session, panel):
    edit(session, Mask("full"))
    steps(qtbot, session, panel, 2)
    assert "each step reads the whole text again" in panel.view.status.text()
    press(qtbot, session, panel.view.tabs.button(ATTENTION))
    shown_rows(session, panel.player.branches.ids())
    press(qtbot, session, panel.view.tabs.button(CACHE))
    assert panel.view.cache.bars.bars == ()


def test_an_intervention_that_this_model_can_not_take_is_a_sentence(qtbot, session, panel):
    session.dispatch(PutIntervention(Scale(0.5, SiteRef("decoder", 70))))
    qtbot.mouseClick(panel.view.transport.step_button, LEFT)
    session.dispatch(Busy(frozenset({DecodeStepRequest.lane})))
    request = next(r for r in session.asked if isinstance(r, DecodeStepRequest))
    session.dispatch(Arrived(ask(session.engine, request)))
    session.dispatch(Busy(frozenset()))
    assert "this model has no such layer" in panel.view.status.text()
