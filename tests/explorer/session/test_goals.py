"""What a step asks to be on screen: whether it is, and the intents that bring it about."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtWidgets import QApplication

from attention_explorer.session.goals import Goal, goal_at
from attention_explorer.session.intents import (
    Arrived,
    BlockCell,
    ClearInterventions,
    OpenCheckpoint,
    PutIntervention,
    SelectCell,
    SelectHead,
    SelectQuery,
    SetText,
)
from attention_explorer.session.session import Session
from attention_explorer.session.state import InterventionItem, State
from attention_models.protocol.interventions import Mask, Scale
from attention_models.protocol.values import SiteRef
from tests.explorer.session import answers
from tests.explorer.session.answers import after

SITE = SiteRef("decoder", 5)
GOALS = {
    "head": Goal(layer=3, head=2),
    "query": Goal(query="Anna"),
    "key": Goal(key="and"),
    "cell": Goal(layer=7, head=7, query="went", key="Tom"),
    "blocked": Goal(layer=5, head=5, query="went", key="Tom", blocked=True),
}


def settled(state: State) -> State:
    """With the run that it asks for."""
    if state.up_to_date:
        return state
    inputs = state.document.inputs
    ran = answers.changed(answers.ran(2, inputs.prompt), interventions=inputs.interventions)
    return after(state, ran)


@pytest.mark.parametrize("query", range(3))
def test_what_is_selected_has_names_that_lead_back_to_it(running: State, query: int) -> None:
    state = settled(after(running, SetText("Tom and Tom")))
    there = after(state, SelectHead(SITE, 3), SelectCell(query, 0))
    goal = goal_at(there.document, there)
    assert goal.holds(there, ())
    assert (goal.cell(there), goal.query_place) == ((query, 0), 2 if query == 2 else 1)
    assert goal_at(there.document, State()).query is None


@pytest.mark.parametrize("name", GOALS)
def test_its_intents_bring_it_about(running: State, name: str) -> None:
    goal = GOALS[name]
    assert not goal.holds(running, ())
    state = settled(after(running, *goal.intents(running)))
    assert goal.holds(state, ())
    assert after(state, *goal.intents(state)).document == state.document


def test_a_panel_must_be_in_sight(running: State) -> None:
    assert Goal(panel="map").holds(running, ("next", "map"))
    assert not Goal(panel="map").holds(running, ("next",))
    assert Goal(panel="map").intents(running) == ()


def test_a_text_and_a_checkpoint_are_asked_for_before_their_tokens(running: State) -> None:
    goal = Goal(checkpoint="b", text="Theirs is here", plain=True, query="here")
    edited = settled(after(running, PutIntervention(Scale(0.5))))
    state = after(edited, *goal.intents(edited))
    document = state.document
    assert (document.checkpoint, document.text, document.interventions) == ("b", "Theirs is here", ())
    assert goal.intents(state) == ()
    state = settled(after(state, answers.loaded("b")))
    assert goal.intents(state) == (SelectQuery(2),)
    assert goal.holds(after(state, SelectQuery(2)), ())


def test_going_to_a_text_is_one_step_to_undo_also_just_after_typing(qapp: QApplication) -> None:
    session = Session()
    for answer in (answers.loaded(), answers.ran()):
        session.dispatch(Arrived(answer))
    session.dispatch(SetText("Mine"))
    for intent in Goal(text="Theirs", plain=True).intents(session.state):
        session.dispatch(intent)
    assert session.state.document.text == "Theirs"
    session.undo()
    assert session.state.document.text == "Mine"


def test_a_checkpoint_alone_brings_its_own_text_and_changes_are_taken_out_alone(running: State) -> None:
    assert Goal(checkpoint="b").intents(running) == (OpenCheckpoint("b"),)
    edited = settled(after(running, PutIntervention(Scale(0.5))))
    assert Goal(plain=True).intents(edited) == (ClearInterventions(),)
    assert Goal(plain=True).intents(running) == ()


def test_it_does_not_hold_while_the_numbers_are_of_something_else(running: State) -> None:
    goal = Goal(query="went")
    assert goal.holds(after(running, SelectQuery(3)), ())
    assert not goal.holds(after(running, SelectQuery(3), SetText("Tom and Anna went home")), ())
    assert not goal.holds(State(), ())
    assert not Goal(plain=True).holds(settled(after(running, PutIntervention(Scale(0.5)))), ())


def test_a_word_that_is_not_there_is_nowhere(running: State) -> None:
    assert Goal(query="giraffe").cell(running) == (-1, None)
    assert not Goal(query="giraffe").holds(running, ())
    assert Goal(query="Tom", query_place=2).cell(running) == (-1, None)


def test_a_blocked_cell_is_masked_at_its_head_alone_and_freed_again(running: State) -> None:
    state = after(running, SelectHead(SITE, 5), SelectCell(3, 0), BlockCell(True))
    assert state.document.interventions == (
        InterventionItem(Mask("painted", cells=((3, 0, False),), site=SITE, head=5)),
    )
    two = after(state, SelectCell(2, 1), BlockCell(True))
    assert two.painted_cells == ((2, 1, False), (3, 0, False))
    assert after(two, BlockCell(False)).document.interventions == state.document.interventions
    assert after(state, BlockCell(False)).document.interventions == ()
    assert after(state, BlockCell(True)) is state


def test_there_is_no_cell_to_block_without_a_head() -> None:
    headless = after(State(), answers.loaded(), answers.ran(layers=0))
    with pytest.raises(ValueError, match="no head is selected"):
        after(headless, BlockCell(True))


def test_blocking_leaves_other_changes(running: State) -> None:
    scaled = after(running, PutIntervention(Scale(0.5)))
    state = after(scaled, SelectHead(SITE, 5), SelectCell(3, 0), BlockCell(True))
    assert len(state.document.interventions) == 2
    assert replace(after(state, BlockCell(False)).document, selection=scaled.document.selection) == scaled.document
