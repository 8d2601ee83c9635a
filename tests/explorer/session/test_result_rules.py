from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from attention_explorer.session.intents import (
    AskStep,
    Intent,
    OpenCheckpoint,
    PutIntervention,
    RestoreDocument,
    SelectCell,
    SelectHead,
    SelectKey,
    SelectQuery,
    SetPair,
    SetSecond,
    SetText,
)
from attention_explorer.session.state import Document, InterventionItem, Notice, Selection, State
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.atlas import AtlasView
from attention_models.protocol.chat import Pair
from attention_models.protocol.decoding import DecodeStepRequest
from attention_models.protocol.head import HeadView
from attention_models.protocol.interventions import Positions, Scale
from attention_models.protocol.loading import Described, DescribeRequest, Loaded, LoadRequest
from attention_models.protocol.prediction import PredictionRequest, PredictionView
from attention_models.protocol.recurrent_states import RecurrentRequest, RecurrentView
from attention_models.protocol.request import Failure, Result
from attention_models.protocol.running import ForwardRequest, RunInputs
from attention_models.protocol.trust import TrustReport
from attention_models.protocol.values import SiteRef
from tests.explorer.session import answers
from tests.explorer.session.answers import after

# --------------------------------------------------------------------------- a checkpoint arrives


def test_a_first_load_brings_its_example():
    state = after(State(), answers.loaded(example="Once upon"))
    assert state.document.text == "Once upon"
    assert state.results.loaded is not None


def test_a_text_of_ones_own_survives_a_switch(running):
    state = after(running, SetText("Mine"), OpenCheckpoint("b"), answers.loaded("b", "Theirs"))
    assert state.document.text == "Mine"


def test_an_example_gives_way_to_the_next_checkpoints(running):
    state = after(running, OpenCheckpoint("b"), answers.loaded("b", "Theirs"))
    assert state.document.text == "Theirs"
    assert state.loading is None


def test_an_example_stays_where_the_next_checkpoint_has_none(running):
    state = after(running, OpenCheckpoint("b"), answers.loaded("b", ""))
    assert state.document.text == running.document.text != ""


def pairing(reference: str, example: str, second: str) -> Loaded:
    result = answers.loaded(reference, example)
    return replace(result, info=replace(result.info, second=second, pairs=True))


def test_an_example_may_be_a_pair_and_goes_as_one(running):
    paired = after(running, OpenCheckpoint("b"), pairing("b", "Tom slept.", "He dreamt."))
    assert paired.document.prompt == Pair("Tom slept.", "He dreamt.")
    back = after(paired, OpenCheckpoint("c"), answers.loaded("c", "Theirs"))
    assert (back.document.text, back.document.second) == ("Theirs", None)
    assert back.notice is None


def test_a_second_text_of_ones_own_is_no_example(running):
    paired = after(running, OpenCheckpoint("b"), pairing("b", "Tom slept.", "He dreamt."), SetSecond("Mine"))
    state = after(paired, OpenCheckpoint("c"), pairing("c", "Theirs", "Too"))
    assert state.document.prompt == Pair("Tom slept.", "Mine")


def test_an_empty_text_is_offered_both_texts_of_the_example(running):
    paired = after(running, OpenCheckpoint("b"), pairing("b", "Tom slept.", "He dreamt."), SetText(""))
    request = ForwardRequest(inputs=paired.document.inputs)
    offered = after(paired, Failure(request=request, sentence="Nothing."))
    assert offered.notice is not None
    assert offered.notice.action == SetPair(Pair("Tom slept.", "He dreamt."))


def test_a_description_is_kept_and_a_fault_in_it_is_said_where_it_was_asked(running):
    request = DescribeRequest(reference="b")
    described = Described(request=request, refusal="No.")
    assert after(running, described).results.of(Described) is described
    failed = after(running, Failure(request=request, sentence="Something went wrong."))
    faulty = failed.results.of(Described)
    assert faulty is not None
    assert faulty.refusal == "Something went wrong."
    assert failed.notice is running.notice


