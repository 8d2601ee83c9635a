from __future__ import annotations

from dataclasses import replace

from attention_explorer.session.comparing import as_b
from attention_explorer.session.intents import (
    Arrived,
    Busy,
    CompareWith,
    Intent,
    OpenCheckpoint,
    RestoreDocument,
    SelectQuery,
    SetText,
    SetView,
)
from attention_explorer.session.reduce import reduce
from attention_explorer.session.session import effects, initial_requests
from attention_explorer.session.state import Document, State
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.request import Request, Result
from attention_models.protocol.running import ForwardRequest, RunInputs
from attention_models.protocol.trust import TrustRequest
from attention_models.protocol.two_runs import DropOtherRequest
from tests.explorer.session import answers


class Story:
    """A state that remembers what each of its steps asked for."""

    def __init__(self, state: State | None = None) -> None:
        self.state = state or State()

    def after(self, step: Intent | Result) -> tuple[Request, ...]:
        old = self.state
        self.state = reduce(old, step if isinstance(step, Intent) else Arrived(step))
        return effects(old, self.state)


def running() -> Story:
    story = Story()
    for result in (answers.loaded(), answers.ran()):
        story.after(result)
    return story


def test_at_the_start_the_documents_checkpoint_is_loaded():
    assert initial_requests(State(Document("b"))) == (LoadRequest(reference="b"),)


def test_a_loaded_checkpoint_runs_its_text_and_is_then_checked():
    story = Story()
    assert story.after(answers.loaded(example="Once")) == (ForwardRequest(inputs=RunInputs("Once")),)
    assert story.after(answers.ran(1, "Once")) == (TrustRequest(run=1),)


def test_before_the_first_load_a_text_only_waits():
    story = Story()
    assert story.after(SetText("Mine")) == ()
    assert story.after(answers.loaded()) == (ForwardRequest(inputs=RunInputs("Mine")),)


def test_each_new_text_runs():
    story = running()
    assert story.after(SetText("a")) == (ForwardRequest(inputs=RunInputs("a")),)
    assert story.after(SetText("a b")) == (ForwardRequest(inputs=RunInputs("a b")),)


def test_only_text_and_checkpoint_ask_for_anything():
    story = running()
    assert story.after(SelectQuery(1)) == ()
    assert story.after(SetView("top", 3)) == ()


def test_the_text_that_ran_does_not_run_again():
    story = running()
    story.after(SetText("a"))
    assert story.after(SetText("Tom and Anna went")) == ()


def test_a_run_of_a_text_that_was_left_is_followed_by_the_one_that_stands():
    story = running()
    story.after(SetText("a"))
    story.after(SetText("Tom and Anna went"))  # nothing asked for: this is what ran last
    assert story.after(answers.ran(2, "a")) == (ForwardRequest(inputs=RunInputs("Tom and Anna went")),)
    assert story.after(answers.ran(3)) == ()


def test_a_text_that_failed_is_not_tried_again_by_itself():
    story = running()
    story.after(SetText("too long"))
    assert story.after(answers.failure(ForwardRequest(inputs=RunInputs("too long")))) == ()
    story.after(OpenCheckpoint("b"))
    assert story.after(answers.failure(LoadRequest(reference="b"))) == ()
    assert story.state.notice is not None
    assert story.state.notice.lane == LoadRequest.lane  # and so the newer sentence stays


def test_a_text_that_failed_is_tried_when_it_is_typed_again():
    story = running()
    for text in ("too long", "short"):
        story.after(SetText(text))
        story.after(answers.failure(ForwardRequest(inputs=RunInputs(text))))
    assert story.after(SetText("too long")) == (ForwardRequest(inputs=RunInputs("too long")),)
    story.after(answers.failure(ForwardRequest(inputs=RunInputs("too long"))))
    story.after(RestoreDocument(Document(text="short")))
    assert story.after(RestoreDocument(Document(text="too long"))) == (ForwardRequest(inputs=RunInputs("too long")),)


def test_a_text_that_failed_is_tried_on_another_model():
    story = running()
    story.after(SetText("too long"))
    story.after(answers.failure(ForwardRequest(inputs=RunInputs("too long"))))
    story.after(OpenCheckpoint("b"))
    assert story.after(answers.loaded("b")) == (ForwardRequest(inputs=RunInputs("too long")),)


