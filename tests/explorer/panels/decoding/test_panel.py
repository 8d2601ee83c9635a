"""The Decode panel, driven by mouse and keyboard, with answers of the real engine."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt

from explorer.panels.decoding.cache_page import bytes_text, cache_text
from explorer.panels.decoding.knobs import DecodeKnobs
from explorer.panels.decoding.layout import log_text
from explorer.panels.decoding.panel import DecodingPanel
from explorer.panels.decoding.player_view import ATTENTION, BRANCHES, CACHE
from explorer.session import files
from explorer.session.branches import MOST_NODES, ROOT, Branches
from explorer.session.decoding import Decoding
from explorer.session.intents import (
    Arrived,
    Busy,
    OpenCheckpoint,
    PutIntervention,
    RestoreDocument,
    SelectHead,
    SetDecoding,
    SetText,
)
from explorer.session.state import Document, State
from explorer.theme import DARK
from models.engine.engine import Engine
from models.forward.run import run
from models.protocol.decoding import DecodeRowsRequest, DecodeRowsView, DecodeSamplesRequest, DecodeStepRequest
from models.protocol.decoding_settings import DecodeSettings
from models.protocol.interventions import Mask, Scale
from models.protocol.loading import LoadRequest
from models.protocol.request import Request
from models.protocol.run_inputs import RunInputs
from models.protocol.running import ForwardRequest
from models.protocol.values import SiteRef
from tests.explorer.silent import SilentSession, shown
from tests.models.asking import ask

TEXT = "Tom and Anna went to the park. Anna gave the ball to"
LEFT = Qt.MouseButton.LeftButton
DECODING = (DecodeStepRequest, DecodeSamplesRequest, DecodeRowsRequest)


class Answered(SilentSession):
    """A session that a real engine answers, when it is told to."""

    def __init__(self, engine: Engine, text: str) -> None:
        super().__init__(State(Document(text=text)))
        self.engine = engine
        self.tickets = 10

    def answer(self) -> None:
        """What the panel asked for, and what it asks for because of that."""
        while waiting := [request for request in self.asked if isinstance(request, DECODING)]:
            for request in waiting:
                self.asked.remove(request)
                self.arrive(ask(self.engine, request))

    def run(self, request: Request) -> None:
        self.arrive(ask(self.engine, request))


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine()


@pytest.fixture
def session(engine) -> Answered:
    session = Answered(engine, TEXT)
    session.run(LoadRequest(ticket=1, reference="story-gpt"))
    session.run(ForwardRequest(inputs=RunInputs(TEXT), ticket=2))
    session.dispatch(SelectHead(SiteRef("decoder", 5), 5))
    return session


@pytest.fixture
def panel(qtbot, session) -> DecodingPanel:
    panel = shown(qtbot, DecodingPanel, session)
    panel.resize(440, 520)
    return panel


def press(qtbot, session, button) -> None:
    qtbot.mouseClick(button, LEFT)
    session.answer()


def press_without_answer(qtbot, button) -> None:
    qtbot.mouseClick(button, LEFT)


def steps(qtbot, session, panel, count: int) -> None:
    for _ in range(count):
        press(qtbot, session, panel.view.transport.step_button)


def words(panel) -> str:
    return "".join(node.label for node in panel.player.branches.path())


def click_row(qtbot, session, bars, row: int) -> None:
    qtbot.mouseClick(bars, LEFT, pos=bars.row_rect(row).center().toPoint())
    session.answer()


def test_a_step_asks_once_and_shows_what_it_chose_from(qtbot, session, panel):
    qtbot.mouseClick(panel.view.transport.step_button, LEFT)
    asked = [request for request in session.asked if isinstance(request, DecodeStepRequest)]
    assert [(r.inputs.prompt, r.number, r.ids, r.site, r.head) for r in asked] == [
        (TEXT, 1, (), SiteRef("decoder", 5), 5)
    ]
    assert not panel.view.transport.step_button.isEnabled()  # one at a time
    session.answer()
    assert words(panel) == "␣Tom"
    rows = panel.view.candidates.bars.rows
    assert (rows[0].label, rows[0].chosen) == ("␣Tom", True)
    assert sum(row.probability for row in rows) < 1
    assert "took “␣Tom” with 67.9 %" in panel.view.status.text()
    assert panel.view.timeline.count == panel.view.timeline.current == 1


def test_back_and_the_timeline_lose_nothing(qtbot, session, panel):
    steps(qtbot, session, panel, 3)
    written = words(panel)
    press(qtbot, session, panel.view.transport.back_button)
    assert panel.view.timeline.current == 2
    assert panel.view.timeline.count == 3
    qtbot.mouseClick(panel.view.timeline, LEFT, pos=panel.view.timeline.step_rect(1).center().toPoint())
    assert words(panel) == "␣Tom"
    qtbot.keyClick(panel.view.timeline, Qt.Key.Key_End)
    assert words(panel) == written
    press(qtbot, session, panel.view.transport.restart_button)
    assert words(panel) == ""
    assert panel.view.timeline.count == 3


def test_a_click_on_a_candidate_goes_that_way_and_keeps_both(qtbot, session, panel):
    steps(qtbot, session, panel, 2)
    qtbot.keyClick(panel.view.timeline, Qt.Key.Key_Home)
    qtbot.keyClick(panel.view.timeline, Qt.Key.Key_Right)
    click_row(qtbot, session, panel.view.candidates.bars, 1)
    assert words(panel) == "␣Ben"
    assert "you chose “␣Ben”" in panel.view.status.text()
    steps(qtbot, session, panel, 1)
    press(qtbot, session, panel.view.tabs.button(BRANCHES))
    assert [row.text for row in panel.view.branches.list.rows] == ["Tom.", "Ben."]
    assert "times as likely" in panel.view.branches.comparison.text()
    expected = sum(
        view.log_probability
        for view in panel.player.work.views.values()
        if view.ids[0] == panel.player.branches.ids()[0]
    )
    assert panel.view.branches.list.rows[1].value == log_text(expected)
    click_row(qtbot, session, panel.view.branches.list, 0)
    assert words(panel) == "␣Tom."


def test_a_branch_is_named_deleted_and_brought_back(qtbot, session, panel):
    steps(qtbot, session, panel, 2)
    press(qtbot, session, panel.view.tabs.button(BRANCHES))
    qtbot.keyClicks(panel.view.branches.name, "first")
    qtbot.keyClick(panel.view.branches.name, Qt.Key.Key_Return)
    assert panel.view.branches.list.rows[0].text == "first: Tom."
    press(qtbot, session, panel.view.branches.delete)
    assert panel.view.branches.list.rows == ()
    assert words(panel) == ""
    assert "Ctrl+Z brings it back" in panel.view.status.text()
    session.undo()
    assert words(panel) == "␣Tom."
    assert panel.view.branches.list.rows[0].text == "first: Tom."
    assert "Ctrl+Z" not in panel.view.status.text()
    session.undo()
    assert panel.view.branches.list.rows[0].text == "Tom."


def test_a_branch_deleted_while_its_step_is_computed_stays_deleted(qtbot, session, panel):
    steps(qtbot, session, panel, 1)
    qtbot.mouseClick(panel.view.transport.step_button, LEFT)
    press_without_answer(qtbot, panel.view.tabs.button(BRANCHES))
    press_without_answer(qtbot, panel.view.branches.delete)
    assert panel.player.branches.nodes == ()
    assert "Deleted, while its next token was computed. Ctrl+Z brings it back." in panel.view.status.text()
    assert panel.view.transport.step_button.isEnabled()
    session.answer()
    assert panel.player.branches.nodes == ()
    session.undo()
    assert words(panel) == "␣Tom"
    steps(qtbot, session, panel, 1)
    assert words(panel) == "␣Tom."


def test_play_goes_on_until_the_steps_are_used_up_and_says_so(qtbot, session, panel):
    panel.view.knobs.set_number("steps", "3")
    panel.view.transport.speed.setValue(panel.view.transport.speed.maximum())
    qtbot.mouseClick(panel.view.transport.play_button, LEFT)
    assert panel.view.transport.play_button.text() == "Pause"

    def ended() -> bool:
        session.answer()
        return len(panel.player.branches.path()) == 3 and panel.view.transport.play_button.text() == "Play"

    qtbot.waitUntil(ended)
    assert "All 3 steps are used up" in panel.view.status.text()
    assert not panel.view.transport.step_button.isEnabled()
    panel.view.knobs.set_number("steps", "4")
    steps(qtbot, session, panel, 1)
    assert panel.view.timeline.count == 4


def test_one_playing_is_undone_at_once_and_undo_pauses_it(qtbot, session, panel):
    panel.view.transport.speed.setValue(panel.view.transport.speed.maximum())
    qtbot.mouseClick(panel.view.transport.play_button, LEFT)

    def written(count: int) -> bool:
        session.answer()
        return len(panel.player.branches.path()) >= count

    qtbot.waitUntil(lambda: written(3))
    session.undo()
    assert words(panel) == ""
    assert panel.view.transport.play_button.text() == "Play"
    session.answer()
    qtbot.wait(20)
    assert words(panel) == ""
    session.redo()
    assert len(panel.player.branches.path()) >= 3
    assert panel.view.transport.play_button.text() == "Play"


def test_undo_shows_a_step_as_it_was_without_asking_again(qtbot, session, panel):
    steps(qtbot, session, panel, 2)
    shown = panel.player.shown_view()
    press(qtbot, session, panel.view.tabs.button(BRANCHES))
    press(qtbot, session, panel.view.branches.delete)
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(1), LEFT)  # other settings, another first token
    panel.view.knobs.set_number("seed", "5")
    steps(qtbot, session, panel, 1)
    for _ in range(4):  # the step, the seed, the strategy, the deletion
        session.undo()
    assert panel.player.shown_view() is shown
    assert not [request for request in session.asked if isinstance(request, DECODING)]


def test_a_tree_from_a_file_shows_how_each_token_was_chosen(qtbot, engine, session, panel):
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(1), LEFT)
    panel.view.knobs.set_number("temperature", "2")
    panel.view.knobs.set_number("seed", "4")
    steps(qtbot, session, panel, 3)
    click_row(qtbot, session, panel.view.candidates.bars, 5)
    before, status = panel.player.shown_view(), panel.view.status.text()
    saved = files.decode(files.encode(session.state.document))
    loaded, session = session.state.results.loaded, Answered(engine, "Another text")  # as of a new window
    session.arrive(loaded)
    session.run(ForwardRequest(inputs=RunInputs("Another text"), ticket=4))
    panel = shown(qtbot, DecodingPanel, session)
    session.dispatch(RestoreDocument(saved))
    session.run(ForwardRequest(inputs=RunInputs(TEXT), ticket=5))
    session.answer()
    again = panel.player.shown_view()
    assert again is not before
    assert (again.offers, again.stages, again.drawn, again.ids) == (
        before.offers,
        before.stages,
        before.drawn,
        before.ids,
    )
    assert panel.view.status.text() == status
    press(qtbot, session, panel.view.transport.back_button)
    assert panel.player.shown_view().drawn is not None
    assert panel.player.shown_view().request.settings.temperature == 2
    assert panel.player.branches.nodes == saved.branches.nodes  # looking changes nothing


def test_a_token_that_this_model_would_not_choose_is_shown_and_said(qtbot, session, panel):
    foreign = Branches().grow(100, "x", -3.0)
    session.dispatch(RestoreDocument(session.state.document.with_branches(foreign)))
    session.answer()
    assert panel.player.shown_view().chosen.id == 100
    assert "Another version of the model wrote it" in panel.view.status.text()
    assert panel.player.branches.nodes == foreign.nodes
    steps(qtbot, session, panel, 1)
    assert panel.player.branches.ids()[0] == 100


def test_a_token_that_is_not_in_the_vocabulary_is_a_sentence(qtbot, session, panel):
    session.dispatch(RestoreDocument(session.state.document.with_branches(Branches().grow(1 << 30, "x", -3.0))))
    session.answer()
    assert "token 1,073,741,824" in session.state.notice.text
    assert "token 1,073,741,824" in panel.view.status.text()
    assert "computed again" not in panel.view.status.text()


def test_a_step_on_the_last_branch_of_a_full_tree_is_refused_with_a_sentence(qtbot, session, panel):
    full = Branches()
    for number in range(MOST_NODES):
        full = full.go(ROOT).grow(number, "a", -1.0)
    session.dispatch(RestoreDocument(session.state.document.with_branches(full)))
    session.answer()
    assert "hold 5,000 tokens, the most that are kept. Delete one to go on." in panel.view.status.text()
    assert not panel.view.transport.step_button.isEnabled()
    press(qtbot, session, panel.view.tabs.button(BRANCHES))
    press(qtbot, session, panel.view.branches.delete)
    assert panel.view.transport.step_button.isEnabled()


def test_another_sample_is_one_step_of_undo(qtbot, session, panel):
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(1), LEFT)
    panel.view.knobs.set_number("steps", "2")
    panel.view.transport.speed.setValue(panel.view.transport.speed.maximum())
    steps(qtbot, session, panel, 2)
    first = words(panel)
    qtbot.mouseClick(panel.view.again, LEFT)

    def ended() -> bool:
        session.answer()
        return len(panel.player.branches.path()) == 2 and panel.view.transport.play_button.text() == "Play"

    qtbot.waitUntil(lambda: ended() and words(panel) != first)
    session.undo()
    assert words(panel) == first


def test_pause_asks_for_nothing_more(qtbot, session, panel):
    panel.view.transport.speed.setValue(panel.view.transport.speed.maximum())
    qtbot.mouseClick(panel.view.transport.play_button, LEFT)
    qtbot.mouseClick(panel.view.transport.play_button, LEFT)
    session.answer()
    qtbot.wait(50)
    assert not [request for request in session.asked if isinstance(request, DECODING)]
    assert panel.view.timeline.count == 1


def test_settings_cut_and_say_what(qtbot, session, panel):
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(1), LEFT)
    panel.view.knobs.set_number("top_k", "3")
    panel.view.knobs.set_number("temperature", "2")
    steps(qtbot, session, panel, 1)
    rows = panel.view.candidates.bars.rows
    assert [row.cut_by for row in rows[:4]] == ["", "", "", "top-k"]
    logits = np.array([offer.logit for offer in panel.player.shown_view().offers[:3]]) / 2
    expected = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    np.testing.assert_allclose([row.kept for row in rows[:3]], expected, atol=1e-6)
    assert (
        "Top-k cut 8,189 tokens" in panel.view.candidates.note.text()
        or "top-k cut 8,189 tokens" in panel.view.candidates.note.text()
    )
    assert "The draw was" in panel.view.candidates.note.text()


def test_a_beam_search_is_a_tree(qtbot, session, panel):
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(2), LEFT)
    panel.view.knobs.set_number("beams", "2")
    steps(qtbot, session, panel, 3)
    assert panel.view.candidates.tree.isVisible()
    beams = panel.player.work.search.views[-1].beams
    assert sum(beam.kept for beam in beams) == 2
    assert not panel.view.candidates.tree.node_rect(beams[0].node).isEmpty()
    assert "best so far" in panel.view.status.text()
    press(qtbot, session, panel.view.transport.back_button)
    steps(qtbot, session, panel, 1)
    assert len(panel.player.work.search.views) == 3  # known, not searched again
    assert not panel.view.texts.otherwise.isVisible()


def test_a_search_stays_until_another_is_begun_and_is_there_again_with_its_settings(qtbot, session, panel):
    beam_search(qtbot, session, panel, 2, 3)
    texts = [row.text for row in panel.view.texts.list.rows]
    first = panel.player.work.search
    panel.view.knobs.set_number("beams", "3")
    panel.view.knobs.set_number("steps", "7")
    assert [row.text for row in panel.view.texts.list.rows] == texts
    assert panel.view.candidates.heading.text().startswith("A line is a step: 2 beams go on")
    made_with = "Made with beams 2, length penalty 1, steps 20. Step begins another search, with what is set now."
    assert panel.view.texts.otherwise.text() == made_with
    assert panel.view.texts.otherwise.isVisible()
    press(qtbot, session, panel.view.transport.back_button)  # it can still be walked through
    assert panel.view.timeline.current == 2
    assert panel.view.transport.step_button.isEnabled()
    steps(qtbot, session, panel, 1)
    assert panel.view.timeline.count == 1
    assert len(panel.view.texts.list.rows) == 3
    assert not panel.view.texts.otherwise.isVisible()
    session.undo()  # the numbers, typed within a second
    assert panel.view.knobs.fields["beams"].text() == "4"
    while session.state.document.decoding.settings.beams != 2:
        session.redo() if session.can_redo else panel.view.knobs.set_number("beams", "2")
    panel.view.knobs.set_number("steps", "20")
    assert panel.player.work.search is first
    assert panel.view.timeline.current == 2  # where it was left
    steps(qtbot, session, panel, 1)  # which is known
    assert [row.text for row in panel.view.texts.list.rows] == texts


def test_undo_of_another_strategy_shows_a_finished_search_as_it_was(qtbot, session, panel):
    panel.view.knobs.set_number("steps", "3")
    beam_search(qtbot, session, panel, 2, 3)
    status, texts = panel.view.status.text(), [row.text for row in panel.view.texts.list.rows]
    assert "The search is over" in status
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(0), LEFT)
    assert panel.view.texts.list.rows == ()
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(2), LEFT)
    panel.view.knobs.set_number("steps", "12")
    assert "The search is over" not in panel.view.status.text()  # another can be begun
    assert panel.view.transport.step_button.isEnabled()
    for _ in range(3):
        session.undo()
    assert panel.view.knobs.strategy == "beam"
    assert panel.view.knobs.fields["steps"].text() == "3"
    assert panel.view.status.text() == status
    assert [row.text for row in panel.view.texts.list.rows] == texts
    assert not panel.view.texts.otherwise.isVisible()
    assert not [request for request in session.asked if isinstance(request, DECODING)]


def test_samples_stay_side_by_side_until_others_are_drawn(qtbot, session, panel):
    draw(qtbot, session, panel, 3, 2)
    before = [row.text for row in panel.view.texts.list.rows]
    panel.view.knobs.set_number("temperature", "0.7")
    panel.view.knobs.set_number("top_k", "5")
    panel.view.knobs.set_number("seed", "9")
    panel.view.knobs.set_number("samples", "2")
    assert [row.text for row in panel.view.texts.list.rows] == before
    assert panel.view.texts.otherwise.text().startswith(
        "Made with samples 3, temperature 1.3, seed 0. Step goes on from here"
    )
    click_row(qtbot, session, panel.view.texts.list, 2)
    assert panel.player.shown_view().request.settings.sample == 2
    assert panel.player.shown_view().request.settings.temperature == 1.3
    steps(qtbot, session, panel, 1)  # two others go on from the one that is looked at
    assert len(panel.view.texts.list.rows) == 2
    assert panel.view.timeline.count == 3
    assert not panel.view.texts.otherwise.isVisible()
    session.undo()
    assert [row.text for row in panel.view.texts.list.rows] == before
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(0), LEFT)
    steps(qtbot, session, panel, 2)  # greedy goes its own way
    assert panel.view.texts.list.rows == ()
    assert panel.player.branches.path()[-1].settings.strategy == "greedy"


def test_what_is_typed_is_part_of_the_document_and_comes_back_with_it(qtbot, session, panel):
    assert panel.view.knobs.decoding == session.state.document.decoding
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(1), LEFT)
    field = panel.view.knobs.fields["temperature"]
    field.selectAll()
    qtbot.keyClicks(field, "0,50")
    assert field.text() == "0,50"  # as it was typed
    said = session.state.document.decoding
    assert (said.settings.strategy, said.settings.temperature, said.chosen) == ("sample", 0.5, True)
    qtbot.keyClicks(field, "x")
    assert "“0,50x” is none" in panel.view.knobs.remark.text()
    assert session.state.document.decoding == said  # what is no number is not in it
    saved = files.decode(files.encode(session.state.document))
    session.undo()
    assert field.text() == "1"
    assert panel.view.knobs.problem == ""
    session.undo()
    assert panel.view.knobs.strategy == "greedy"
    session.redo()
    session.redo()
    assert (panel.view.knobs.strategy, field.text()) == ("sample", "0.5")
    session.undo()
    session.dispatch(RestoreDocument(saved))
    assert (panel.view.knobs.settings.temperature, field.text()) == (0.5, "0.5")


def test_a_panel_that_is_opened_later_says_what_the_document_says(qtbot, session):
    numbers = DecodeSettings("beam", beams=2, length_penalty=-0.5, temperature=1e-6)
    session.dispatch(SetDecoding(Decoding(numbers, 7, 3, chosen=True)))
    panel = shown(qtbot, DecodingPanel, session)
    assert panel.view.knobs.strategy == "beam"
    texts = {name: field.text() for name, field in panel.view.knobs.fields.items()}
    assert texts["beams"] == "2"
    assert texts["length_penalty"] == "-0.5"
    assert (texts["steps"], texts["samples"], texts["temperature"], texts["top_k"]) == ("7", "3", "1e-06", "")
    assert panel.view.knobs.settings == DecodeSettings("beam", beams=2, length_penalty=-0.5)
    steps(qtbot, session, panel, 1)
    view = panel.player.shown_view()
    assert view is not None
    assert view.request.steps == 7


def beam_search(qtbot, session, panel, width: int, count: int) -> None:
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(2), LEFT)
    panel.view.knobs.set_number("beams", str(width))
    steps(qtbot, session, panel, count)


def shown_rows(session, story_gpt_ids) -> None:
    """The picture is that of a whole pass over what the picked text had read."""
    view = session.state.results.of(DecodeRowsView)
    model = session.engine.workspace.model
    prompt = [token.id for token in model.tokenize(TEXT)]
    trace = run(model, [*prompt, *story_gpt_ids[:-1]], interventions=view.request.inputs.interventions)
    assert view.request.ids == tuple(story_gpt_ids)
    np.testing.assert_allclose(view.weights, trace.weights(SiteRef("decoder", 5), 5), atol=1e-5, rtol=0)


def test_every_beam_can_be_picked_and_its_attention_is_shown(qtbot, session, panel):
    beam_search(qtbot, session, panel, 3, 4)
    press(qtbot, session, panel.view.tabs.button(ATTENTION))
    alive = [beam for beam in panel.player.work.search.views[-1].beams if beam.kept]
    assert len(panel.view.texts.list.rows) == len(alive) == 3
    assert [row.current for row in panel.view.texts.list.rows] == [True, False, False]
    for place, beam in enumerate(alive):
        click_row(qtbot, session, panel.view.texts.list, place)
        shown_rows(session, beam.ids)
        assert f"beam “{beam.text.strip()}”" in panel.view.attention.heading.text()
        assert session.state.results.of(DecodeRowsView).from_steps
    qtbot.keyClick(panel.view.texts.list, Qt.Key.Key_Up)
    session.answer()
    shown_rows(session, alive[1].ids)


def test_the_tree_is_walked_with_mouse_and_keys(qtbot, session, panel):
    beam_search(qtbot, session, panel, 2, 3)
    tree, player = panel.view.candidates.tree, panel.player
    second = next(beam for beam in player.work.search.views[1].beams if beam.node != player.shown_beam.parent)
    qtbot.mouseClick(tree, LEFT, pos=tree.node_rect(second.node).center().toPoint())
    assert player.shown_beam == second
    qtbot.keyClick(tree, Qt.Key.Key_Up)
    assert player.shown_beam.node == second.parent
    qtbot.keyClick(tree, Qt.Key.Key_Right)
    assert player.shown_beam.node not in (second.parent, second.node)
    assert f"Selected: {player.shown_beam.label}." in tree.accessibleDescription()
    pruned = next(beam for beam in player.work.search.views[0].beams if not beam.kept)
    qtbot.mouseClick(tree, LEFT, pos=tree.node_rect(pruned.node).center().toPoint())
    assert player.shown_beam == pruned  # given up, and still there to be looked at
    steps(qtbot, session, panel, 1)
    assert player.shown_beam.ids == player.work.search.views[-1].ids  # nothing came of it: the best again


def test_a_picked_beam_is_followed_and_its_text_can_be_used(qtbot, session, panel):
    beam_search(qtbot, session, panel, 3, 2)
    player = panel.player
    click_row(qtbot, session, panel.view.texts.list, 1)
    picked = player.shown_beam
    steps(qtbot, session, panel, 1)
    followed = [beam for beam in player.work.search.views[-1].beams if beam.kept and beam.ids[:2] == picked.ids]
    assert player.shown_beam == (followed[0] if followed else player.shown_beam)
    press(qtbot, session, panel.view.transport.back_button)
    assert player.shown_beam.ids == (picked.ids if followed else player.work.search.views[1].ids)
    text = player.shown_beam.text
    qtbot.mouseClick(panel.view.use, LEFT)
    assert session.state.document.text == TEXT + text


def draw(qtbot, session, panel, samples: int, count: int) -> None:
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(1), LEFT)
    panel.view.knobs.set_number("samples", str(samples))
    panel.view.knobs.set_number("temperature", "1.3")
    steps(qtbot, session, panel, count)


def test_several_samples_are_written_side_by_side(qtbot, session, panel):
    draw(qtbot, session, panel, 4, 4)
    rows = panel.view.texts.list.rows
    assert [row.text[:2] for row in rows] == ["1:", "2:", "3:", "4:"]
    assert len({row.text for row in rows}) == 4
    for sample, row in enumerate(rows):
        click_row(qtbot, session, panel.view.texts.list, sample)
        view = panel.player.shown_view()
        assert view.request.settings.sample == sample
        assert view.request.number == panel.view.timeline.current == panel.view.timeline.count == 4
        assert row.text == f"{sample + 1}: {words(panel).replace('␣', ' ').strip()}"
        assert row.value == log_text(panel.player.branches.log_probability())
        assert f"The draw was {view.drawn:.4f}" in panel.view.candidates.note.text()
        drawn = np.random.default_rng((0, 4, sample) if sample else (0, 4)).random()
        assert view.drawn == drawn
    press(qtbot, session, panel.view.tabs.button(ATTENTION))
    shown_rows(session, panel.player.branches.ids())
    assert session.state.results.of(DecodeRowsView).from_steps
    qtbot.keyClick(panel.view.texts.list, Qt.Key.Key_Up)
    session.answer()
    assert panel.player.shown_view().request.settings.sample == 2
    shown_rows(session, panel.player.branches.ids())


def test_going_back_shows_each_samples_own_draw_and_stepping_asks_nothing_known(qtbot, session, panel):
    draw(qtbot, session, panel, 3, 3)
    click_row(qtbot, session, panel.view.texts.list, 2)
    press(qtbot, session, panel.view.transport.restart_button)
    assert len(panel.view.texts.list.rows) == 3
    for number in (1, 2, 3):
        press_without_answer(qtbot, panel.view.transport.step_button)
        assert not any(isinstance(request, DECODING) for request in session.asked)
        assert panel.player.shown_view().drawn == np.random.default_rng((0, number, 2)).random()
    press_without_answer(qtbot, panel.view.transport.step_button)
    assert [len(request.samples) for request in session.asked if isinstance(request, DecodeSamplesRequest)] == [3]


def test_samples_are_branches_undone_and_brought_back(qtbot, session, panel):
    draw(qtbot, session, panel, 3, 2)
    before = [row.text for row in panel.view.texts.list.rows]
    press(qtbot, session, panel.view.tabs.button(BRANCHES))
    assert len(panel.player.branches.leaves()) == 3
    session.undo()
    assert panel.view.timeline.count == 1
    assert len(panel.view.texts.list.rows) == 3
    session.redo()
    assert [row.text for row in panel.view.texts.list.rows] == before
    assert len(panel.player.branches.leaves()) == 3
    saved = files.decode(files.encode(session.state.document))
    assert saved.branches == panel.player.branches
    assert {node.settings.sample for node in saved.branches.nodes} >= {1, 2}


def test_samples_go_on_from_what_is_looked_at(qtbot, session, panel):
    steps(qtbot, session, panel, 2)
    written = words(panel)
    draw(qtbot, session, panel, 2, 2)
    assert words(panel).startswith(written)
    assert panel.view.timeline.count == 4
    assert all(panel.player.branches.ids(leaf.id)[:2] for leaf in panel.player.branches.leaves())
    press(qtbot, session, panel.view.again)
    assert panel.view.knobs.settings.seed == 1
    panel.player.play(False)
    session.answer()
    assert panel.view.timeline.count == 1  # from the prompt


def test_samples_play_until_the_steps_are_used_up(qtbot, session, panel):
    draw(qtbot, session, panel, 2, 0)
    panel.view.knobs.set_number("steps", "3")
    panel.view.transport.speed.setValue(panel.view.transport.speed.maximum())
    qtbot.mouseClick(panel.view.transport.play_button, LEFT)

    def ended() -> bool:
        session.answer()
        played: int = panel.view.timeline.count
        return played == 3 and not panel.player.playing

    qtbot.waitUntil(ended)
    assert "All 3 steps are used up" in panel.view.status.text()
    session.undo()
    assert panel.player.branches.nodes == ()  # one playing, one step of undo


def test_samples_of_a_masked_model_are_words_apart(qtbot, engine):
    text = "Tom and [MASK] went to the [MASK]."
    session = Answered(engine, text)
    session.dispatch(OpenCheckpoint("story-bert"))
    session.run(LoadRequest(ticket=30, reference="story-bert"))
    session.run(ForwardRequest(inputs=RunInputs(text), ticket=31))
    panel = shown(qtbot, DecodingPanel, session)
    draw(qtbot, session, panel, 3, 2)
    assert panel.player.samples_in_view is not None
    filled = [[node.label for node in panel.player.branches.path(node)] for node in panel.player.samples_in_view.nodes]
    assert [row.text for row in panel.view.texts.list.rows] == [
        f"{number}: {', '.join(labels)}  (ended)" for number, labels in enumerate(filled, 1)
    ]
    assert panel.view.status.text().endswith("All samples have ended.")


def test_nothing_drawn_is_one_text(qtbot, session, panel):
    draw(qtbot, session, panel, 4, 0)
    panel.view.knobs.set_number("temperature", "0")
    steps(qtbot, session, panel, 1)
    assert not panel.view.texts.isVisible()
    assert words(panel) == "␣Tom"


def test_each_filter_can_be_looked_at_alone(qtbot, session, panel):
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(1), LEFT)
    for name, value in (("temperature", "2"), ("top_k", "8"), ("top_p", "0.9"), ("min_p", "0.2")):
        panel.view.knobs.set_number(name, value)
    panel.view.knobs.set_number("repetition_penalty", "1.5")
    steps(qtbot, session, panel, 1)
    stages, bars, view = panel.view.candidates.stages, panel.view.candidates.bars, panel.player.shown_view()
    names = [button.text() for button in map(stages.buttons.button, range(7)) if button.isVisible()]
    assert names == ["All filters", "Repetition penalty", "Temperature", "Top-k", "Top-p", "Min-p"]
    before = [offer.probability for offer in view.offers]
    for place, name in enumerate(names[1:]):
        index = next(i for i in range(7) if stages.buttons.button(i).text() == name)
        qtbot.mouseClick(stages.buttons.button(index), LEFT)
        stage = view.stages[place]
        assert [row.probability for row in bars.rows] == before
        before = [row.kept for row in bars.rows]
        assert tuple(before) == stage.shares
        gone = {other.filter for other in view.stages[: place + 1]}
        assert [bool(row.cut_by) for row in bars.rows] == [o.cut_by in gone for o in view.offers]
        note = panel.view.candidates.note.text()
        assert note.startswith(f"{place + 1} of 5. ")
        assert f"{stage.left:,} token" in note
        if stage.tokens:
            assert f"It cut {stage.tokens:,} token" in note
    assert bars.rows[0].kept == pytest.approx(view.offers[0].kept)
    steps(qtbot, session, panel, 1)  # the same filter of the next step
    assert stages.current == 4
    panel.view.knobs.set_number("min_p", "")
    steps(qtbot, session, panel, 1)
    assert stages.current is None
    qtbot.mouseClick(stages.buttons.button(0), LEFT)
    panel.window().activateWindow()
    qtbot.waitUntil(panel.window().isActiveWindow)  # on X it takes a moment
    stages.buttons.button(0).setFocus()
    qtbot.keyClick(stages.buttons.button(0), Qt.Key.Key_Right)
    assert stages.current == 0


def edit(session, *interventions) -> None:
    for intervention in interventions:
        session.dispatch(PutIntervention(intervention))
    session.run(
        ForwardRequest(inputs=RunInputs(TEXT, interventions=session.state.document.inputs.interventions), ticket=50)
    )


def test_it_writes_with_the_interventions_that_are_on_and_keeps_both_trees(qtbot, session, panel):
    steps(qtbot, session, panel, 3)
    plain = words(panel)
    edit(session, Scale(0.0), Mask("window", window=3))
    assert words(panel) == ""
    steps(qtbot, session, panel, 3)
    edited = words(panel)
    assert edited != plain
    press(qtbot, session, panel.view.tabs.button(ATTENTION))
    shown_rows(session, panel.player.branches.ids())
    session.undo()  # the third step
    assert len(panel.player.branches.path()) == 2
    edit(session, Scale(1.0), Mask("trained"))
    assert words(panel) == plain


def test_a_mask_that_opens_the_future_is_honoured_and_its_price_is_said(qtbot, session, panel):
    edit(session, Mask("full"))
    steps(qtbot, session, panel, 2)
    assert "each step reads the whole text again" in panel.view.status.text()
    press(qtbot, session, panel.view.tabs.button(ATTENTION))
    shown_rows(session, panel.player.branches.ids())
    press(qtbot, session, panel.view.tabs.button(CACHE))
    assert panel.view.cache.bars.bars == ()


def test_an_intervention_that_this_model_can_not_take_is_a_sentence(qtbot, session, panel):
    session.dispatch(PutIntervention(Scale(0.5, SiteRef("decoder", 70))))
    qtbot.mouseClick(panel.view.transport.step_button, LEFT)
    session.dispatch(Busy(frozenset({DecodeStepRequest.lane})))
    request = next(r for r in session.asked if isinstance(r, DecodeStepRequest))
    session.dispatch(Arrived(ask(session.engine, request)))
    session.dispatch(Busy(frozenset()))
    assert "this model has no such layer" in panel.view.status.text()


def test_attention_grows_by_a_row_a_step(qtbot, session, panel):
    press(qtbot, session, panel.view.tabs.button(ATTENTION))
    assert panel.view.attention.note.text() == "Press Step: a row for each token appears here."
    steps(qtbot, session, panel, 1)
    assert panel.view.attention.note.text().startswith("The last row is where the head looked")
    first = session.state.results.of(DecodeRowsView)
    steps(qtbot, session, panel, 1)
    second = session.state.results.of(DecodeRowsView)
    assert second.weights.shape[0] == first.weights.shape[0] + 1
    np.testing.assert_allclose(second.weights.sum(axis=1), 1, atol=1e-5)
    session.dispatch(SelectHead(SiteRef("decoder", 2), 1))
    session.answer()
    assert session.state.results.of(DecodeRowsView).request.site == SiteRef("decoder", 2)


def test_the_cache_is_told_in_tokens_and_bytes(qtbot, session, panel):
    steps(qtbot, session, panel, 2)
    press(qtbot, session, panel.view.tabs.button(CACHE))
    assert [(bar.reused, bar.computed) for bar in panel.view.cache.bars.bars] == [(14, 1)] * 8
    assert panel.view.cache.words.text().startswith(bytes_text(8 * 15 * 2 * 8 * 32 * 4))
    assert panel.view.cache.words.text().endswith(
        "This step reused those of 14 tokens and computed those of 1 token, in each of 8 layers."
    )


def test_the_picture_says_which_rows_it_has(qtbot, session, panel):
    steps(qtbot, session, panel, 2)
    press(qtbot, session, panel.view.tabs.button(ATTENTION))
    view, page = session.state.results.of(DecodeRowsView), panel.view.attention
    last = "The last row is where the head looked to choose this step's token. "
    assert page.note.text() == last + "14 rows of the prompt and 1 of written tokens, one a step."

    def note(**changes) -> str:
        page.show_rows(replace(view, **changes), "Layer 5, head 5", "")
        return str(page.note.text())

    some = {"weights": view.weights[-3:], "masked": view.masked[-3:], "queries": view.queries[-3:], "first": 12}
    assert (
        note(**some, chose=2, prompt=2) == last + "The last 2 rows of the prompt and 1 of written tokens, one a step."
    )
    assert note(**some, chose=2, prompt=3, from_steps=False) == last + "The last 3 rows, from one pass over the text."
    framed = f"The framed row “{view.queries[-2]}” is where the head looked to choose this step's token. "
    assert note(**some, chose=1, prompt=3, from_steps=False) == framed + "3 rows about it, from one pass over the text."
    assert page.map.selection[0] == 1
    assert note(chose=-1, from_steps=False) == "All rows from one pass over the text."
    assert page.map.selection == (-1, -1)


def test_layers_that_look_through_a_window_are_told_apart(qtbot, session, panel):
    steps(qtbot, session, panel, 2)
    view = session.state.results.decoded
    full, window = view.cache[0], replace(view.cache[0], reused=7, computed=1, stored=7)
    text = cache_text(replace(view, cache=(window, full, window)))
    assert text.endswith(
        "This step computed those of 1 token and reused those of 14 tokens in 1 layer and of 7 in 2. "
        "A layer that looks through a sliding window keeps the last 7."
    )


def test_use_this_text_fills_the_input_and_undo_brings_the_branches_back(qtbot, session, panel):
    steps(qtbot, session, panel, 2)
    qtbot.mouseClick(panel.view.use, LEFT)
    assert session.state.document.text == TEXT + " Tom."
    assert words(panel) == ""
    session.undo()
    assert session.state.document.text == TEXT
    assert words(panel) == "␣Tom."


def test_a_text_that_can_not_be_run_stops_it_with_a_sentence(qtbot, session, panel):
    session.dispatch(SetText(""))
    qtbot.mouseClick(panel.view.transport.step_button, LEFT)
    session.dispatch(Busy(frozenset({DecodeStepRequest.lane})))
    request = next(r for r in session.asked if isinstance(r, DecodeStepRequest))
    session.dispatch(Arrived(ask(session.engine, request)))
    session.dispatch(Busy(frozenset()))
    assert "The input is empty" in panel.view.status.text()
    assert panel.view.transport.step_button.isEnabled()


@pytest.mark.parametrize(
    ("strategy", "field", "value", "said"),
    [
        ("sample", "top_k", "0", "top-k 0 keeps no token"),
        ("sample", "top_p", "2", "top-p 2.0 is no share"),
        ("sample", "temperature", "-1", "temperature of -1.0"),
        ("sample", "temperature", "hot", "Temperature needs a number; “hot” is none."),
        ("greedy", "steps", "", "Steps needs a whole number; it is empty."),
        ("greedy", "steps", "0", "0 steps are not offered"),
        ("beam", "beams", "0", "width 0 is not offered"),
        ("sample", "samples", "9", "9 samples are not offered: 1 to 8"),
        ("sample", "seed", "9" * 30, "is not offered: 0 to 4,611,686,018,427,387,904"),
        ("sample", "top_k", "9" * 30, "is not offered: 1,000,000,000 at most"),
        ("sample", "temperature", "1e-40", "A temperature of 1e-40 is not offered: 0 (greedy), or 0.000001 to"),
        ("beam", "length_penalty", "1000", "A length penalty of 1000.0 is not offered: -10 to 10."),
    ],
)
def test_a_wrong_value_is_explained_and_nothing_can_be_pressed(panel, strategy, field, value, said):
    panel.view.knobs.choose(strategy)
    panel.view.knobs.set_number(field, value)
    assert said in panel.view.knobs.remark.text()
    assert not panel.view.transport.step_button.isEnabled()
    panel.view.knobs.set_number(field, "1")
    assert panel.view.transport.step_button.isEnabled()


@pytest.mark.parametrize(
    ("strategy", "field", "value"), [("sample", "temperature", "0"), ("beam", "beams", "1"), ("sample", "top_k", "1")]
)
def test_what_is_greedy_is_called_so(qtbot, strategy, field, value):
    knobs = DecodeKnobs()
    qtbot.addWidget(knobs)
    knobs.choose(strategy)
    knobs.set_number(field, value)
    assert "greedy" in knobs.remark.text()
    assert knobs.problem == ""


def test_arrow_keys_change_a_number(qtbot):
    knobs = DecodeKnobs()
    qtbot.addWidget(knobs)
    knobs.choose("sample")
    qtbot.keyClick(knobs.fields["temperature"], Qt.Key.Key_Up)
    assert knobs.settings.temperature == pytest.approx(1.1)


def test_it_fits_a_narrow_column_light_and_dark(qtbot, session, panel):
    steps(qtbot, session, panel, 2)
    panel.set_theme(DARK)
    for page in range(4):
        press(qtbot, session, panel.view.tabs.button(page))
        assert panel.minimumSizeHint().width() <= 440
        assert not panel.grab().toImage().isNull()


def test_numbers_are_written_for_people():
    assert log_text(-1.234) == "−1.23"
    assert log_text(-0.004) == "−0.004"
    assert log_text(-0.0000212) == "−2e-5"
    assert bytes_text(245_760) == "245.8 kB"
    assert math.isclose(float(bytes_text(3_000_000).split()[0]), 3.0)


def test_a_number_has_room_in_larger_text_too(qtbot):
    knobs = DecodeKnobs()
    qtbot.addWidget(knobs)
    field = knobs.fields["seed"]
    before, font = field.width(), field.font()
    font.setPointSizeF(1.5 * font.pointSizeF())
    knobs.setFont(font)
    assert field.width() > 1.2 * before
    assert field.width() - 18 >= 7 * field.fontMetrics().averageCharWidth()
