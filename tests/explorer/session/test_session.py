from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attention_explorer.session.branches import MOST_NODES, ROOT, Branches
from attention_explorer.session.intents import (
    Arrived,
    AskSamples,
    AskStep,
    Busy,
    DeleteBranch,
    GoToNode,
    Intent,
    NameBranch,
    OpenCheckpoint,
    PutIntervention,
    SelectHead,
    SelectQuery,
    SetPicture,
    SetText,
    SetView,
    Show,
    SwitchIntervention,
    Train,
    TrainingTold,
)
from attention_explorer.session.live import Live
from attention_explorer.session.session import Session
from attention_explorer.session.state import Document, Notice, State
from attention_explorer.session.writing import TEXTS_KEPT
from attention_models.protocol.atlas import AtlasRequest
from attention_models.protocol.corpus import CorpusQuestion, CorpusRequest
from attention_models.protocol.decoding import DecodeSettings, DecodeStepRequest
from attention_models.protocol.head import HeadRequest
from attention_models.protocol.interventions import Scale
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.request import Failure, Lane, Request
from attention_models.protocol.roles import RolesRequest
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.training_messages import Asked, Failed
from attention_models.protocol.trust import TrustRequest
from attention_models.protocol.two_runs import OtherRun, TwoRunsRequest
from attention_models.protocol.values import SeenPicture, SiteRef
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
    assert requests == [
        LoadRequest(reference="story-gpt"),
        ForwardRequest(inputs=RunInputs("Once")),
        TrustRequest(run=1),
    ]


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


def test_of_lanes_that_become_busy_one_after_the_other_only_the_last_word_is_told(session, changes):
    """Each panel that asks makes another lane busy: every one of them showed all of those words."""
    head, atlas = HeadRequest.lane, AtlasRequest.lane

    def ask(_: State, new: State) -> None:
        if new.document.text == "a" and not new.live.busy:
            session.dispatch(Busy(frozenset({head})))
            session.dispatch(Busy(frozenset({head, atlas})))
            session.dispatch(SetText("b"))
            session.dispatch(Busy(frozenset({atlas})))

    told: list[frozenset[Lane]] = []
    session.changed.connect(ask)
    session.live_changed.connect(lambda _, live: told.append(live.busy))
    session.dispatch(SetText("a"))
    assert [new.document.text for _, new in changes] == ["a", "b"]
    assert told == [{head, atlas}, {atlas}]


def test_what_is_under_way_has_a_signal_of_its_own(session, changes):
    told: list[tuple[Live, Live]] = []
    session.live_changed.connect(lambda old, new: told.append((old, new)))
    session.dispatch(Busy(frozenset({HeadRequest.lane})))
    assert changes == []
    assert [new.busy for _, new in told] == [{HeadRequest.lane}]
    assert told[0][1] is session.live is session.state.live
    session.dispatch(SetText("a"))
    assert len(changes) == len(told) == 1


def test_an_intent_that_changes_both_tells_of_both(session, changes):
    session.dispatch(Train(Asked("reverse:10")))
    assert changes == []
    told: list[Live] = []
    session.live_changed.connect(lambda _, new: told.append(new))
    session.dispatch(TrainingTold(1, Failed("It broke.")))
    assert [new.notice for _, new in changes] == [Notice("error", "It broke.")]
    assert [live.learning.phase for live in told if live.learning is not None] == ["failed"]


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
    assert requests == [ForwardRequest(inputs=RunInputs("Tom and Anna went"))]


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
    press, view = answers.stepping("Tom and Anna went to")
    session.dispatch(press)
    session.dispatch(Arrived(view))
    assert session.state.document.text == "Tom and Anna went to"
    session.undo()
    assert session.state.document.text == "Tom and Anna went"


def write(session: Session, token: int, *, goes_on: bool = False, forced: int | None = None) -> None:
    """Ask for a token after the one that is looked at, and let it arrive."""
    branches = session.state.document.branches
    request = answers.step_request(branches, text=session.state.document.text, forced=forced)
    session.dispatch(AskStep(request, branches.current, goes_on))
    session.dispatch(Arrived(answers.step_view(request, token)))


def words(session: Session) -> list[int]:
    return list(session.state.document.branches.ids())


def test_a_step_of_decoding_is_asked_for_and_is_a_step(session):
    requests: list[object] = []
    session.requested.connect(requests.append)
    write(session, 7)
    with_it = replace(session.state.document.inputs, continuation=(7,))
    assert requests == [answers.step_request(), ForwardRequest(inputs=with_it)]  # the window follows
    write(session, 8)
    assert words(session) == [7, 8]
    session.undo()
    assert words(session) == [7]
    session.undo()
    assert words(session) == []
    session.redo()
    session.redo()
    assert words(session) == [7, 8]


