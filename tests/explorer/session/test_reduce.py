from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_explorer.session.intents import (
    AskSamples,
    AskStep,
    Busy,
    DeleteBranch,
    GoToNode,
    Intent,
    NameBranch,
    OpenCheckpoint,
    RemoveIntervention,
    RemoveText,
    RestoreDocument,
    SayInTurn,
    SelectCell,
    SelectHead,
    SelectHeadOfB,
    SelectKey,
    SelectQuery,
    SetText,
    SetView,
    Show,
    ShowText,
    SwapStates,
    SwitchIntervention,
)
from attention_explorer.session.reduce import reduce
from attention_explorer.session.state import Document, Notice, Selection, State
from attention_explorer.session.view_options import ViewOptions
from attention_explorer.session.writing import TEXTS_KEPT
from attention_models.protocol.cell import CellRequest
from attention_models.protocol.decoding import DecodeStepRequest
from attention_models.protocol.export import ExportRequest
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.running import ForwardRequest
from attention_models.protocol.trust import TrustReport
from attention_models.protocol.values import SiteRef
from tests.explorer.session import answers
from tests.explorer.session.answers import after
from tests.explorer.session.strategies import intents


def test_typing_keeps_the_last_results_on_screen(running):
    typed = after(running, SetText("Tom and"))
    assert typed.document.text == "Tom and"
    assert typed.results is running.results
    assert not typed.up_to_date


@pytest.mark.parametrize("lane", [None, DecodeStepRequest.lane, ExportRequest.lane, CellRequest.lane])
def test_going_on_takes_away_what_was_said_of_something_else(running, lane):
    said = after(running, Show(Notice("error", "Something.", lane=lane)))
    assert after(said, SetView("mean_column", True)).notice is None
    assert after(said, Busy(frozenset({ForwardRequest.lane}))).notice is said.notice


@pytest.mark.parametrize("lane", [LoadRequest.lane, ForwardRequest.lane])
def test_what_was_said_of_the_checkpoint_or_the_text_stays_while_they_do(running, lane):
    said = after(running, Show(Notice("error", "Something.", lane=lane)))
    assert after(said, SetView("mean_column", True)).notice is said.notice


@pytest.mark.parametrize(
    ("restored", "settled"),
    [
        (Selection(SiteRef("decoder", 5), head=99, query=1, key=0), (SiteRef("decoder", 5), 7, 1, 0)),
        (Selection(SiteRef("decoder", 5), head=3, query=99, key=99), (SiteRef("decoder", 5), 3, 3, 3)),
        (Selection(SiteRef("cross", 5), head=3, query=1, key=0), (SiteRef("decoder", 5), 5, 1, 0)),
    ],
)
def test_a_restored_selection_is_settled_where_nothing_runs_for_it(running, restored, settled):
    state = after(running, RestoreDocument(replace(running.document, selection=restored)))
    selection = state.document.selection
    assert (selection.site, selection.head, selection.query, selection.key) == settled
    assert not state.restored


def test_the_same_text_changes_nothing(running):
    assert after(running, SetText(running.document.text)) is running


@pytest.mark.parametrize(
    ("lane", "stays"),
    [(ForwardRequest.lane, False), (DecodeStepRequest.lane, False), (LoadRequest.lane, True), (None, False)],
)
def test_typing_takes_away_what_was_said_about_the_text(running, lane, stays):
    notice = Notice("error", "Something.", lane=lane)
    typed = after(running, Show(notice), SetText("Tom and"))
    assert typed.notice == (notice if stays else None)


def test_opening_keeps_everything_that_is_open(running):
    opening = after(running, OpenCheckpoint("story-bert"))
    assert opening.document == replace(running.document, checkpoint="story-bert")
    assert opening.loading == "story-bert"
    assert opening.results is running.results


def test_opening_what_is_open_changes_nothing(running):
    assert after(running, OpenCheckpoint("story-gpt")) is running


def test_going_back_to_what_is_open_while_another_loads_is_a_load_too(running):
    back = after(running, OpenCheckpoint("story-bert"), OpenCheckpoint("story-gpt"))
    assert back.loading == "story-gpt"
    assert back.document == running.document


def test_a_first_load_that_failed_can_be_tried_again():
    failed = after(State(), answers.failure(LoadRequest(reference="story-gpt")))
    again = after(failed, OpenCheckpoint("story-gpt"))
    assert again.loading == "story-gpt"
    assert again.notice is None


def test_selecting_a_head_keeps_the_cell(running):
    selected = after(running, SelectCell(2, 1), SelectHead(SiteRef("decoder", 3), 2))
    assert selected.selection == Selection(SiteRef("decoder", 3), head=2, query=2, key=1)


@pytest.mark.parametrize(
    ("site", "head", "sentence"),
    [
        (SiteRef("decoder", 9), 0, r"no decoder layer 9: the decoder layers are 0 to 7\."),
        (SiteRef("encoder", 0), 0, r"no encoder layer 0: this model has no encoder attention"),
        (SiteRef("decoder", 1), 8, r"no head 8 in decoder layer 1: its heads are 0 to 7\."),
        (SiteRef("decoder", 1), -1, r"no head -1 in decoder layer 1"),
    ],
)
def test_a_head_that_did_not_run_is_refused_with_a_sentence(running, site, head, sentence):
    with pytest.raises(ValueError, match=sentence):
        after(running, SelectHead(site, head))


