"""A measurement is a chain of short requests: begun, carried on by each answer, called off by a load, stopped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attention_explorer.session.intents import Arrived, Intent, Measure, OpenCheckpoint, SetText
from attention_explorer.session.state import State
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.quality import QualityRequest, QualityView
from attention_models.protocol.request import Progress, Request, Result
from tests.explorer.session import answers
from tests.explorer.session.answers import QUALITY as REQUEST
from tests.explorer.session.answers import quality_view as view
from tests.explorer.session.test_effects import Story


class Measuring(Story):
    def after(self, step: Intent | Result) -> tuple[Request, ...]:
        return tuple(r for r in super().after(step) if isinstance(r, (QualityRequest, LoadRequest)))


@pytest.fixture
def story() -> Measuring:
    story = Measuring()
    story.after(answers.loaded())
    story.after(answers.ran())
    return story


def test_each_answer_asks_for_the_next_batch_up_to_the_last(story):
    assert story.after(Measure(REQUEST)) == (REQUEST,)
    assert story.after(view(3)) == (replace(REQUEST, done=3),)
    assert story.after(view(6)) == (replace(REQUEST, done=6),)
    assert story.after(view(12)) == ()
    assert story.state.measuring is None
    assert story.state.results.of(QualityView).ended


def test_the_text_and_the_selection_go_their_own_way_meanwhile(story):
    story.after(Measure(REQUEST))
    document = story.state.document
    story.after(view(3))
    assert story.state.document is document
    assert story.after(SetText("another text")) == ()
    assert story.state.measuring == replace(REQUEST, done=3)


def test_stopped_the_engine_is_told_and_what_was_measured_stays(story):
    story.after(Measure(REQUEST))
    story.after(view(3))
    shown = story.state.results.of(QualityView)
    assert story.after(Measure(None)) == (replace(REQUEST, done=3, stop=True),)
    assert story.state.results.of(QualityView) is shown
    assert story.after(view(3, request=replace(REQUEST, done=3, stop=True, ticket=9))) == ()
    assert story.state.measuring is None
    assert story.after(Measure(None)) == ()


def test_a_load_calls_the_batch_off_and_it_is_asked_for_again_after_it(story):
    story.after(Measure(REQUEST))
    story.after(view(3))
    asked = story.after(OpenCheckpoint("en-es"))
    assert asked == (LoadRequest(reference="en-es"), replace(REQUEST, done=3))
    assert story.after(answers.loaded("en-es")) == ()
    assert story.state.results.of(QualityView).done == 3
    assert story.state.measuring == replace(REQUEST, done=3)


def test_a_new_measurement_takes_the_place_of_the_last(story):
    story.after(Measure(REQUEST))
    story.after(view(12))
    other = replace(REQUEST, pairs="")
    assert story.after(Measure(other)) == (other,)
    assert story.state.results.of(QualityView) is None


def test_a_failure_ends_it_with_a_sentence(story):
    story.after(Measure(REQUEST))
    failure = answers.failure(REQUEST)
    story.after(failure)
    assert story.state.measuring is None
    assert story.state.notice.text == failure.sentence
    assert story.state.notice.lane == QualityRequest.lane
    story.after(Measure(REQUEST))
    assert story.state.notice is None


def test_one_that_the_engine_no_longer_holds_ends_silently(story):
    story.after(Measure(REQUEST))
    story.after(replace(answers.failure(REQUEST), stale=True))
    assert story.state.measuring is None
    assert story.state.notice is None


def test_its_progress_is_kept_until_its_answer(story):
    story.after(Measure(REQUEST))
    story.after(Progress(request=REQUEST, label="Opening a"))
    assert [p.label for p in story.state.live.progress] == ["Opening a"]
    story.after(view(3))
    assert story.state.live.progress == ()


def test_nothing_to_stop_changes_nothing():
    story = Measuring(State())
    before = story.state
    assert story.after(Measure(None)) == ()
    assert story.state is before
    assert story.after(Arrived(view(12))) == ()