def test_one_playing_is_one_step_however_long_it_takes(session):
    for token in range(1, 40):
        write(session, token, goes_on=token > 1)
    session.undo()
    assert words(session) == []
    assert not session.can_undo
    session.redo()
    assert words(session) == list(range(1, 40))


def test_a_head_chosen_while_it_plays_is_undone_alone(session):
    write(session, 1)
    session.dispatch(SelectHead(SiteRef("decoder", 2), 3))
    write(session, 2, goes_on=True)
    session.undo()
    assert session.state.selection.site == SiteRef("decoder", 5)
    assert words(session) == [1, 2]
    session.undo()
    assert words(session) == []
    assert not session.can_undo


@pytest.mark.parametrize(
    "break_off",
    [
        lambda session: session.undo(),
        lambda session: session.dispatch(SetText("Another text")),
        lambda session: session.dispatch(OpenCheckpoint("b")),
        lambda session: session.dispatch(DeleteBranch(1)),
    ],
)
def test_what_breaks_it_off_drops_the_step_that_is_under_way(session, break_off):
    write(session, 1)
    before = session.state.document
    request = answers.step_request(before.branches)
    session.dispatch(AskStep(request, 1, goes_on=True))
    break_off(session)
    assert session.state.pending_step is None
    broken_off = session.state.document
    session.dispatch(Arrived(answers.step_view(request)))
    assert session.state.document == broken_off
    session.redo() if session.can_redo else session.undo()
    assert session.state.document.branches == before.branches  # nothing is lost


def test_deleting_another_branch_lets_the_step_go_on(session):
    write(session, 1)
    session.dispatch(GoToNode(ROOT))
    write(session, 2)
    request = answers.step_request(session.state.document.branches)
    session.dispatch(AskStep(request, 2))
    session.dispatch(DeleteBranch(1))
    session.dispatch(Arrived(answers.step_view(request, 3)))
    assert words(session) == [2, 3]
    assert len(session.state.document.branches.nodes) == 2
    session.undo()
    assert words(session) == [2]
    session.undo()
    assert len(session.state.document.branches.nodes) == 2  # the deleted one is there again


def test_a_step_that_fails_ends_the_playing(session):
    request = answers.step_request()
    session.dispatch(AskStep(request))
    session.dispatch(Arrived(answers.failure(request)))
    assert (session.state.pending_step, session.state.passage) == (None, 0)
    assert session.state.notice is not None
    assert not session.can_undo


def test_samples_side_by_side_grow_the_tree_and_are_one_step(session):
    write(session, 5)
    request = answers.samples_request(3, (5,))
    session.dispatch(AskSamples(request, (1, 1, 1), shown=2))
    session.dispatch(Arrived(answers.samples_view(request, 7, 7, 8)))
    branches = session.state.document.branches
    assert [node.token for node in branches.nodes] == [5, 7, 8]
    assert branches.ids() == (5, 8)
    assert [node.settings.sample for node in branches.nodes] == [0, 1, 2]
    session.undo()
    assert words(session) == [5]
    session.redo()
    assert session.state.document.branches == branches


def test_of_samples_whose_branch_was_deleted_nothing_is_taken(session):
    write(session, 5)
    request = answers.samples_request(2, (5,))
    session.dispatch(AskSamples(request, (1, 1)))
    session.dispatch(DeleteBranch(1))
    session.dispatch(Arrived(answers.samples_view(request, 7, 8)))
    assert session.state.document.branches.nodes == ()


def test_each_edited_model_has_a_tree_of_its_own(session):
    write(session, 7)
    session.dispatch(PutIntervention(Scale(0.5)))
    assert words(session) == []
    request = answers.step_request()
    with pytest.raises(ValueError, match="changed otherwise"):
        session.dispatch(AskStep(request))
    edited = replace(request, inputs=replace(request.inputs, interventions=(Scale(0.5),)))
    session.dispatch(AskStep(edited))
    session.dispatch(Arrived(answers.step_view(edited, 9)))
    assert words(session) == [9]
    session.dispatch(SwitchIntervention(0, False))
    assert words(session) == [7]
    session.dispatch(SwitchIntervention(0, True))
    assert words(session) == [9]