def test_no_head_can_be_selected_before_anything_ran():
    with pytest.raises(ValueError, match="no text has run yet"):
        after(State(), SelectHead(SiteRef("decoder", 0), 0))


@pytest.mark.parametrize(
    ("intent", "cell"),
    [
        (SelectQuery(99), (3, 0)),
        (SelectQuery(-1), (0, 0)),
        (SelectKey(99), (3, 3)),
        (SelectKey(2), (3, 2)),
        (SelectCell(1, 99), (1, 3)),
    ],
)
def test_cells_are_clamped_to_the_tokens_that_ran(running, intent, cell):
    selection = after(running, intent).document.selection
    assert (selection.query, selection.key) == cell


def test_selecting_what_is_selected_changes_nothing(running):
    assert after(running, SelectQuery(3)) is running


@pytest.mark.parametrize(
    ("option", "value"),
    [("normalisation", "row"), ("colour_map", "magma"), ("mean_column", True), ("words", True), ("top", 5)],
)
def test_a_view_option_is_set(running, option, value):
    assert after(running, SetView(option, value)).document.view == replace(ViewOptions(), **{option: value})


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("colour", "red", r"no view option 'colour': there are normalisation, colour_map"),
        (
            "normalisation",
            "diagonal",
            r"cannot be 'diagonal': it is one of 'none', 'row', 'column', 'difference', 'raw', 'scaled', 'masked'\.",
        ),
        ("normalisation", [], r"cannot be \[\]: it is one of"),
        ("mean_column", 1, r"cannot be 1: it is a bool\."),
        ("top", True, r"cannot be True: it is a int\."),
        ("top", 0, r"at least one candidate"),
    ],
)
def test_a_view_option_that_does_not_exist_is_refused_with_a_sentence(running, option, value, sentence):
    with pytest.raises(ValueError, match=sentence):
        after(running, SetView(option, value))


def test_restoring_brings_the_whole_document_back_unclamped(running):
    document = Document("story-gpt", "a longer text than ran", Selection(SiteRef("decoder", 2), 1, query=4, key=4))
    restored = after(running, RestoreDocument(document))
    assert restored.document is document
    assert restored.loading is None
    assert restored.selection.query == 3  # what the panels see stays within what ran


def test_restoring_another_checkpoint_opens_it(running):
    assert after(running, RestoreDocument(Document("en-es"))).loading == "en-es"


def test_restoring_what_is_there_changes_nothing(running):
    assert after(running, RestoreDocument(replace(running.document))) is running


def test_a_notice_comes_and_goes(running):
    notice = Notice("info", "Read this.")
    assert after(running, Show(notice)).notice is notice
    assert after(running, Show(notice), Show(None)).notice is None


def test_lanes_that_are_no_longer_busy_make_no_progress(running):
    load, trust = LoadRequest(reference="b"), answers.trust_report().request
    state = after(
        running,
        answers.progress(load),
        answers.progress(trust),
        Busy(frozenset({LoadRequest.lane, ForwardRequest.lane})),
    )
    assert state.live.busy == {LoadRequest.lane, ForwardRequest.lane}
    assert [p.request for p in state.live.progress] == [load]


def test_an_intent_without_a_rule_is_a_type_error(running):
    with pytest.raises(TypeError, match="Intent"):
        reduce(running, Intent())


# --------------------------------------------------------------------------- any sequence at all


@settings(deadline=None)
@given(st.lists(intents(), max_size=25))
def test_any_sequence_keeps_the_state_whole_and_every_older_one_as_it_was(sequence):
    state = State()
    for intent in sequence:
        kept = (state.document, repr(state.document), state.results, state.notice, state.live.progress, state.live.busy)
        try:
            new = reduce(state, intent)
        except ValueError:
            refusable = SelectHead | SetView | SayInTurn | SwitchIntervention | RemoveIntervention
            of_texts = ShowText | RemoveText
            of_b = SwapStates | SelectHeadOfB
            of_branches = AskStep | AskSamples | GoToNode | NameBranch | DeleteBranch
            assert isinstance(intent, refusable | of_texts | of_b | of_branches)  # the only ones that may be refused
            new = state
        assert kept == (
            state.document,
            repr(state.document),
            state.results,
            state.notice,
            state.live.progress,
            state.live.busy,
        )
        state = new
        check(state)


def check(state: State) -> None:
    """What holds in every state."""
    loaded, ran, selection = state.results.loaded, state.ran, state.selection
    assert state.loading in (None, state.document.checkpoint)
    if loaded is not None and state.loading is None:
        assert loaded.info.reference == state.document.checkpoint
    if ran is not None:
        assert 0 <= selection.query < max(1, len(ran.tokens))
        assert 0 <= selection.key < max(1, len(ran.tokens))
        report = state.results.of(TrustReport)
        assert report is None or report.request.run == ran.run
    if state.site is not None:
        assert 0 <= selection.head < state.site.heads
    lanes = [p.request.lane for p in state.live.progress]
    assert len(lanes) == len(set(lanes))
    origins = [writing.origin for writing in state.document.writings]
    assert len(origins) == len(set(origins)) <= TEXTS_KEPT
    for writing in state.document.writings:
        assert writing.branches.current in writing.branches
        assert all(node.parent in writing.branches for node in writing.branches.nodes)
    if state.pending_step is not None:
        assert state.pending_step.request.inputs.prompt == state.document.text
        assert all(parent in state.document.branches for parent in state.pending_step.parents)
        assert 0 < state.passage <= state.passages