def test_an_empty_text_takes_the_example_even_when_restored(running):
    state = after(running, RestoreDocument(Document("b")), answers.loaded("b", "Theirs"))
    assert state.document.text == "Theirs"


def test_nothing_of_the_old_model_stays_once_the_new_one_is_there(running):
    state = after(running, answers.head_view(), OpenCheckpoint("b"))
    assert state.results.of(HeadView) is not None
    state = after(state, answers.loaded("b"))
    assert (state.ran, state.results.of(HeadView), state.document.selection) == (None, None, Selection())


def test_a_restored_document_keeps_its_text_and_selection_through_load_and_run(running):
    there = Document("b", "Tom and Anna went", Selection(SiteRef("decoder", 1), head=2, query=1, key=1))
    state = after(running, RestoreDocument(there), answers.loaded("b", "Theirs"), answers.ran(2))
    assert state.document == there
    assert not state.restored


def test_a_checkpoint_nobody_waits_for_is_ignored(running):
    opening = after(running, OpenCheckpoint("c"))
    assert after(opening, answers.loaded("b")) is opening


def test_a_failed_load_goes_back_to_what_is_open(running):
    failed = after(running, OpenCheckpoint("b"), answers.failure(LoadRequest(reference="b"), "No such folder."))
    assert failed.document == running.document
    assert failed.results is running.results
    assert failed.loading is None
    assert failed.notice == Notice("error", "No such folder.", lane=LoadRequest.lane)


def test_a_failed_load_that_was_replaced_is_ignored(running):
    opening = after(running, OpenCheckpoint("b"), OpenCheckpoint("c"))
    assert after(opening, answers.failure(LoadRequest(reference="b"))) is opening


def test_the_next_checkpoint_takes_the_sentence_of_the_failed_one_away(running):
    failed = after(running, OpenCheckpoint("b"), answers.failure(LoadRequest(reference="b")))
    assert after(failed, OpenCheckpoint("c")).notice is None


# --------------------------------------------------------------------------- a run arrives


def test_the_first_run_chooses_where_to_look(running):
    assert running.document.selection == Selection(SiteRef("decoder", 5), head=5, query=3, key=0)


def test_the_first_run_keeps_a_selection_that_came_with_the_document():
    document = Document(text="Tom and Anna went", selection=Selection(SiteRef("decoder", 2), 3, query=1, key=1))
    assert after(State(document), answers.loaded(), answers.ran()).document == document


def test_a_first_run_replaces_a_selection_the_model_does_not_have():
    document = Document("b", text="Tom and Anna went", selection=Selection(SiteRef("encoder", 2), 3, query=1, key=1))
    state = after(State(document), answers.loaded("b"), answers.ran(layers=4))
    assert state.document.selection == Selection(SiteRef("decoder", 3), head=0, query=3, key=0)


def test_a_later_run_without_the_site_replaces_the_head_only(running):
    state = after(running, SelectQuery(1), answers.ran(2, layers=4))
    assert state.document.selection == Selection(SiteRef("decoder", 3), head=0, query=1, key=0)


def test_the_query_at_the_end_follows_the_end(running):
    longer = after(running, SetText("a b c d e f"), answers.ran(2, "a b c d e f"))
    assert longer.document.selection.query == 5
    shorter = after(longer, SetText("a b"), answers.ran(3, "a b"))
    assert shorter.document.selection.query == 1


def test_a_query_elsewhere_stays_and_is_clamped(running):
    state = after(running, SelectCell(2, 2), SetText("a b c d e"), answers.ran(2, "a b c d e"))
    assert state.document.selection.query == 2
    state = after(state, SetText("a"), answers.ran(3, "a"))
    assert (state.document.selection.query, state.document.selection.key) == (0, 0)


