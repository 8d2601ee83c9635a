"""Interventions in the session: knobs, strokes, the list, undo, and the run that follows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attention_explorer.session.intents import (
    ClearInterventions,
    OpenCheckpoint,
    PaintCells,
    PutIntervention,
    RemoveIntervention,
    SelectHead,
    SetText,
    SetView,
    SwitchIntervention,
)
from attention_explorer.session.session import Session, effects
from attention_explorer.session.state import InterventionItem, State
from attention_models.protocol.interventions import Adapter, Intervention, Mask, Positions, Scale
from attention_models.protocol.loading import Loaded
from attention_models.protocol.running import ForwardRequest, RerunRequest, RunInputs
from attention_models.protocol.values import AdapterInfo, SiteRef
from tests.explorer.session import answers

SITE = SiteRef("decoder", 5)
HALF, WINDOW = Scale(0.5, site=SITE, head=5), Mask("window", window=3)


@pytest.fixture
def state() -> State:
    return answers.after(State(), answers.loaded(), answers.ran())


def values(state: State) -> list[Intervention]:
    return [listed.value for listed in state.document.interventions]


def test_a_knob_replaces_its_own_slot_and_keeps_its_place(state):
    state = answers.after(
        state, PutIntervention(HALF), PutIntervention(WINDOW), PutIntervention(replace(HALF, factor=2))
    )
    assert values(state) == [Scale(2, site=SITE, head=5), WINDOW]


def test_a_knob_put_back_leaves_the_list(state):
    state = answers.after(
        state, PutIntervention(HALF), PutIntervention(WINDOW), PutIntervention(replace(HALF, factor=1))
    )
    assert values(state) == [WINDOW]
    assert answers.after(state, PutIntervention(Mask("trained"))).document.interventions == ()


def test_a_knob_replaces_every_intervention_in_its_slot(state):
    state = state.with_document(
        interventions=(InterventionItem(WINDOW), InterventionItem(HALF), InterventionItem(Mask("padding", window=2)))
    )
    assert values(answers.after(state, PutIntervention(Mask("none")))) == [Mask("none"), HALF]


def test_a_change_runs_the_text_again_with_what_is_on(state):
    edited = answers.after(state, PutIntervention(HALF), PutIntervention(WINDOW))
    assert effects(state, edited) == (
        RerunRequest(inputs=RunInputs("Tom and Anna went", interventions=(HALF, WINDOW))),
    )
    off = answers.after(edited, SwitchIntervention(0, False))
    assert effects(edited, off) == (RerunRequest(inputs=RunInputs("Tom and Anna went", interventions=(WINDOW,))),)
    assert not edited.up_to_date
    arrived = answers.changed(answers.ran(run=2), interventions=(HALF, WINDOW))
    assert answers.after(edited, arrived).up_to_date
    back = answers.after(edited, ClearInterventions())
    assert back.up_to_date
    assert effects(edited, back) == ()


def test_what_is_switched_off_stays_listed(state):
    state = answers.after(state, PutIntervention(HALF), SwitchIntervention(0, False))
    assert state.document.interventions == (InterventionItem(HALF, on=False),)
    assert state.document.inputs == RunInputs("Tom and Anna went")


def test_removing_and_clearing(state):
    state = answers.after(state, PutIntervention(HALF), PutIntervention(WINDOW), RemoveIntervention(0))
    assert values(state) == [WINDOW]
    for intent in (RemoveIntervention(1), SwitchIntervention(-1, True)):
        with pytest.raises(ValueError, match="There is no intervention"):
            answers.after(state, intent)
    assert answers.after(state, ClearInterventions()).document.interventions == ()


@pytest.mark.parametrize(
    ("scope", "site", "head"), [("head", SITE, 5), ("layer", SITE, None), ("everywhere", None, None)]
)
def test_a_stroke_paints_in_the_scope_that_is_edited(state, scope, site, head):
    state = answers.after(state, SetView("edit_scope", scope), PaintCells(((2, 0), (2, 1)), allow=False))
    assert values(state) == [Mask("painted", cells=((2, 0, False), (2, 1, False)), site=site, head=head)]


def test_strokes_of_one_scope_join_and_the_last_counts(state):
    state = answers.after(
        state,
        PaintCells(((2, 0), (2, 1)), allow=False),
        PaintCells(((0, 3), (2, 0)), allow=True),
        SetView("edit_scope", "layer"),
        PaintCells(((1, 1),), allow=False),
    )
    assert values(state) == [
        Mask("painted", cells=((0, 3, True), (2, 0, True), (2, 1, False)), site=SITE, head=5),
        Mask("painted", cells=((1, 1, False),), site=SITE),
    ]
    assert answers.after(state, PaintCells((), allow=True)) is state


def test_the_cells_painted_at_a_head_come_from_every_scope(state):
    state = answers.after(
        state,
        PaintCells(((2, 0),), allow=True),
        SetView("edit_scope", "everywhere"),
        PaintCells(((2, 0), (1, 1)), allow=False),
    )
    assert set(state.painted_cells) == {(2, 0, True), (1, 1, False)}  # the narrower scope counts
    other = answers.after(state, SelectHead(SITE, 4))
    assert set(other.painted_cells) == {(2, 0, False), (1, 1, False)}
    off = answers.after(state, SwitchIntervention(0, False), SwitchIntervention(1, False))
    assert off.painted_cells == ()


def test_each_stroke_is_a_step_and_a_drag_of_the_slider_is_one(qapp):
    session = Session(answers.after(State(), answers.loaded(), answers.ran()), clock=lambda: 0.0)
    for cell in ((2, 0), (2, 1)):
        session.dispatch(PaintCells((cell,), allow=False))
    for factor in (0.9, 0.7, 0.5):
        session.dispatch(PutIntervention(Scale(factor)))
    session.undo()
    assert [len(mask.cells or ()) for mask in values(session.state) if isinstance(mask, Mask)] == [2]
    assert len(values(session.state)) == 1
    session.undo()
    assert values(session.state) == [Mask("painted", cells=((2, 0, False),), site=SITE, head=5)]
    session.undo()
    assert values(session.state) == []
    session.redo()
    assert len(values(session.state)) == 1


def test_a_text_that_can_not_run_with_them_is_not_tried_again_until_something_changes(state):
    asked = RerunRequest(inputs=RunInputs("Tom and Anna went", interventions=(HALF,)))
    edited = answers.after(state, PutIntervention(HALF))
    refused = answers.after(edited, answers.failure(asked, "There is no such layer."))
    assert refused.notice is not None
    assert effects(edited, refused) == ()
    removed = answers.after(refused, RemoveIntervention(0))
    assert removed.notice is None
    assert effects(refused, removed) == ()  # the run on screen is the right one again
    other = answers.after(refused, SetText("Tom"))
    assert effects(refused, other) == (ForwardRequest(inputs=RunInputs("Tom", interventions=(HALF,))),)


def test_another_model_keeps_what_means_the_same_there(state):
    painted = Mask("painted", cells=((1, 0),))  # type: ignore[arg-type]
    for item in (HALF, WINDOW, painted, Positions("off")):
        state = answers.after(state, PutIntervention(item))
    assert values(answers.after(state, replace(answers.loaded("story-gpt"), seconds=2.0))) == [WINDOW, Positions("off")]


def with_adapter(reference: str, why: str = "") -> Loaded:
    found = answers.loaded(reference)
    adapter = AdapterInfo("tuned", "", "LORA", rank=8, alpha=16, scale=2, modules=("h.0.attn.c_attn",), why=why)
    return replace(found, info=replace(found.info, adapter=adapter))


def test_an_adapter_is_taken_out_and_put_back(state):
    off = answers.after(state, PutIntervention(Adapter(on=False)))
    assert values(off) == [Adapter(on=False)]
    assert effects(state, off) == (
        RerunRequest(inputs=RunInputs("Tom and Anna went", interventions=(Adapter(on=False),))),
    )
    assert values(answers.after(off, PutIntervention(Adapter(on=True)))) == []


def test_an_adapter_stays_out_of_models_that_have_one_and_is_forgotten_for_others(state):
    off = answers.after(state, PutIntervention(Adapter(on=False)))
    other = answers.after(off, OpenCheckpoint("tuned-too"), with_adapter("tuned-too"))
    assert values(other) == [Adapter(on=False)]
    assert values(answers.after(other, OpenCheckpoint("plain"), answers.loaded("plain"))) == []


def test_an_adapter_that_is_not_put_on_is_said(state):
    left = answers.after(state, OpenCheckpoint("b"), with_adapter("b", why="that needs peft"))
    assert left.notice is not None
    assert left.notice.text == (
        "An adapter lies beside the weights. tuned is not put on: that needs peft. The model runs without it."
    )
    assert answers.after(state, OpenCheckpoint("b"), with_adapter("b")).notice is None
