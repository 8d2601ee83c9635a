from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from explorer.session.intents import (
    Arrived,
    Busy,
    Intent,
    OpenCheckpoint,
    SelectHead,
    SelectQuery,
    SetText,
    SetView,
    Show,
)
from explorer.session.session import Session
from explorer.session.state import State
from models.requests import ForwardRequest, HeadRequest, LoadRequest, TrustRequest
from models.values import SiteRef
from tests.explorer.session import answers
from tests.explorer.session.strategies import intents


class Clock:
    """Each look at it is ten seconds after the last, so that no steps are merged, unless it stands."""

    def __init__(self, step: float = 10.0) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture
def session(qapp) -> Session:
    """story-gpt with its example run."""
    session = Session(clock=Clock())
    session.dispatch(Arrived(answers.loaded()))
    session.dispatch(Arrived(answers.ran()))
    return session


@pytest.fixture
def changes(session) -> list[tuple[State, State]]:
    seen: list[tuple[State, State]] = []
    session.changed.connect(lambda old, new: seen.append((old, new)))
    return seen


def test_a_change_is_told_once_with_both_states(session, changes):
    before = session.state
    session.dispatch(SetText("a"))
    assert changes == [(before, session.state)]
    assert session.state.document.text == "a"


def test_no_change_is_not_told(session, changes):
    session.dispatch(SetText(session.state.document.text))
    session.dispatch(Busy(frozenset()))
    session.dispatch(Show(None))
    session.undo()
    session.redo()
    assert changes == []
    assert not session.can_undo


def test_what_follows_from_a_change_is_requested(qapp):
    session = Session()
    requests: list[object] = []
    session.requested.connect(requests.append)
    session.start()
    session.dispatch(Arrived(answers.loaded(example="Once")))
    session.dispatch(Arrived(answers.ran(1, "Once")))
    assert requests == [LoadRequest(reference="story-gpt"), ForwardRequest(text="Once"), TrustRequest(run=1)]


def test_a_panel_requests_what_it_shows(session, changes, qtbot):
    request = HeadRequest(run=1, site=SiteRef("decoder", 0), head=1)
    with qtbot.waitSignal(session.requested) as blocker:
        session.request(request)
    assert blocker.args == [request]
    assert changes == []


def test_an_intent_from_within_a_change_waits_for_its_turn(session, changes):
    """Every listener sees every change, in the same order, however many listeners dispatch."""
    seen_later: list[str] = []

    def answer(_: State, new: State) -> None:
        if new.document.text == "a":
            session.dispatch(SetText("b"))
            session.dispatch(SetText("c"))
            assert session.state is new  # not yet

    session.changed.connect(answer)
    session.changed.connect(lambda _, new: seen_later.append(new.document.text))
    session.dispatch(SetText("a"))
    assert seen_later == ["a", "b", "c"]
    assert [new.document.text for _, new in changes] == ["a", "b", "c"]
    assert all(earlier[1] is later[0] for earlier, later in pairwise(changes))


def test_undo_from_within_a_change_waits_too(session):
    session.changed.connect(lambda _, new: session.undo() if new.document.text == "a" else None)
    session.dispatch(SetText("a"))
    assert session.state.document.text == "Tom and Anna went"


def test_a_refused_intent_changes_nothing_and_later_ones_work(session, changes):
    with pytest.raises(ValueError, match="no decoder layer 99"):
        session.dispatch(SelectHead(SiteRef("decoder", 99), 0))
    with pytest.raises(TypeError):
        session.dispatch(Intent())
    assert changes == []
    session.dispatch(SetText("a"))
    assert len(changes) == 1


def test_a_refused_intent_does_not_take_the_waiting_ones_with_it(session):
    def answer(_: State, new: State) -> None:
        if new.document.text == "a":
            session.dispatch(SetView("nothing", 1))
            session.dispatch(SetText("b"))

    session.changed.connect(answer)
    with pytest.raises(ValueError, match="no view option"):
        session.dispatch(SetText("a"))
    assert session.state.document.text == "b"


