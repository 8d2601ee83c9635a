"""State B: frozen when it is chosen, opened in the place of A, undone, and of a branch, a head, or a text by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attention_explorer.session.branches import Branches
from attention_explorer.session.comparing import (
    BEFORE,
    as_b,
    before_as_b,
    branch_as_b,
    head_as_b,
    kept_as_b,
    name_of,
    typed_as_b,
)
from attention_explorer.session.intents import (
    Arrived,
    ClearInterventions,
    CompareWith,
    OpenCheckpoint,
    PutIntervention,
    SelectHead,
    SelectHeadOfB,
    SetDecoding,
    SetText,
    SetView,
    ShowBeam,
    SwapStates,
)
from attention_explorer.session.kept import KeptState
from attention_explorer.session.session import Session
from attention_explorer.session.state import Compared, Document, State
from attention_explorer.session.text_limits import MOST_CHARACTERS
from attention_models.protocol.interventions import Scale
from attention_models.protocol.running import RunInputs
from attention_models.protocol.values import SiteRef
from tests.explorer.session import answers

SITE = SiteRef("decoder", 5)
TREE = Branches().grow(7, "␣to", -0.5).grow(8, "␣bed", -1.0)


@pytest.fixture
def session(qapp: object) -> Session:
    """story-gpt with its example run; no two steps are merged."""
    clock = iter(range(0, 10_000, 10))
    session = Session(clock=lambda: float(next(clock)))
    session.dispatch(Arrived(answers.loaded()))
    session.dispatch(Arrived(answers.ran()))
    return session


def compared(session: Session) -> Compared:
    b = session.state.document.compared
    assert b is not None
    return b


def freeze(session: Session) -> Compared:
    session.dispatch(CompareWith(as_b(session.state)))
    return compared(session)


def test_b_stays_what_it_was_when_a_goes_on(session: Session) -> None:
    session.dispatch(PutIntervention(Scale(0.5)))
    session.dispatch(SelectHead(SITE, 3))
    b = freeze(session)
    session.dispatch(SetText("A word"))
    session.dispatch(ClearInterventions())
    session.dispatch(SelectHead(SITE, 4))
    session.dispatch(OpenCheckpoint("story-bert"))
    session.dispatch(Arrived(answers.loaded("story-bert")))
    assert compared(session) == b
    assert b.inputs == RunInputs("Tom and Anna went", interventions=(Scale(0.5),))
    assert (b.document.checkpoint, b.document.selection.site, b.document.selection.head) == ("story-gpt", SITE, 3)
    assert b.document.compared is None


def test_a_checkpoint_that_is_being_opened_is_not_yet_that_of_b(session: Session) -> None:
    session.dispatch(OpenCheckpoint("story-bert"))
    assert as_b(session.state).document.checkpoint == "story-gpt"


def test_how_a_is_drawn_is_no_part_of_b(session: Session) -> None:
    before = as_b(session.state)
    session.dispatch(SetView("colour_map", "cividis"))
    assert as_b(session.state) == before


def test_setting_swapping_and_letting_go_are_undone_and_redone(session: Session) -> None:
    b = freeze(session)
    session.dispatch(SetText("A word"))
    session.dispatch(SwapStates())
    assert session.state.document.text == "Tom and Anna went"
    assert compared(session).inputs.prompt == "A word"
    session.dispatch(CompareWith(None))
    swapped = session.state.document
    session.undo()
    assert compared(session).inputs.prompt == "A word"
    session.undo()
    assert (session.state.document.text, compared(session)) == ("A word", b)
    session.undo()
    session.undo()
    assert session.state.document.compared is None
    for _ in range(4):
        session.redo()
    assert session.state.document == swapped


def test_swapping_twice_leads_back(session: Session) -> None:
    freeze(session)
    session.dispatch(SetText("A word"))
    session.dispatch(PutIntervention(Scale(0.5)))
    there = session.state.document
    session.dispatch(SwapStates())
    session.dispatch(SwapStates())
    assert session.state.document == there


def test_swapping_opens_the_other_checkpoint_and_keeps_both_texts(session: Session) -> None:
    freeze(session)
    session.dispatch(OpenCheckpoint("story-bert"))
    session.dispatch(Arrived(answers.loaded("story-bert", "Tom and Anna went")))
    session.dispatch(SetText("A word"))
    session.dispatch(SwapStates())
    assert session.state.loading == "story-gpt"
    assert session.state.document.text == "A word"  # until it is open
    session.dispatch(Arrived(answers.loaded()))
    assert (session.state.document.checkpoint, session.state.document.text) == ("story-gpt", "Tom and Anna went")
    assert (compared(session).document.checkpoint, compared(session).document.text) == ("story-bert", "A word")
    session.undo()
    assert session.state.loading == "story-bert"


def test_swapping_keeps_the_head_that_both_show(session: Session) -> None:
    freeze(session)
    session.dispatch(SelectHead(SITE, 6))
    session.dispatch(SwapStates())
    assert (session.state.selection.site, session.state.selection.head) == (SITE, 6)


def test_a_head_beside_another_is_swapped_with_it(session: Session) -> None:
    session.dispatch(SelectHead(SITE, 6))
    session.dispatch(CompareWith(head_as_b(session.state, SiteRef("decoder", 2), 1)))
    assert compared(session).inputs == session.state.inputs
    session.dispatch(SwapStates())
    assert (session.state.selection.site, session.state.selection.head) == (SiteRef("decoder", 2), 1)
    b = compared(session)
    assert (b.document.selection.site, b.document.selection.head, b.own_head) == (SITE, 6, True)


def test_a_head_of_b_is_chosen_and_given_back(session: Session) -> None:
    freeze(session)
    session.dispatch(SelectHeadOfB(SiteRef("decoder", 2), 1))
    b = compared(session)
    assert (b.document.selection.site, b.document.selection.head, b.own_head) == (SiteRef("decoder", 2), 1, True)
    session.dispatch(SelectHeadOfB(None))
    assert not compared(session).own_head


@pytest.mark.parametrize("intent", [SwapStates(), SelectHeadOfB(SITE, 1)])
def test_without_b_a_sentence_says_how_to_get_one(session: Session, intent: SwapStates | SelectHeadOfB) -> None:
    with pytest.raises(ValueError, match=r"There is no B yet\. Make one of what is open with Ctrl\+B"):
        session.dispatch(intent)


def test_b_is_compared_with_nothing_in_turn(session: Session) -> None:
    b = freeze(session)
    with pytest.raises(ValueError, match="nothing in turn"):
        session.dispatch(CompareWith(replace(b, document=session.state.document)))
    assert compared(session) == b


def test_b_takes_no_longer_a_text_than_the_window_does(session: Session) -> None:
    b = typed_as_b(session.state, "a" * (MOST_CHARACTERS + 1), "story-gpt")
    with pytest.raises(ValueError, match="its text has 200,001 characters"):
        session.dispatch(CompareWith(b))
    assert session.state.document.compared is None


def test_before_the_interventions(session: Session) -> None:
    session.dispatch(PutIntervention(Scale(0.5)))
    b = before_as_b(session.state)
    assert (b.inputs, b.name) == (RunInputs("Tom and Anna went"), BEFORE)
    assert session.state.inputs == replace(b.inputs, interventions=(Scale(0.5),))


def test_before_the_interventions_the_same_tokens_are_read_on(session: Session) -> None:
    state = replace(session.state, document=session.state.document.with_branches(TREE))
    edited = replace(state, document=replace(state.document, interventions=()))
    assert edited.continuation == (7, 8)
    assert before_as_b(edited).continuation == (7, 8)


def test_a_branch_is_read_after_the_text_and_opened_with_it(session: Session) -> None:
    tree = TREE.go(1).grow(9, "␣home", -2.0)
    state = replace(session.state, document=session.state.document.with_branches(tree))
    b = branch_as_b(state, 2)
    assert (state.continuation, b.continuation) == ((7, 9), (7, 8))
    assert name_of(b, state) == "the branch “to bed”"
    session.dispatch(CompareWith(b))
    session.dispatch(SetView("follow", False))
    session.dispatch(SwapStates())
    assert session.state.continuation == (7, 8)
    assert session.state.notice is None
    assert branch_as_b(replace(state, document=state.document.with_branches(tree.named(3, "home"))), 3).name == "home"


def test_what_a_beam_wrote_is_read_but_said_to_be_in_no_tree(session: Session) -> None:
    decoding = session.state.document.decoding
    session.dispatch(SetDecoding(replace(decoding, settings=replace(decoding.settings, strategy="beam"), chosen=True)))
    session.dispatch(ShowBeam((7, 8)))
    b = freeze(session)
    assert b.continuation == (7, 8)
    session.dispatch(SwapStates())
    assert session.state.notice is not None
    assert "stands in no tree of branches" in session.state.notice.text


def test_b_by_hand_is_as_what_is_open_but_for_what_was_typed(session: Session) -> None:
    session.dispatch(PutIntervention(Scale(0.5)))
    same = typed_as_b(session.state, "A word", "story-gpt")
    assert same.inputs == RunInputs("A word", interventions=(Scale(0.5),))
    other = typed_as_b(session.state, "Tom and Anna went", "story-bert")
    assert (other.document.checkpoint, other.inputs) == ("story-bert", RunInputs("Tom and Anna went"))


def test_typing_changes_b_where_there_is_one(session: Session) -> None:
    session.dispatch(CompareWith(branch_as_b(replace(session.state, document=with_tree(session.state)), 2)))
    session.dispatch(SetText("Something else"))
    b = typed_as_b(session.state, "A word", "story-gpt")
    assert (b.inputs, b.document.branches) == (RunInputs("A word"), Branches())
    assert typed_as_b(session.state, "Tom and Anna went", "story-gpt") == compared(session)


def with_tree(state: State) -> Document:
    return state.document.with_branches(TREE)


def test_a_kept_state_has_its_name(session: Session) -> None:
    kept = KeptState(with_tree(session.state), "at home")
    b = kept_as_b(kept)
    assert (b.continuation, b.name, name_of(b, session.state)) == ((7, 8), "at home", "at home")


def test_b_is_called_by_what_a_has_not(session: Session) -> None:
    state = session.state
    assert name_of(as_b(state), state) == "the same state"
    assert name_of(typed_as_b(state, "A word", "story-bert"), state) == "story-bert, “A word”"
    session.dispatch(PutIntervention(Scale(0.5)))
    assert name_of(as_b(state), session.state) == "no intervention"
    assert name_of(as_b(session.state), state) == "1 intervention"
