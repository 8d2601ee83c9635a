from __future__ import annotations

import threading
from itertools import pairwise

import pytest

from attention_explorer.compute.mailbox import Mailbox
from attention_models.protocol.atlas import AtlasRequest
from attention_models.protocol.decoding import into_input
from attention_models.protocol.head import HeadRequest
from attention_models.protocol.interventions import Scale
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.request import Request
from attention_models.protocol.running import ForwardRequest, RerunRequest, RunInputs
from attention_models.protocol.trust import TrustRequest
from attention_models.protocol.values import SiteRef


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


def head(number: int) -> HeadRequest:
    return HeadRequest(run=1, site=SiteRef("decoder", 0), head=number)


def take_all(mailbox: Mailbox) -> list[Request]:
    taken = []
    while (request := mailbox.take(timeout=0)) is not None:
        mailbox.done()
        taken.append(request)
    return taken


def test_tickets_grow_and_the_request_stays_the_same(mailbox):
    first, second = mailbox.post(head(1)), mailbox.post(head(2))
    assert second.ticket > first.ticket > 0
    assert (first.run, first.site, first.head) == (1, SiteRef("decoder", 0), 1)


def test_the_newest_of_a_lane_is_the_only_one_handed_out(mailbox):
    older, newer = (
        mailbox.post(ForwardRequest(inputs=RunInputs("a"))),
        mailbox.post(ForwardRequest(inputs=RunInputs("b"))),
    )
    assert mailbox.superseded(older)
    assert mailbox.is_current(newer)
    assert take_all(mailbox) == [newer]


def test_lanes_do_not_replace_each_other(mailbox):
    posted = [mailbox.post(head(1)), mailbox.post(AtlasRequest(run=1, size=8)), mailbox.post(TrustRequest(run=1))]
    assert all(mailbox.is_current(request) for request in posted)
    assert take_all(mailbox) == posted


def test_a_load_comes_first_then_the_text_then_whoever_waits_longest(mailbox):
    load = mailbox.post(LoadRequest(reference="a"))
    step = mailbox.post(into_input(RunInputs("a")))
    mailbox.post(head(1))
    forward = mailbox.post(ForwardRequest(inputs=RunInputs("a")))
    atlas = mailbox.post(AtlasRequest(run=1, size=8))
    newest_head = mailbox.post(head(2))  # keeps the place of the one it replaces
    assert take_all(mailbox) == [load, forward, step, newest_head, atlas]


def test_a_load_supersedes_everything_older_in_every_lane(mailbox):
    older = [
        mailbox.post(ForwardRequest(inputs=RunInputs("a"))),
        mailbox.post(head(1)),
        mailbox.post(LoadRequest(reference="a")),
    ]
    running = mailbox.take(timeout=0)
    assert running == older[-1]
    load = mailbox.post(LoadRequest(reference="b"))
    later = mailbox.post(ForwardRequest(inputs=RunInputs("a")))
    assert all(mailbox.superseded(request) for request in older)
    assert mailbox.is_current(load)
    assert mailbox.is_current(later)
    assert take_all(mailbox) == [load, later]


def test_other_lanes_do_not_supersede_a_load(mailbox):
    load = mailbox.post(LoadRequest(reference="a"))
    mailbox.post(ForwardRequest(inputs=RunInputs("a")))
    assert mailbox.is_current(load)


def test_the_same_request_is_not_posted_twice_while_it_waits_or_runs(mailbox):
    first = mailbox.post(head(1))
    assert mailbox.post(head(1)) is first
    assert mailbox.take(timeout=0) is first
    assert mailbox.post(head(1)) is first
    assert mailbox.take(timeout=0) is None


def test_the_same_request_is_posted_again_once_it_is_answered(mailbox):
    first = mailbox.post(head(1))
    mailbox.take(timeout=0)
    mailbox.done()
    again = mailbox.post(head(1))
    assert again.ticket > first.ticket
    assert take_all(mailbox) == [again]


def test_a_running_request_that_was_replaced_does_not_stand_for_a_new_one(mailbox):
    first = mailbox.post(head(1))
    mailbox.take(timeout=0)
    mailbox.post(head(2))
    again = mailbox.post(head(1))
    assert mailbox.superseded(first)
    assert take_all(mailbox) == [again]


def test_a_running_request_that_a_load_called_off_does_not_stand_for_a_new_one(mailbox):
    mailbox.post(head(1))
    mailbox.take(timeout=0)
    load = mailbox.post(LoadRequest(reference="a"))
    again = mailbox.post(head(1))
    assert take_all(mailbox) == [load, again]


def test_a_lane_is_called_off_and_no_other(mailbox):
    running = mailbox.post(head(1))
    assert mailbox.take(timeout=0) == running
    waiting, other = mailbox.post(head(2)), mailbox.post(ForwardRequest(inputs=RunInputs("a")))
    mailbox.call_off(HeadRequest.lane)
    assert mailbox.superseded(running)
    assert mailbox.superseded(waiting)
    assert take_all(mailbox) == [other]
    again = mailbox.post(head(2))
    assert mailbox.is_current(again)
    assert take_all(mailbox) == [again]