def test_the_selection_of_a_restored_text_does_not_follow_anything(running):
    there = replace(running.document, text="a b c d e f", selection=replace(running.document.selection, query=3))
    state = after(running, RestoreDocument(there), answers.ran(2, "a b c d e f"))
    assert state.document == there


def test_a_run_of_another_text_leaves_a_restored_selection_alone(running):
    there = replace(running.document, text="a b c d e f", selection=replace(running.document.selection, query=5))
    state = after(running, RestoreDocument(there), answers.ran(2, "a b"))
    assert state.document is there
    assert state.ran is not None
    assert state.ran.run == 2
    assert after(state, answers.ran(3, "a b c d e f")).document == there


def test_a_run_keeps_the_last_pictures_and_drops_the_trust(running):
    shown = after(running, answers.head_view(), answers.atlas_view(), answers.prediction_view(), answers.trust_report())
    state = after(shown, answers.ran(2))
    assert state.results.of(HeadView) is shown.results.of(HeadView)
    assert state.results.of(AtlasView) is shown.results.of(AtlasView)
    assert state.results.of(PredictionView) is shown.results.of(PredictionView)
    assert state.results.of(TrustReport) is None


def test_a_run_ends_what_was_said_about_the_one_before(running):
    failed = after(running, SetText("a"), answers.failure(ForwardRequest(inputs=RunInputs("a"))))
    assert failed.notice is not None
    assert after(failed, answers.ran(2, "a")).notice is None


@pytest.mark.parametrize("step", [(SetText("Tom and Anna went to"),), answers.stepping("Tom and Anna went to")])
def test_after_a_restored_text_was_changed_the_query_follows_again(running, step):
    moved = after(running, SelectKey(2))
    restored = after(moved, RestoreDocument(running.document))
    state = after(restored, *step, answers.ran(2, "Tom and Anna went to"))
    assert state.document.selection.query == 4


def test_opening_after_restoring_is_like_any_opening(running):
    restored = after(running, SelectKey(2), RestoreDocument(running.document))
    state = after(restored, OpenCheckpoint("b"), answers.loaded("b", "Theirs"))
    assert (state.document.text, state.document.selection) == ("Theirs", Selection())


# --------------------------------------------------------------------------- views of a run arrive

