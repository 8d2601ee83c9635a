"""The Effects panel: what it asks for, what a click does, and what it says of models that have nothing to show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt

from attention_explorer.panels.effects.panel import EffectsPanel
from attention_explorer.panels.effects.questions import HEADS, LENS, PATCH, SUM, TOKENS
from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.session.effects_choices import Answer, EffectsChoices
from attention_explorer.session.intents import OpenCheckpoint, RestoreDocument, SelectHead, SetView
from attention_explorer.session.state import InterventionItem, State
from attention_models.protocol.ablation import Ablation, Fill
from attention_models.protocol.effects import (
    AttributionRequest,
    EffectsRequest,
    EffectsView,
    ExplanationRequest,
    LensRequest,
    Metric,
    MetricValue,
    MetricView,
    PatchRequest,
    SiteEffects,
)
from attention_models.protocol.values import Candidate, SiteRef
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown

AIM = MetricView(
    measure="logit",
    position=13,
    target=4,
    against=None,
    target_label="␣Tom",
    against_label="",
    value=9.0,
    candidates=(
        Candidate(id=4, label="␣Tom", piece="Tom", probability=0.6, logit=9.0, rank=1),
        Candidate(id=5, label="␣Anna", piece="Anna", probability=0.2, logit=8.0, rank=2),
    ),
)
NOW = MetricValue(value=9.0, best_label="␣Tom", best_share=0.6, loss=3.0)


def effects(request: EffectsRequest, done: float = 1.0, **changes: object) -> EffectsView:
    values = np.zeros((8, 8))
    values[4, 1], values[5, 0] = -3.0, 2.0
    sites = tuple(SiteEffects(SiteRef("decoder", layer), values[layer]) for layer in range(8))
    view = EffectsView(request=request, aim=AIM, now=NOW, sites=sites, done=done)
    return replace(view, **changes)  # type: ignore[arg-type]


@pytest.fixture
def session() -> SilentSession:
    return SilentSession(answers.after(State(), answers.loaded(), answers.ran()))


@pytest.fixture
def panel(qtbot, session) -> EffectsPanel:
    return shown(qtbot, EffectsPanel, session)


def test_it_asks_again_until_every_head_is_done(panel, session):
    first = session.asked[-1]
    assert isinstance(first, EffectsRequest)
    assert (first.run, first.aim.measure, first.have) == (1, "logit", 0.0)
    session.arrive(effects(first, done=0.25))
    assert session.asked[-1] == replace(first, have=0.25)
    assert "25" in panel.sentence.text()
    session.arrive(effects(session.asked[-1]))
    assert not panel.is_waiting()
    assert len(session.asked) == 2


def test_strongest_and_without(panel, session, qtbot):
    assert not panel.controls.strongest.isEnabled()  # it is not known yet which head that is
    session.arrive(effects(session.asked[-1]))
    assert "Most changes without layer 4, head 1: −3" in panel.sentence.text()
    qtbot.mouseClick(panel.controls.strongest, Qt.MouseButton.LeftButton)
    assert (session.state.selection.site, session.state.selection.head) == (SiteRef("decoder", 4), 1)
    assert panel.grid.selection == (4, 1)
    qtbot.mouseClick(panel.controls.without, Qt.MouseButton.LeftButton)
    skip = Ablation("head", SiteRef("decoder", 4), 1)
    assert session.state.document.interventions == (InterventionItem(skip),)
    assert panel.controls.without.isChecked()
    qtbot.mouseClick(panel.controls.without, Qt.MouseButton.LeftButton)
    assert session.state.document.interventions == ()


def test_a_click_selects_the_head_and_its_menu_takes_it_out(panel, session, qtbot):
    session.arrive(effects(session.asked[-1]))
    qtbot.mouseClick(panel.grid, Qt.MouseButton.LeftButton, pos=panel.grid.cell_rect(5, 0).center().toPoint())
    assert (session.state.selection.site, session.state.selection.head) == (SiteRef("decoder", 5), 0)
    fills: tuple[tuple[str, Fill], ...] = (("Hold it at its mean", "mean"), ("Without this head", "zero"))
    for label, fill in fills:
        menu = panel.head_menu(SiteRef("decoder", 5), 0)
        assert menu is not None
        next(action for action in menu.actions() if action.text() == label).trigger()
        values = [item.value for item in session.state.document.interventions]
        assert values == [Ablation("head", SiteRef("decoder", 5), 0, fill)]


def test_a_head_that_is_to_be_shown_comes_to_the_front(panel, session, qtbot):
    menu = panel.head_menu(SiteRef("decoder", 4), 1)
    assert menu is not None
    with qtbot.waitSignal(panel.front_wanted) as wanted:
        next(action for action in menu.actions() if action.text() == "Show this head").trigger()
    assert wanted.args == [HeadMapPanel.name]
    assert (session.state.selection.site, session.state.selection.head) == (SiteRef("decoder", 4), 1)


def test_a_second_token_makes_a_difference_and_a_typed_one_goes_as_words(panel, session):
    session.arrive(effects(session.asked[-1]))
    panel.controls.against.setCurrentIndex(2)
    panel.controls.against.textActivated.emit(panel.controls.against.currentText())
    assert session.asked[-1].aim == Metric(measure="difference", position=3, against=5)
    panel.controls.target.setEditText("␣Ben")
    panel.controls.target.lineEdit().editingFinished.emit()
    assert session.asked[-1].aim == Metric(measure="difference", position=3, target=" Ben", against=5)
    panel.controls.loss.click()
    assert session.asked[-1].aim == Metric(measure="loss", position=3)


def test_each_page_asks_its_own_question(panel, session):
    kinds = {LENS: LensRequest, SUM: AttributionRequest, TOKENS: ExplanationRequest, HEADS: EffectsRequest}
    for page, kind in kinds.items():
        panel.pages.button(page).click()
        if page != HEADS:
            assert isinstance(session.asked[-1], kind)
    count = len(session.asked)
    panel.pages.button(PATCH).click()
    assert len(session.asked) == count  # no other text yet
    assert "Type another text" in panel.grid.empty_text
    panel.controls.other.setText("Another text")
    panel.controls.other.editingFinished.emit()
    asked = session.asked[-1]
    assert isinstance(asked, PatchRequest)
    assert (asked.other, asked.kind, asked.align) == ("Another text", "residual", "same")
    panel.controls.kind.setCurrentIndex(3)
    panel.controls.kind.activated.emit(3)
    assert session.asked[-1].kind == "head"


def test_a_selection_leaves_the_cells_and_another_unit_tells_losses_anew(panel, session):
    panel.controls.loss.click()
    loss = replace(AIM, measure="loss", value=3.0)
    session.arrive(effects(session.asked[-1], aim=loss, now=replace(NOW, value=3.0)))
    before = panel.grid.grid
    session.dispatch(SelectHead(SiteRef("decoder", 5), 0))
    assert panel.grid.grid is before
    assert "layer 5, head 0" in panel.sentence.text()
    assert before.words[4][1] == "−4.33"  # 3 nats in bits
    session.dispatch(SetView("unit", "nats"))
    assert panel.grid.grid.words[4][1] == "−3.00"


def test_what_was_before_is_said_of_an_edited_run(panel, session):
    before = MetricValue(value=9.5, best_label="␣Anna", best_share=0.5, loss=2.5)
    session.arrive(effects(session.asked[-1], before=before))
    said = panel.change.text()
    assert "9.500 → 9.000" in said
    assert "“Anna” 50.0 % → “Tom” 60.0 %" in said
    assert "loss 3.607 → 4.328 bits" in said


@pytest.mark.parametrize(
    ("changes", "page", "sentence"),
    [
        ({"family": "encoder"}, HEADS, "it has no output head"),
        ({"weights_only": "This family computes its attention itself."}, HEADS, "So no part of it can be changed"),
        ({"family": "seq2seq"}, TOKENS, "models of one stack"),
    ],
)
def test_a_model_that_has_nothing_to_show_is_not_asked(qtbot, changes, page, sentence):
    loaded = answers.loaded()
    loaded = replace(loaded, info=replace(loaded.info, **changes))
    session = SilentSession(answers.after(State(), loaded, answers.ran()))
    panel = shown(qtbot, EffectsPanel, session)
    asked = len(session.asked)
    if page != HEADS:
        panel.pages.button(page).click()
        assert len(session.asked) == asked
    else:
        assert asked == 0
    assert sentence in panel.grid.empty_text
    assert not panel.sentence.isVisible()  # it is said once


def test_answers_that_were_chosen_for_another_model_are_let_go(panel, session):
    session.arrive(effects(session.asked[-1]))
    panel.controls.target.setCurrentIndex(2)
    panel.controls.target.textActivated.emit(panel.controls.target.currentText())
    panel.controls.against.setEditText("␣Tom")
    panel.controls.against.lineEdit().editingFinished.emit()
    assert session.asked[-1].aim.target == 5
    session.dispatch(OpenCheckpoint("story-next"))
    session.arrive(answers.loaded("story-next"))
    session.arrive(answers.ran(2))
    asked = [request for request in session.asked if isinstance(request, EffectsRequest) and request.run == 2]
    assert asked
    assert {request.aim for request in asked} == {Metric(position=3)}
    assert panel.controls.target.currentText() == "the likeliest"


def test_what_was_chosen_is_undone_and_redone_where_one_sees_it(panel, session):
    session.arrive(effects(session.asked[-1]))
    panel.controls.target.setCurrentIndex(2)
    panel.controls.target.textActivated.emit(panel.controls.target.currentText())
    panel.controls.other.setText("Tom and Ben went")
    panel.controls.other.editingFinished.emit()
    panel.controls.loss.click()
    assert session.asked[-1].aim.measure == "loss"
    session.undo()
    assert not panel.controls.loss.isChecked()
    assert session.asked[-1].aim == Metric(position=3, target=5)
    session.undo()
    assert panel.controls.other.text() == ""
    session.undo()
    assert panel.controls.target.currentText() == "the likeliest"
    for _ in range(3):
        session.redo()
    assert panel.controls.target.currentText() == "␣Anna"
    assert panel.controls.other.text() == "Tom and Ben went"
    assert panel.controls.loss.isChecked()


def test_leaving_a_field_as_it_is_is_no_step(panel, session):
    session.arrive(effects(session.asked[-1]))
    panel.controls.target.setCurrentIndex(2)
    panel.controls.target.textActivated.emit(panel.controls.target.currentText())
    steps = session.steps
    session.arrive(effects(session.asked[-1], aim=replace(AIM, candidates=AIM.candidates[:1])))  # it lists others now
    for box in (panel.controls.target, panel.controls.against, panel.controls.followed):
        box.lineEdit().editingFinished.emit()
    panel.controls.other.editingFinished.emit()
    assert session.steps == steps
    assert session.state.document.effects.target == Answer("␣Anna", 5)


def test_what_another_document_asked_is_shown(panel, session):
    asked = EffectsChoices(
        target=Answer("␣Anna", 5), against=Answer("␣Ben"), other="Tom and Ben went", copied="head", aligned="end"
    )
    session.dispatch(RestoreDocument(replace(session.state.document, effects=asked)))
    panel.choose_again({"page": PATCH})
    request = session.asked[-1]
    assert isinstance(request, PatchRequest)
    assert (request.other, request.kind, request.align) == ("Tom and Ben went", "head", "end")
    assert (request.aim.target, request.aim.against) == (5, " Ben")
    controls = panel.controls
    assert (controls.target.currentText(), controls.against.currentText()) == ("␣Anna", "␣Ben")
    assert (controls.kind.currentData(), controls.align.currentData()) == ("head", "end")


def test_answers_stay_where_the_same_model_is_placed_anew(panel, session):
    session.arrive(effects(session.asked[-1]))
    panel.controls.target.setCurrentIndex(2)
    panel.controls.target.textActivated.emit(panel.controls.target.currentText())
    session.arrive(answers.loaded())
    session.arrive(answers.ran(2))
    request = [asked for asked in session.asked if isinstance(asked, EffectsRequest)][-1]
    assert (request.run, request.aim.target) == (2, 5)
