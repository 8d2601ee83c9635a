"""Where a model runs: chosen, kept where it cannot be had, and what is offered where there is no room."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attention_explorer.session.intents import Arrived, Busy, Intent, OpenCheckpoint, Place, SelectCell, SetText
from attention_explorer.session.session import effects, initial_requests
from attention_explorer.session.state import Document, Notice, State
from attention_models.protocol.export import ExportRequest
from attention_models.protocol.head import HeadRequest
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.request import Failure
from attention_models.protocol.running import ForwardRequest, RunInputs
from attention_models.protocol.values import BEST, Placement, SiteRef
from tests.explorer.session import answers
from tests.explorer.session.answers import after

GPU = Placement("cuda:0", "bfloat16")


def notice_of(state: State) -> Notice:
    assert state.notice is not None
    return state.notice


def action_of(state: State) -> Intent:
    action = notice_of(state).action
    assert isinstance(action, Intent)
    return action


def without_room(request, device="cuda:0", dtype="float32"):
    return Arrived(Failure(request=request, sentence="No room.", no_room=Placement(device, dtype)))


def test_the_first_load_goes_where_the_command_line_says():
    assert initial_requests(State(placement=GPU)) == (LoadRequest(reference="story-gpt", placement=GPU),)


def test_another_place_loads_the_same_checkpoint_and_keeps_what_is_on_screen(running):
    chosen = after(running, SelectCell(3, 1))
    placed = after(chosen, Place(GPU))
    assert placed.document == chosen.document
    assert placed.results is chosen.results
    assert effects(chosen, placed) == (LoadRequest(reference=running.document.checkpoint, placement=GPU),)
    arrived = after(placed, Arrived(answers.loaded(placement=GPU)))
    assert arrived.document == chosen.document
    assert arrived.results.loaded is not running.results.loaded
    ran = after(arrived, Arrived(answers.ran(2, chosen.document.text)))
    assert (ran.selection.query, ran.selection.key) == (3, 1)


@pytest.mark.parametrize("intent", [Place(GPU), OpenCheckpoint("story-bert")])
def test_a_load_that_breaks_off_the_saving_of_weights_says_so(running, intent):
    """The mailbox drops a file that is being written when another model is asked for: nobody would hear of it."""
    assert after(running, Busy(frozenset({ForwardRequest.lane})), intent).notice is None
    loading = after(running, Busy(frozenset({ExportRequest.lane})), intent)
    assert "Saving the weights was broken off" in notice_of(loading).text
    wanted = answers.loaded(loading.document.checkpoint, placement=loading.placement)
    opened = after(loading, Busy(frozenset()), Arrived(wanted))
    assert opened.results.loaded is wanted
    assert notice_of(opened) is notice_of(loading)
    assert after(opened, SetText("Another text.")).notice is None


@pytest.mark.parametrize(("chosen", "then"), [(3, 7), (1, 1)])
@pytest.mark.parametrize("framed", [False, True])
def test_a_selection_at_the_end_stays_there_when_another_text_runs_in_another_place(chosen, then, framed):
    """A text that has no room is pasted, and the smaller format that is offered is chosen."""
    text, shift = "Tom and Anna went to the park today", int(framed)
    start = after(State(), answers.loaded(), answers.ran(framed=framed), SelectCell(chosen + shift, 1))
    placed = after(start, SetText(text), Place(GPU))
    assert placed.selection.query == chosen + shift + (1 if framed and chosen == 3 else 0)  # within what is on screen
    opened = after(placed, Arrived(answers.loaded(placement=GPU)))
    assert after(opened, Arrived(answers.ran(2, text, framed=framed))).selection.query == then + shift


def test_choosing_what_is_chosen_does_nothing(running):
    assert after(running, Place(running.placement)) is running


def test_two_places_in_a_row_the_last_one_counts(running):
    first = after(running, Place(GPU))
    second = after(first, Place(Placement("cpu")))
    assert effects(first, second) == (LoadRequest(reference="story-gpt", placement=Placement("cpu")),)
    late = after(second, Arrived(answers.loaded(placement=GPU)))
    assert late.results.loaded is running.results.loaded


def test_a_place_that_can_not_be_had_leaves_the_model_where_it_is(running):
    request = LoadRequest(reference="story-gpt", placement=GPU)
    failed = after(running, Place(GPU), Arrived(Failure(request=request, sentence="No such device.")))
    assert failed.placement == running.placement
    assert failed.loading is None
    assert notice_of(failed).text == "No such device."
    assert failed.ran is running.ran


def test_a_text_without_room_is_offered_a_smaller_format_then_the_cpu(running):
    request = ForwardRequest(inputs=RunInputs(running.document.text))
    smaller = notice_of(after(running, without_room(request)))
    assert (smaller.action_label, smaller.action) == ("Use bfloat16", Place(Placement("cuda:0", "bfloat16")))
    on_cpu = notice_of(after(running, without_room(request, dtype="bfloat16")))
    assert (on_cpu.action_label, on_cpu.action) == ("Use the CPU", Place(Placement("cpu", "bfloat16")))
    assert notice_of(after(running, without_room(request, "cpu", "float16"))).action is None


def test_a_checkpoint_without_room_is_the_one_that_the_button_opens(running):
    opening = after(running, OpenCheckpoint("big"))
    failed = after(opening, without_room(LoadRequest(reference="big", placement=opening.placement)))
    assert failed.document.checkpoint == "story-gpt"
    again = after(failed, action_of(failed))
    assert effects(failed, again) == (LoadRequest(reference="big", placement=GPU),)
    assert again.document.checkpoint == "big"
    assert again.notice is None


def test_a_view_without_room_offers_the_same(running):
    site = SiteRef("decoder", 0)
    failed = after(running, without_room(HeadRequest(run=1, site=site, head=0), BEST))
    assert action_of(failed) == Place(Placement(BEST, "bfloat16"))


def test_another_checkpoint_opens_where_the_last_one_was_put(running):
    placed = after(running, Place(GPU), Arrived(answers.loaded(placement=GPU)))
    opening = after(placed, OpenCheckpoint("en-es"))
    assert effects(placed, opening) == (LoadRequest(reference="en-es", placement=GPU),)


def test_text_typed_while_it_moves_runs_there(running):
    moving = after(running, Place(GPU), SetText("Something else"))
    there = after(moving, Arrived(answers.loaded(placement=GPU)))
    assert there.document.text == "Something else"
    assert effects(moving, there)[0] == ForwardRequest(inputs=RunInputs("Something else"))


def test_a_document_restored_elsewhere_keeps_the_place(running):
    state = replace(State(document=Document(text="Hi")), placement=GPU)
    assert after(state, OpenCheckpoint("en-es")).placement == GPU