VIEWS: dict[str, Callable[..., Result]] = {
    "head": answers.head_view,
    "atlas": answers.atlas_view,
    "prediction": answers.prediction_view,
    "trust": answers.trust_report,
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_of_this_run_is_kept(running, name):
    view = VIEWS[name](run=1)
    assert after(running, view).results.of(type(view)) is view


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_of_another_run_is_ignored(running, name):
    assert after(running, VIEWS[name](run=7)) is running


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_ends_its_lanes_progress_and_failure(running, name):
    view = VIEWS[name](run=1)
    state = after(running, answers.failure(view.request), answers.progress(view.request))
    assert state.notice is not None
    assert state.live.progress
    state = after(state, view)
    assert state.notice is None
    assert not state.live.progress


def test_a_head_that_is_no_longer_selected_is_ignored(running):
    moved = after(running, SelectHead(SiteRef("decoder", 5), 4))
    assert after(moved, answers.head_view(head=5)) is moved


# --------------------------------------------------------------------------- a step arrives


def test_a_step_lengthens_the_text_and_the_query_follows_on_the_next_run(running):
    state = after(running, *answers.stepping("Tom and Anna went to"))
    assert state.document.text == "Tom and Anna went to"
    state = after(state, answers.ran(2, "Tom and Anna went to"))
    assert state.document.selection.query == 4


def test_a_model_that_ends_the_text_says_so(running):
    state = after(running, *answers.stepping(ended=True))
    assert state.document == running.document
    assert state.notice == Notice(
        "info", "The model ends the text here: its likeliest next token is ⟨end⟩ (68.4 %).", lane=DecodeStepRequest.lane
    )


def test_a_step_never_overwrites_what_was_typed_meanwhile(running):
    press, view = answers.stepping()
    typed = after(running, press, SetText("Mine"))
    assert after(typed, view) is typed
    assert after(typed, answers.failure(view.request, "The context is full.")) is typed


def test_a_step_nobody_waits_for_is_ignored(running):
    assert after(running, answers.stepped()) is running
    other = answers.stepped(inputs=RunInputs("Tom and"))
    asked = after(running, AskStep(answers.stepped().request))
    assert after(asked, other) is asked


def test_a_step_into_the_input_leaves_what_the_player_shows(running):
    state = after(running, *answers.stepping())
    assert state.results.decoded is None
    assert state.document.branches == running.document.branches


# --------------------------------------------------------------------------- progress and failures arrive


def test_progress_is_replaced_lane_by_lane_newest_last(running):
    load, trust = LoadRequest(reference="b"), answers.trust_report().request
    newest = answers.progress(load, "Building the model")
    state = after(running, answers.progress(load), answers.progress(trust), newest)
    assert [p.request for p in state.live.progress] == [trust, load]
    assert state.live.progress[-1] is newest


def test_a_text_that_is_too_long_offers_to_keep_what_fits(running):
    request = ForwardRequest(inputs=RunInputs("a b c d"))
    state = after(running, SetText("a b c d"), answers.failure(request, "Too long.", cut_to=3))
    assert state.notice == Notice("warning", "Too long.", "Keep what fits", SetText("a b"), lane=ForwardRequest.lane)
    assert isinstance(state.notice.action, Intent)
    kept = after(state, state.notice.action)
    assert (kept.document.text, kept.notice) == ("a b", None)


def test_a_step_beyond_the_context_has_nothing_to_cut(running):
    press, view = answers.stepping()
    state = after(running, press, answers.failure(view.request, "The context is full.", cut_to=3))
    assert state.notice == Notice("warning", "The context is full.", lane=DecodeStepRequest.lane)


@pytest.mark.parametrize(
    "failure",
    [
        answers.failure(answers.head_view().request, stale=True),
        answers.failure(answers.head_view(run=7).request),
        answers.failure(ForwardRequest(inputs=RunInputs("what was there before"))),
        answers.failure(LoadRequest(reference="another")),
    ],
)
def test_failures_nobody_needs_to_hear_of_only_end_their_progress(running, failure):
    state = after(running, answers.progress(failure.request), failure)
    assert (state.notice, state.live.progress) == (None, ())
    assert state.document is running.document


def test_a_textbook_model_takes_no_interventions_along():
    scale = PutIntervention(Scale(0.5))
    state = answers.after(State(), answers.loaded(), answers.ran(), scale, OpenCheckpoint("b"))
    result = answers.loaded("b")
    assert answers.after(state, result).document.interventions
    textbook = replace(result, info=replace(result.info, textbook=True))
    assert answers.after(state, textbook).document.interventions == ()


def test_a_model_that_gives_its_weights_alone_takes_positions_along():
    edits = PutIntervention(Scale(0.5)), PutIntervention(Positions("off"))
    state = answers.after(State(), answers.loaded(), answers.ran(), *edits, OpenCheckpoint("b"))
    result = answers.loaded("b")
    given = replace(result, info=replace(result.info, weights_only="Only the weights."))
    assert [listed.value for listed in answers.after(state, given).document.interventions] == [Positions("off")]


def test_the_stack_that_a_command_left_out_is_named_once_the_model_is_there():
    document = Document("a", interventions=(InterventionItem(Ablation("mlp", SiteRef("", 5)), on=False),))
    state = answers.after(State(document), answers.loaded("a"))
    assert state.document.interventions == (InterventionItem(Ablation("mlp", SiteRef("decoder", 5)), on=False),)
    encoder = answers.loaded("a")
    encoder = replace(encoder, info=replace(encoder.info, family="masked", stacks=()))
    state = answers.after(State(document), encoder)
    assert state.document.interventions == (InterventionItem(Ablation("mlp", SiteRef("encoder", 5)), on=False),)


def test_a_part_of_a_block_is_not_taken_to_another_model():
    skip = PutIntervention(Ablation("mlp", SiteRef("decoder", 1)))
    state = answers.after(State(), answers.loaded(), answers.ran(), skip, OpenCheckpoint("b"))
    assert len(state.document.interventions) == 1
    assert answers.after(state, answers.loaded("b")).document.interventions == ()


def test_a_part_is_switched_off_and_on_again(running):
    skip = Ablation("mlp", SiteRef("decoder", 1))
    state = answers.after(running, PutIntervention(skip), PutIntervention(skip))
    assert [listed.value for listed in state.document.interventions] == [skip]
    state = answers.after(state, PutIntervention(replace(skip, on=True)))
    assert state.document.interventions == ()


def test_hidden_states_of_another_run_are_dropped():
    nothing = np.zeros((1, 1), np.float32)

    def view(run: int) -> RecurrentView:
        return RecurrentView(
            request=RecurrentRequest(run=run),
            score="none",
            scope="global",
            cell="gru",
            encoder=(nothing,),
            states=nothing,
            contexts=nothing,
            scores=None,
            masked=None,
            weights=None,
        )

    state = answers.after(State(), answers.loaded(), answers.ran(run=2))
    assert answers.after(state, view(1)).results.of(RecurrentView) is None
    mine = view(2)
    assert answers.after(state, mine).results.of(RecurrentView) is mine


@pytest.mark.parametrize(
    ("before", "after_"),
    [("", "sample:chelsea"), ("sample:fish-1", "sample:chelsea"), ("/my/own.png", "/my/own.png")],
)
def test_a_vision_model_gets_a_sample_unless_a_picture_was_chosen(before, after_):
    state = answers.after(State(Document(picture=before)), answers.loaded(), answers.ran(), OpenCheckpoint("vit"))
    result = answers.loaded("vit", example="")
    vision = replace(result, info=replace(result.info, family="vision", channels=3))
    assert answers.after(state, vision).document.picture == after_
    assert answers.after(state, result).document.picture == before


# --------------------------------------------------------------------------- what could not be had


def test_a_view_that_fails_takes_the_last_one_away_and_no_other(running):
    state = after(running, answers.atlas_view(), answers.prediction_view(), answers.ran(2))
    assert state.results.of(PredictionView) is not None
    request = PredictionRequest(run=2, positions=(3,), top=10)
    failed = after(state, Failure(request=request, sentence="It failed."))
    assert failed.results.of(PredictionView) is None
    assert failed.results.of(AtlasView) is state.results.of(AtlasView) is not None
    assert failed.notice == Notice("error", "It failed.", lane=request.lane)


def test_a_view_of_a_run_that_is_gone_takes_nothing_away(running):
    state = after(running, answers.ran(2), answers.prediction_view(2))
    request = PredictionRequest(run=1, positions=(3,), top=10)
    assert after(state, Failure(request=request, sentence="It failed.")).results is state.results


def test_a_run_without_figures_leaves_none_on_screen(running):
    state = after(running, answers.atlas_view(), answers.prediction_view())
    question = ForwardRequest(inputs=state.document.inputs)
    failed = after(state, Failure(request=question, sentence="It overflowed.", no_figures=True))
    assert failed.ran is None
    assert failed.results.of(PredictionView) is None
    assert failed.results.of(AtlasView) is None
    assert failed.results.loaded is state.results.loaded
    assert failed.refused == state.document.inputs
    kept = after(state, Failure(request=question, sentence="It is too long.", cut_to=3))
    assert kept.results is state.results  # the window stays as it was: what is named there is what is drawn