def test_who_looks_elsewhere_meanwhile_still_does(session):
    write(session, 1)
    request = answers.step_request(session.state.document.branches)
    session.dispatch(AskStep(request, 1))
    session.dispatch(GoToNode(ROOT))
    session.dispatch(Arrived(answers.step_view(request, 2)))
    assert words(session) == []
    assert [node.token for node in session.state.document.branches.nodes] == [1, 2]


def test_another_candidate_is_one_step_and_says_that_a_person_chose_it(session):
    write(session, 1)
    request = answers.step_request(parent=ROOT, forced=9)
    session.dispatch(AskStep(request, ROOT))
    session.dispatch(Arrived(answers.step_view(request)))
    assert words(session) == [9]
    assert [node.forced for node in session.state.document.branches.nodes] == [False, True]
    session.undo()
    assert words(session) == [1]


def test_naming_deleting_and_choosing_are_undone_one_by_one(session):
    write(session, 1)
    write(session, 2)
    session.dispatch(NameBranch(2, "mine"))
    session.dispatch(GoToNode(1))
    session.dispatch(DeleteBranch(2))
    assert session.state.document.branches.nodes == ()
    session.undo()
    assert words(session) == [1]
    session.undo()
    assert words(session) == [1, 2]
    assert session.state.document.branches.node(2).name == "mine"
    session.undo()
    assert session.state.document.branches.node(2).name == ""


def test_each_text_has_its_tree_and_undoing_the_text_brings_back_its_own(session):
    write(session, 1)
    session.dispatch(SetText("a b"))
    assert words(session) == []
    write(session, 2)
    session.dispatch(SetText("Tom and Anna went"))
    assert words(session) == [1]  # typed again
    session.undo()
    assert words(session) == [2]
    session.undo()
    session.undo()
    assert words(session) == [1]


def test_trees_of_texts_long_left_are_let_go_and_undo_brings_them_back(session):
    for number in range(TEXTS_KEPT + 2):
        session.dispatch(SetText(f"text {number}"))
        write(session, number)
    assert len(session.state.document.writings) == TEXTS_KEPT
    assert session.state.document.writings[0].inputs.prompt == "text 2"
    for _ in range(4):
        session.undo()
    assert session.state.document.writings[0].inputs.prompt == "text 0"


@pytest.mark.parametrize(
    ("intent", "sentence"),
    [
        (AskStep(answers.step_request(text="b")), "another text"),
        (AskStep(answers.step_request(), 5), "no node 5"),
        (AskStep(answers.step_request(), 1), "not one after node 1"),
        (AskSamples(answers.samples_request(), (1, 1)), "not one after node 1"),
        (AskSamples(answers.samples_request(2), (0,)), "2 samples cannot go on from 1 nodes"),
        (AskSamples(answers.samples_request(text="b"), (0, 0)), "another text"),
        (GoToNode(5), "no node 5"),
        (NameBranch(5, "a"), "no node 5"),
        (NameBranch(ROOT, "a"), "The prompt is no branch"),
        (DeleteBranch(5), "no node 5"),
        (DeleteBranch(ROOT), "The prompt is no branch"),
    ],
)
def test_what_is_not_in_the_tree_is_refused(session, intent, sentence):
    write(session, 1)
    with pytest.raises(ValueError, match=sentence):
        session.dispatch(intent)
    assert session.state.pending_step is None


def test_a_full_tree_takes_no_more(qapp):
    branches = Branches()
    for number in range(MOST_NODES):
        branches = branches.go(ROOT).grow(number, "a", -1.0)
    session = Session(State(Document(text="a").with_branches(branches)))
    with pytest.raises(ValueError, match=r"hold 5,000 tokens, the most that are kept\."):
        session.dispatch(AskStep(answers.step_request(text="a"), ROOT))


ACTIONS = st.one_of(
    st.tuples(st.just("step"), st.integers(1, 3)),
    st.tuples(st.just("play"), st.integers(1, 3)),
    st.tuples(st.sampled_from(["go", "name", "delete", "head", "undo", "redo", "late"]), st.integers(0, 6)),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=st.lists(ACTIONS, max_size=25))
