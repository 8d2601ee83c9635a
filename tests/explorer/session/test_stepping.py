"""Going through a training: what stays, what is asked for, and that undo leaves it alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from attention_explorer.session.intents import (
    Arrived,
    FollowTraining,
    GoToStep,
    OpenCheckpoint,
    SelectCell,
    SelectHead,
    SetText,
    SnapshotsFound,
)
from attention_explorer.session.session import Session, effects
from attention_explorer.session.state import State
from attention_explorer.session.training import TrainingState
from attention_models.protocol.head import HeadRequest
from attention_models.protocol.loading import Loaded, LoadRequest, Stepped, StepRequest
from attention_models.protocol.request import Failure
from attention_models.protocol.roles import RolesRequest, RolesView
from attention_models.protocol.running import ForwardRequest, Ran
from attention_models.protocol.training_messages import Asked
from attention_models.protocol.trust import TrustRequest
from attention_models.protocol.values import SiteRef, TrainingSteps
from tests.explorer.session import answers
from tests.explorer.session.answers import after

STEPS = (20, 40, 60)
SITE = SiteRef("decoder", 2)
NONE = np.zeros((0, 0))


def loaded(step: int | None = None, steps: tuple[int, ...] = STEPS) -> Loaded:
    training = TrainingSteps("m", steps, step, "settings")
    whole = answers.loaded(training.at(step))
    return replace(whole, info=replace(whole.info, training=training))


@pytest.fixture
def trained() -> State:
    """The end of the training m, which has run."""
    start = State(replace(State().document, checkpoint="m"))
    return after(start, loaded(), answers.ran(), SelectHead(SITE, 3), SelectCell(3, 1))


def stepped(state: State, ticket: int = 2, steps: tuple[int, ...] = STEPS) -> Stepped:
    request = state.stepping
    assert request is not None
    step = None if "@" not in request.reference else int(request.reference.partition("@")[2])
    ran = answers.ran(ticket)
    ran = replace(ran, request=replace(ran.request, inputs=request.inputs))
    return Stepped(request=replace(request, ticket=ticket), loaded=loaded(step, steps), ran=ran)


def test_a_step_is_asked_for_with_its_run_in_one_and_all_else_stays(trained):
    shown = after(trained, answers.head_view(1, SITE, 3))
    asked = after(shown, GoToStep(40))
    request = StepRequest(reference="m@40", placement=trained.placement, inputs=trained.inputs)
    assert effects(shown, asked) == (request,)
    assert asked.results is shown.results  # nothing flickers
    assert (asked.loading, asked.document.checkpoint) == (None, "m@40")
    found = after(asked, stepped(asked))
    assert found.stepping is None
    assert found.document == asked.document
    assert found.selection == trained.selection
    assert found.results.loaded is not None
    assert found.results.loaded.info.reference == "m@40"
    assert found.ran is not None
    assert found.ran.run == 2
    assert found.results.of(type(answers.head_view())) is not None  # drawn until the new one comes
    assert not found.results.has_answer_to(HeadRequest(run=2, site=SITE, head=3))
    assert effects(asked, found) == (TrustRequest(run=2),)  # and nothing runs twice


def test_answers_of_no_run_but_of_the_model_are_those_of_the_step_before_and_go(trained):
    view = RolesView(
        request=RolesRequest(), sites=(), roles=(), scores=NONE, even=NONE, counts=NONE, why=(), texts=0, tokens=0
    )
    found = after(trained, view, GoToStep(40))
    assert found.results.of(RolesView) is view
    kinds = set(after(found, stepped(found)).results.newest)
    assert kinds == {Loaded, Ran}


def test_of_a_drag_the_steps_on_the_way_are_seen(trained):
    first = after(trained, GoToStep(20))
    second = after(first, GoToStep(60))
    assert effects(first, second) == (second.stepping,)
    between = after(second, stepped(first))
    assert between.results.loaded is not None
    assert between.results.loaded.info.reference == "m@20"
    assert between.document.checkpoint == "m@60"
    assert between.stepping == second.stepping
    assert effects(second, between) == (TrustRequest(run=2),)
    assert after(between, GoToStep(60)) is between
    end = after(between, stepped(second, ticket=3))
    assert end.stepping is None
    assert end.ran is not None
    assert end.ran.run == 3
    assert after(end, GoToStep(60)) is end


def test_there_and_back_before_an_answer_came_asks_for_the_first_again(trained):
    there = after(trained, GoToStep(20))
    back = after(there, GoToStep(None))
    assert back.document.checkpoint == "m"
    assert back.stepping is not None
    assert back.stepping.reference == "m"


def test_where_nothing_runs_the_step_is_opened_by_itself(trained):
    nothing = after(State(replace(State().document, checkpoint="m")), loaded())
    asked = after(nothing, GoToStep(40))
    assert (asked.loading, asked.stepping, asked.restored) == ("m@40", None, True)
    assert effects(nothing, asked) == (LoadRequest(reference="m@40", placement=asked.placement),)


def test_a_text_typed_meanwhile_runs_too(trained):
    asked = after(trained, GoToStep(40))
    typed = after(asked, SetText("Tom and Anna went home"))
    found = after(typed, stepped(asked))
    assert ForwardRequest(inputs=typed.inputs) in effects(typed, found)


def test_a_step_that_cannot_be_had_leaves_the_one_that_is_open(trained):
    asked = after(trained, FollowTraining(True))
    assert asked.stepping is not None
    refused = after(asked, Arrived(Failure(request=asked.stepping, sentence="It is damaged.")))
    assert refused.notice is not None
    assert refused.notice.text == "It is damaged."
    assert (refused.document.checkpoint, refused.stepping, refused.following) == ("m", None, False)
    assert refused.ran is trained.ran
    past = after(after(trained, GoToStep(20), GoToStep(40)), Arrived(Failure(request=asked.stepping, sentence="No.")))
    assert past.notice is None


def test_a_step_that_there_is_not_is_refused_and_other_models_have_none(trained, running):
    with pytest.raises(ValueError, match="no snapshot of step 30"):
        after(trained, GoToStep(30))
    for intent in (GoToStep(30), FollowTraining(True), SnapshotsFound("m", STEPS)):
        assert after(running, intent) is running


def test_another_model_ends_it(trained):
    asked = after(trained, FollowTraining(True), OpenCheckpoint("story-bert"))
    assert (asked.stepping, asked.loading) == (None, "story-bert")
    late = after(asked, stepped(after(trained, GoToStep(40))))
    assert late.results.loaded is trained.results.loaded
    opened = after(asked, answers.loaded("story-bert"))
    assert (opened.following, opened.training) == (False, None)


def test_the_newest_is_followed_until_a_person_goes_elsewhere(trained):
    followed = after(trained, FollowTraining(True))
    assert followed.document.checkpoint == "m@60"
    here = after(followed, stepped(followed))
    assert after(here, SnapshotsFound("m", STEPS)) is here
    more = after(here, SnapshotsFound("m", (*STEPS, 80)))
    assert more.document.checkpoint == "m@80"
    assert more.training is not None
    assert more.training.steps == (*STEPS, 80)
    there = after(more, stepped(more, 3, (*STEPS, 80)))
    assert there.training is not None
    assert (there.training.step, there.training.steps, there.snapshots) == (80, (*STEPS, 80), ())
    back = after(there, GoToStep(20))
    assert (back.following, back.document.checkpoint) == (False, "m@20")
    assert after(back, SnapshotsFound("m", (*STEPS, 80, 100))).document.checkpoint == "m@20"
    assert after(back, SnapshotsFound("other", (1, 2))) is back


def test_a_training_that_was_over_before_its_first_step_was_open_is_followed_to_its_end(trained):
    """All of its steps were known when it opened, so none is ever found to be new."""
    begun = replace(after(trained, GoToStep(20)), following=True)
    here = after(begun, stepped(begun, 1))
    assert here.training is not None
    assert (here.training.step, here.following) == (20, True)
    assert after(here, SnapshotsFound("m", STEPS)).document.checkpoint == "m@60"


def test_undo_leaves_the_step_alone_and_takes_back_what_was_done_at_others(trained):
    session = Session(trained)
    session.dispatch(SelectHead(SITE, 5))
    steps = session.steps
    for step in STEPS:
        session.dispatch(GoToStep(step))
        session.dispatch(Arrived(stepped(session.state)))
    assert session.steps == steps + 3  # a session file would keep the step
    session.dispatch(SetText("Another text"))
    session.undo()
    assert (session.state.document.text, session.state.document.checkpoint) == (trained.document.text, "m@60")
    session.undo()
    assert (session.state.selection.head, session.state.document.checkpoint) == (3, "m@60")
    assert session.can_redo
    assert (session.state.loading, session.state.stepping) == (None, None)
    session.dispatch(GoToStep(20))
    session.dispatch(Arrived(stepped(session.state)))
    session.redo()
    assert (session.state.selection.head, session.state.document.checkpoint) == (5, "m@20")


def test_back_to_where_one_was_at_another_step_is_no_step_to_undo(trained):
    session = Session(trained)
    session.dispatch(SelectHead(SITE, 5))
    session.dispatch(GoToStep(20))
    session.dispatch(Arrived(stepped(session.state)))
    session.dispatch(SelectHead(SITE, 3))
    assert not session.can_undo


def test_undo_goes_back_to_the_step_that_was_open_before_another_model(trained):
    session = Session(trained)
    session.dispatch(GoToStep(20))
    session.dispatch(Arrived(stepped(session.state)))
    session.dispatch(OpenCheckpoint("story-bert"))
    session.dispatch(Arrived(answers.loaded("story-bert")))
    session.undo()
    assert session.state.loading == "m@20"


def test_the_end_of_this_windows_own_training_is_its_newest_snapshot(trained):
    own = TrainingState(1, Asked("reverse"), folder="m")
    going = after(trained, GoToStep(20))
    at_20 = after(going, stepped(going))
    ends = after(at_20.with_live(learning=own), GoToStep(None))  # m itself is written anew at each pause
    assert ends.stepping is not None
    assert ends.stepping.reference == "m@60"
    ends = after(at_20.with_live(learning=replace(own, folder="another")), GoToStep(None))
    assert ends.stepping is not None
    assert ends.stepping.reference == "m"