def test_taking_from_an_empty_box_times_out(mailbox):
    assert mailbox.take(timeout=0.001) is None


def test_closing_calls_everything_off(mailbox):
    waiting = mailbox.post(head(1))
    mailbox.close()
    late = mailbox.post(head(2))
    assert mailbox.superseded(waiting)
    assert mailbox.superseded(late)
    assert mailbox.take() is None


def test_closing_wakes_a_waiting_thread(mailbox):
    taken: list[Request | None] = []
    thread = threading.Thread(target=lambda: taken.append(mailbox.take()))
    thread.start()
    mailbox.close()
    thread.join(timeout=10)
    assert taken == [None]


def test_many_threads_post_and_the_newest_of_each_lane_is_taken_last(mailbox):
    threads, posts = 8, 300
    posted: list[list[Request]] = [[] for _ in range(threads)]
    taken: list[Request] = []
    start = threading.Barrier(threads + 1)

    def post(number: int) -> None:
        start.wait()
        for i in range(posts):
            request = ForwardRequest(inputs=RunInputs(f"{number}.{i}")) if i % 2 else head(number * posts + i)
            posted[number].append(mailbox.post(request))

    def take() -> None:
        while (request := mailbox.take()) is not None:
            mailbox.done()
            taken.append(request)

    posters = [threading.Thread(target=post, args=(number,)) for number in range(threads)]
    taker = threading.Thread(target=take)
    for thread in (*posters, taker):
        thread.start()
    start.wait()
    for thread in posters:
        thread.join()
    newest = {
        lane: max((r for own in posted for r in own if r.lane == lane), key=lambda r: r.ticket)
        for lane in (ForwardRequest.lane, HeadRequest.lane)
    }
    while any(r not in taken for r in newest.values()):
        threading.Event().wait(0.001)
    mailbox.close()
    taker.join(timeout=10)

    tickets = [request.ticket for own in posted for request in own]
    assert len(set(tickets)) == threads * posts
    for lane, request in newest.items():
        in_lane = [r.ticket for r in taken if r.lane == lane]
        assert in_lane[-1] == request.ticket
        assert all(a < b for a, b in pairwise(in_lane))


def test_what_runs_is_called_off_and_can_be_asked_again(mailbox):
    mailbox.post(head(1))
    running = mailbox.take(timeout=0)
    mailbox.call_off(running.lane)
    assert mailbox.superseded(running)
    again = mailbox.post(head(1))
    assert again.ticket > running.ticket
    assert mailbox.is_current(again)


# --------------------------------------------------------------------------- a lane that finishes


def edited(factor: float) -> RerunRequest:
    return RerunRequest(inputs=RunInputs("a", interventions=(Scale(factor),)))


def test_where_a_lane_finishes_a_newer_request_waits_for_the_one_that_runs(mailbox):
    running = mailbox.post(edited(0.5))
    assert mailbox.take(timeout=0) is running
    skipped, newest = mailbox.post(edited(0.6)), mailbox.post(edited(0.7))
    assert mailbox.is_current(running)
    assert mailbox.superseded(skipped)
    mailbox.done()
    assert mailbox.take(timeout=0) is None  # its answer is still on its way
    assert mailbox.is_current(running)
    mailbox.handled(running)
    assert take_all(mailbox) == [newest]
    assert mailbox.is_current(newest)


def test_the_newer_one_comes_behind_what_the_answer_led_others_to_ask(mailbox):
    running = mailbox.post(edited(0.5))
    mailbox.take(timeout=0)
    newest = mailbox.post(edited(0.7))
    mailbox.done()
    follows = mailbox.post(head(3))
    mailbox.handled(running)
    assert take_all(mailbox) == [follows, newest]


def test_another_text_cancels_the_run_of_an_edit(mailbox):
    running = mailbox.post(edited(0.5))
    mailbox.take(timeout=0)
    text = mailbox.post(ForwardRequest(inputs=RunInputs("b")))
    assert mailbox.superseded(running)
    mailbox.done()
    assert take_all(mailbox) == [text]


def test_an_edit_cancels_the_run_of_a_text(mailbox):
    running = mailbox.post(ForwardRequest(inputs=RunInputs("b")))
    mailbox.take(timeout=0)
    newest = mailbox.post(edited(0.5))
    assert mailbox.superseded(running)
    mailbox.done()
    assert take_all(mailbox) == [newest]


@pytest.mark.parametrize("by", ["a load", "calling off", "closing"])
def test_what_ends_a_run_in_a_lane_that_finishes(mailbox, by):
    running = mailbox.post(edited(0.5))
    mailbox.take(timeout=0)
    mailbox.post(edited(0.6))
    if by == "a load":
        mailbox.post(LoadRequest(reference="b"))
    elif by == "calling off":
        mailbox.call_off(running.lane)
    else:
        mailbox.close()
    assert mailbox.superseded(running)
    mailbox.done()
    left = take_all(mailbox)
    assert [type(request) for request in left] == ([LoadRequest] if by == "a load" else [])
    if by != "closing":
        again = mailbox.post(edited(0.7))
        assert take_all(mailbox) == [again]