def test_whatever_is_done_to_branches_undo_leads_back_through_whole_trees(qapp, actions):
    """Each step, each playing and each thing a person does is at most one step of undo, and redo leads forth again."""
    session = Session(clock=Clock())
    session.dispatch(Arrived(answers.loaded()))
    session.dispatch(Arrived(answers.ran()))
    playing = False
    done = 0
    for what, number in actions:
        nodes = session.state.document.branches.nodes
        node = nodes[number % len(nodes)].id if nodes else ROOT
        if what in ("step", "play"):
            goes_on = what == "play" and playing and session.state.passage > 0
            write(session, number, goes_on=goes_on)
            playing = what == "play"
            done += not goes_on
        elif what == "late":  # an answer to nobody
            session.dispatch(Arrived(answers.step_view(answers.step_request(), number)))
        elif what == "undo":
            session.undo()
        elif what == "redo":
            session.redo()
        elif what == "head":
            session.dispatch(SelectHead(SiteRef("decoder", number), number))
            done += 1
        elif node != ROOT:
            intents_ = {"go": GoToNode(node), "name": NameBranch(node, f"n{number}"), "delete": DeleteBranch(node)}
            session.dispatch(intents_[what])
            done += 1
    while session.can_redo:
        session.redo()
    back = [session.state.document]
    while session.can_undo:
        session.undo()
        back.append(session.state.document)
    assert len(back) - 1 <= done
    assert back[-1].writings == ()
    for document in reversed(back[:-1]):
        session.redo()
        assert session.state.document == document
    for document in back:
        ids = {node.id for node in document.branches.nodes} | {ROOT}
        assert all(node.parent in ids for node in document.branches.nodes)
        assert document.branches.current in ids


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


def seeing(picture: str, run: int = 1) -> Ran:
    seen = SeenPicture(np.zeros((32, 32, 3), np.uint8), 4, 4, 0)
    return answers.changed(replace(answers.ran(run), seen=seen), picture=picture)


@pytest.fixture
def looking(qapp) -> Session:
    """A vision model that has looked at a first picture, then at a fish."""
    session = Session(State(Document(text="Tom and Anna went", picture="sample:first")), clock=Clock())
    loaded = answers.loaded()
    session.dispatch(Arrived(replace(loaded, info=replace(loaded.info, family="vision"))))
    session.dispatch(Arrived(seeing("sample:first")))
    session.dispatch(SetPicture("sample:fish"))
    session.dispatch(Arrived(seeing("sample:fish", 2)))
    return session


def broken(session: Session, picture: str) -> Failure:
    request = ForwardRequest(inputs=replace(session.state.inputs, picture=picture))
    return Failure(request=request, sentence=f"{picture} is broken.")


def test_no_step_leads_back_to_a_picture_that_could_not_be_read(looking):
    """What is done while it is being read is a step too: undone, the notice about it came back."""
    looking.dispatch(SetPicture("/half.png"))
    looking.dispatch(SelectQuery(1))
    looking.dispatch(Arrived(broken(looking, "/half.png")))
    assert looking.state.notice.text == "/half.png is broken."
    asked: list[Request] = []
    looking.requested.connect(asked.append)
    pictures = []
    while looking.can_undo:
        looking.undo()
        pictures.append(looking.state.document.picture)
        assert looking.state.notice is None
    assert pictures == ["sample:fish", "sample:first"]
    assert not [one for one in asked if isinstance(one, ForwardRequest) and one.inputs.picture == "/half.png"]


def test_undo_takes_a_notice_away_that_speaks_of_nothing_in_the_input(looking):
    """The step that is undone may be one that leaves the picture alone."""
    looking.dispatch(SelectQuery(1))
    looking.dispatch(SetPicture("/half.png"))
    looking.dispatch(Arrived(broken(looking, "/half.png")))
    looking.undo()
    assert looking.state.document.picture == "sample:fish"
    assert looking.state.notice is None


def test_undo_leaves_a_notice_about_the_text_that_is_still_there(session):
    session.dispatch(SetText("Tom"))
    session.dispatch(SelectQuery(1))
    request = ForwardRequest(inputs=session.state.inputs)
    session.dispatch(Arrived(Failure(request=request, sentence="It is too long.")))
    session.undo()
    assert session.state.document.text == "Tom"
    assert session.state.notice.text == "It is too long."


@pytest.mark.parametrize(
    "request_",
    [
        DecodeStepRequest(inputs=RunInputs("Another text"), settings=DecodeSettings(), steps=1, number=1),
        RolesRequest(probe="/another.txt"),
        CorpusRequest(path="/another.txt", question=CorpusQuestion()),
        TwoRunsRequest(run=1, site=None, head=0, other=OtherRun(RunInputs("Another text"), "story-gpt")),
    ],
)
def test_what_is_no_longer_asked_for_says_nothing(session, request_):
    before = session.state
    session.dispatch(Arrived(Failure(request=request_, sentence="It could not be had.")))
    assert session.state.notice is None
    assert session.state.document == before.document