# --------------------------------------------------------------------------- undo


def test_undo_and_redo_restore_the_document(session):
    first = session.state.document
    session.dispatch(SetText("a"))
    second = session.state.document
    session.undo()
    assert session.state.document == first
    assert (session.can_undo, session.can_redo) == (False, True)
    session.redo()
    assert session.state.document == second
    assert (session.can_undo, session.can_redo) == (True, False)


def test_the_history_signal_tells_when_undo_and_redo_become_possible(session):
    told: list[tuple[bool, bool]] = []
    session.history_changed.connect(lambda: told.append((session.can_undo, session.can_redo)))
    session.dispatch(SetText("a"))
    session.dispatch(SetText("b"))
    session.undo()
    session.undo()
    session.redo()
    assert told == [(True, False), (True, True), (False, True), (True, True)]


def test_typing_is_taken_back_in_one(qapp):
    session = Session(clock=Clock(step=0.1))
    for text in ("a", "ab", "abc"):
        session.dispatch(SetText(text))
    session.undo()
    assert session.state.document.text == ""


def test_an_undone_text_runs_again(session):
    session.dispatch(SetText("a"))
    session.dispatch(Arrived(answers.ran(2, "a")))
    requests: list[object] = []
    session.requested.connect(requests.append)
    session.undo()
    assert requests == [ForwardRequest(text="Tom and Anna went")]


def test_what_the_engine_changes_is_no_step(session):
    """Neither the example nor the default head, nor a query that followed the end of the text."""
    assert not session.can_undo
    session.dispatch(SetText("a b"))
    session.dispatch(Arrived(answers.ran(2, "a b")))
    session.undo()
    session.dispatch(Arrived(answers.ran(3, "Tom and Anna went")))
    assert session.can_redo
    session.redo()
    assert session.state.document.text == "a b"
    assert session.state.document.selection.query == 1


def test_a_token_the_model_wrote_is_a_step(session):
    session.dispatch(Arrived(answers.stepped(text="Tom and Anna went to")))
    session.undo()
    assert session.state.document.text == "Tom and Anna went"


def test_undo_brings_back_the_checkpoint_with_its_text_and_selection(session):
    session.dispatch(SelectQuery(1))
    there = session.state.document
    session.dispatch(OpenCheckpoint("b"))
    session.dispatch(Arrived(answers.loaded("b", "Theirs")))
    session.dispatch(Arrived(answers.ran(2, "Theirs")))
    session.undo()
    session.dispatch(Arrived(answers.loaded()))
    session.dispatch(Arrived(answers.ran(3)))
    assert session.state.document == there


def test_a_failed_switch_leaves_nothing_to_undo(session):
    session.dispatch(OpenCheckpoint("b"))
    assert session.can_undo
    session.dispatch(Arrived(answers.failure(LoadRequest(reference="b"))))
    assert not session.can_undo


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sequence=st.lists(intents(), max_size=20))
def test_after_any_step_undo_and_redo_restore_an_equal_document(qapp, sequence):
    session = Session(clock=Clock())
    for intent in sequence:
        before = session.state.document
        try:
            session.dispatch(intent)
        except ValueError:
            assert session.state.document is before
            continue
        after = session.state.document
        is_step = after != before and not isinstance(intent, Arrived)
        if is_step:
            session.undo()
            assert session.state.document == before
            session.redo()
            assert session.state.document == after
            assert not session.can_redo


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(max_size=3), max_size=20))
def test_undo_walks_back_through_every_document_and_redo_forward_again(qapp, texts):
    session = Session(clock=Clock())
    documents = [session.state.document]
    for text in texts:
        session.dispatch(SetText(text))
        if session.state.document != documents[-1]:
            documents.append(session.state.document)
    for document in reversed(documents[:-1]):
        session.undo()
        assert session.state.document == document
    assert not session.can_undo
    for document in documents[1:]:
        session.redo()
        assert session.state.document == document
    assert not session.can_redo