def test_a_step_runs_the_longer_text():
    story, (press, view) = running(), answers.stepping("Tom and Anna went to")
    assert story.after(press) == (view.request,)
    assert story.after(view) == (ForwardRequest(inputs=RunInputs("Tom and Anna went to")),)


def test_another_checkpoint_is_loaded_once():
    story = running()
    assert story.after(OpenCheckpoint("b")) == (LoadRequest(reference="b"),)
    assert story.after(OpenCheckpoint("b")) == ()
    assert story.after(OpenCheckpoint("c")) == (LoadRequest(reference="c"),)


def test_while_a_checkpoint_loads_its_text_does_not_run_on_the_old_model():
    story = running()
    story.after(OpenCheckpoint("b"))
    assert story.after(SetText("for b")) == ()
    assert story.after(answers.loaded("b")) == (ForwardRequest(inputs=RunInputs("for b")),)


def test_a_restored_text_waits_for_its_checkpoint():
    story = running()
    assert story.after(RestoreDocument(Document("b", "for b"))) == (LoadRequest(reference="b"),)
    assert story.after(answers.loaded("b", "Theirs")) == (ForwardRequest(inputs=RunInputs("for b")),)


def test_the_same_text_runs_again_on_another_model():
    story = running()
    story.after(OpenCheckpoint("b"))
    assert story.after(answers.loaded("b", example="Tom and Anna went")) == (
        ForwardRequest(inputs=RunInputs("Tom and Anna went")),
    )


def test_opening_the_same_checkpoint_afresh_runs_a_text_whose_run_it_called_off():
    story = running()
    story.after(SetText("a"))
    assert story.after(answers.loaded()) == (ForwardRequest(inputs=RunInputs("a")),)


def test_a_failed_switch_runs_what_was_typed_meanwhile_on_the_model_that_stayed():
    story = running()
    story.after(OpenCheckpoint("b"))
    story.after(SetText("typed"))
    assert story.after(answers.failure(LoadRequest(reference="b"))) == (ForwardRequest(inputs=RunInputs("typed")),)


def test_a_failed_switch_without_typing_asks_for_nothing():
    story = running()
    story.after(OpenCheckpoint("b"))
    assert story.after(answers.failure(LoadRequest(reference="b"))) == ()


def test_going_back_during_a_switch_loads_what_was_open_again():
    """The engine may already have let it go, so only a load makes sure which model answers."""
    story = running()
    story.after(OpenCheckpoint("b"))
    assert story.after(OpenCheckpoint("story-gpt")) == (LoadRequest(reference="story-gpt"),)
    assert story.after(SetText("typed")) == ()
    assert story.after(answers.loaded()) == (ForwardRequest(inputs=RunInputs("typed")),)


def test_trust_is_asked_for_once_a_checkpoint():
    story = running()
    story.after(answers.trust_report())
    story.after(SetText("a"))
    assert story.after(answers.ran(2, "a")) == ()
    story.after(OpenCheckpoint("b"))
    story.after(answers.loaded("b"))
    assert story.after(answers.ran(3, "a")) == (TrustRequest(run=3),)


def test_trust_that_was_not_answered_before_the_text_changed_is_asked_of_the_next_run():
    story = running()
    story.after(Busy(frozenset({TrustRequest.lane})))
    story.after(SetText("a"))
    assert story.after(answers.ran(2, "a")) == (TrustRequest(run=2),)


def test_a_long_run_is_not_checked_by_itself():
    long = answers.ran(1, "a")
    long = replace(long, sites=tuple(replace(site, queries=1025, keys=1025) for site in long.sites))
    story = Story()
    story.after(answers.loaded())
    assert not any(isinstance(request, TrustRequest) for request in story.after(long))


def test_a_b_that_is_let_go_leaves_the_engine():
    story = running()
    b = as_b(story.state)
    assert story.after(CompareWith(b)) == ()  # the panel asks for it where it is seen
    assert story.after(CompareWith(replace(b, name="theirs"))) == ()
    assert story.after(CompareWith(None)) == (DropOtherRequest(),)
    assert story.after(CompareWith(None)) == ()
