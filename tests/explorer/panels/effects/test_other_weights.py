"""The search for other weights in the panel: begun, followed, stopped; and what its strips and sentences say."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from attention_explorer.panels.effects.panel import EffectsPanel, change_sentence, same_sentence, weights_grid
from attention_explorer.panels.effects.questions import TOKENS, weights_request
from attention_explorer.session.effects_choices import EffectsChoices
from attention_explorer.session.intents import AskEffects, SelectHead
from attention_explorer.session.state import State
from attention_models.protocol.effects import (
    ACCOUNTS,
    Account,
    AdversarialAttentionRequest,
    AdversarialAttentionView,
    ExplanationRequest,
    ExplanationView,
    Moved,
    Rerun,
)
from attention_models.protocol.information import Unit
from attention_models.protocol.values import Candidate, SiteRef
from tests.explorer.panels.effects.test_panel import AIM
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown

SITE = SiteRef("decoder", 4)
KEYS = ("Tom", "and", "Anna", "went")


def said(label: str, probability: float) -> Candidate:
    return Candidate(id=len(label), label=label, piece="", probability=probability, logit=math.nan, rank=1)


def rerun(weights: list[float], distance: float, best: Candidate, former: Candidate) -> Rerun:
    return Rerun(weights=np.array([weights]), divergence=np.array([0.25]), distance=distance, best=best, former=former)


def found(request: AdversarialAttentionRequest, **changes: object) -> AdversarialAttentionView:
    tom = said("␣Tom", 0.6)
    view = AdversarialAttentionView(
        request=request,
        heads=((SITE, 1),),
        position=3,
        query=3,
        visible=np.array([[True, True, True, False]]),
        observed=np.array([[0.1, 0.2, 0.7, 0.0]]),
        before=tom,
        same=rerun([0.5, 0.4, 0.1, 0.0], 0.0083, said("␣Tom", 0.595), said("␣Tom", 0.595)),
        searched=True,
        blocks_done=True,
        moves_done=True,
        moves=6,
        tried=6,
    )
    return replace(view, **changes)  # type: ignore[arg-type]


MOVED = Moved(
    source=2,
    target=0,
    mass=0.35,
    share=0.5,
    rerun=rerun([0.45, 0.2, 0.35, 0.0], 0.3, said("␣Anna", 0.5), said("␣Tom", 0.3)),
)


def accounts(request: ExplanationRequest) -> ExplanationView:
    return ExplanationView(
        request=request,
        aim=AIM,
        accounts=tuple(Account(name, np.arange(4.0)) for name in ACCOUNTS),
        correlations=np.ones((len(ACCOUNTS), len(ACCOUNTS))),
        reached=np.ones(4, bool),
    )


@pytest.fixture
def session() -> SilentSession:
    session = SilentSession(answers.after(State(), answers.loaded(), answers.ran()))
    session.dispatch(SelectHead(SITE, 1))
    return session


@pytest.fixture
def panel(qtbot, session) -> EffectsPanel:
    panel = shown(qtbot, EffectsPanel, session)
    panel.resize(700, 1000)
    panel.pages.button(TOKENS).click()
    session.arrive(accounts(session.asked[-1]))
    return panel


def press(panel: EffectsPanel) -> None:
    QTest.mouseClick(panel.weights.search, Qt.MouseButton.LeftButton)


def test_it_is_searched_once_asked_for_and_comes_in_parts(panel, session):
    assert not any(isinstance(request, AdversarialAttentionRequest) for request in session.asked)
    press(panel)
    first = session.asked[-1]
    assert first == AdversarialAttentionRequest(run=1, site=SITE, head=1, position=3)
    assert panel.weights.same.text() == "Searching."
    assert panel.weights.search.text() == "Stop the search"
    session.arrive(found(first, done=0.25, searched=False, blocks_done=False, moves_done=False))
    assert session.asked[-1] == replace(first, have=0.25)
    assert panel.weights.same.text().endswith("So far.")
    session.arrive(found(session.asked[-1], moved=MOVED))
    assert not panel.is_waiting()
    assert panel.weights.search.text() == "Search other weights"
    QTest.mouseClick(
        panel.weights.grid, Qt.MouseButton.LeftButton, pos=panel.weights.grid.cell_rect(0, 2).center().toPoint()
    )
    assert session.state.selection.key == 2
    grid = panel.weights.grid.grid
    assert grid is not None
    assert grid.row_labels == ("as it is", "same answer", "least moved")
    np.testing.assert_array_equal(grid.values[0], [0.1, 0.2, 0.7, np.nan])
    assert "“Anna” 50.0 % is likeliest, “Tom” 60.0 % → 30.0 %" in panel.weights.changed.text()


def test_it_is_stopped_by_a_second_press_and_what_was_found_stays(panel, session, qtbot):
    press(panel)
    session.arrive(found(session.asked[-1], done=0.25, searched=False, blocks_done=False, moves_done=False))
    with qtbot.waitSignal(session.called_off) as called_off:
        press(panel)
    assert called_off.args == [AdversarialAttentionRequest.lane]
    assert not panel.is_waiting()
    assert "divergence" in panel.weights.same.text()
    count = len(session.asked)
    press(panel)
    assert session.asked[-1].have == 0.25  # it goes on
    assert len(session.asked) == count + 1


def test_another_head_bound_or_scope_is_another_question(panel, session):
    press(panel)
    session.arrive(found(session.asked[-1]))
    session.dispatch(SelectHead(SITE, 2))
    assert session.asked[-1].head == 2
    assert panel.weights.grid.grid is None
    panel.weights.epsilon.setCurrentIndex(3)
    panel.weights.epsilon.activated.emit(3)
    assert session.asked[-1].epsilon == 0.05
    panel.weights.scope.setCurrentIndex(1)
    panel.weights.scope.activated.emit(1)
    assert (session.asked[-1].scope, session.asked[-1].head, session.asked[-1].site) == ("layer", 0, SITE)
    session.undo()
    session.undo()
    assert session.state.document.effects == EffectsChoices()
    assert (panel.weights.scope.currentData(), panel.weights.epsilon.currentData()) == ("head", 0.01)


def test_heads_that_are_changed_together_are_asked_for_once(session):
    session.dispatch(AskEffects(EffectsChoices(scope="stack")))
    first = weights_request(session.state)
    session.dispatch(SelectHead(SiteRef("decoder", 6), 3))
    assert weights_request(session.state) == first
    assert first is not None
    assert (first.site, first.head) == (SiteRef("decoder", 0), 0)


def test_a_bound_of_a_file_that_is_not_listed_is_shown(panel, session):
    session.dispatch(AskEffects(EffectsChoices(epsilon=0.2)))
    assert panel.weights.epsilon.currentText() == "0.2"


@pytest.mark.parametrize(
    ("changes", "dtype", "sentence"),
    [
        ({}, "bfloat16", "Gradients in half precision are rounded too much"),
        ({"weights_only": "This family computes its attention itself."}, "float32", "So no part of it can be changed"),
        ({"textbook": True}, "float32", "has no residual stream to take parts out of"),
    ],
)
def test_what_holds_of_the_whole_page_is_said_once(qtbot, changes, dtype, sentence):
    loaded = answers.loaded()
    loaded = replace(
        loaded,
        info=replace(loaded.info, **changes),
        placement=replace(loaded.placement, dtype=dtype),
    )
    session = SilentSession(answers.after(State(), loaded, answers.ran()))
    panel = shown(qtbot, EffectsPanel, session)
    panel.pages.button(TOKENS).click()
    assert sentence in panel.grid.empty_text
    assert not panel.weights.isVisible()
    assert not panel.sentence.isVisible()


def test_rows_of_an_encoder_are_not_those_of_the_answer(qtbot):
    loaded = answers.loaded()
    loaded = replace(loaded, info=replace(loaded.info, family="seq2seq"))
    session = SilentSession(answers.after(State(), loaded, answers.ran(stack="encoder")))
    panel = shown(qtbot, EffectsPanel, session)
    panel.pages.button(TOKENS).click()
    assert "The answer is read in the decoder" in panel.weights.same.text()
    assert not panel.weights.search.isEnabled()


@pytest.mark.parametrize(("unit", "most", "far"), [("nats", "0.693", "0.250"), ("bits", "1.000", "0.361")])
def test_a_divergence_is_told_in_the_unit_beside_its_largest(unit: Unit, most: str, far: str) -> None:
    request = AdversarialAttentionRequest(run=1, site=SITE, head=1)
    text = same_sentence(found(request), unit, [SITE])
    assert f"of layer 4, head 1, same answer: Jensen-Shannon divergence {far} of at most {most} {unit}" in text
    assert "moved by 0.00830 in total variation distance, where 0.01 was allowed: “Tom” 60.0 % → 59.5 %." in text


def test_what_no_change_does_is_said_too() -> None:
    request = AdversarialAttentionRequest(run=1, site=SITE, head=1)
    assert change_sentence(found(request), KEYS) == (
        "No key blocked by itself makes another answer likeliest. Nor does moving one key's weight to another: "
        "6 moves were tried."
    )
    assert change_sentence(found(request, tried=1024, moves=2450), KEYS).endswith(
        "another: 1,024 moves of 2,450 (those from the keys with the most weight) were tried."
    )
    blocked = replace(MOVED, target=None, share=1.0, mass=0.7)
    text = change_sentence(found(request, blocked=blocked, moves_done=False, done=0.5), KEYS)
    assert text == (
        "Without “Anna” (70.0 % of the weight): “Anna” 50.0 % is likeliest, “Tom” 60.0 % → 30.0 %. 50% done."
    )


def test_strips_are_of_the_selected_head_in_one_scale() -> None:
    request = AdversarialAttentionRequest(run=1, site=SITE, head=0, scope="layer")
    two = np.array([[0.1, 0.2, 0.7, 0.0], [0.3, 0.3, 0.4, 0.0]])
    same = Rerun(
        weights=two[::-1], divergence=np.array([0.1, 0.2]), distance=0.0, best=said("a", 1), former=said("a", 1)
    )
    view = found(request, heads=((SITE, 0), (SITE, 1)), observed=two, visible=np.ones((2, 4), bool), same=same)
    grid = weights_grid(view, SITE, 1, KEYS)
    np.testing.assert_array_equal(grid.values, [two[1], two[0]])
    assert grid.high == 0.7
    assert grid.words[0][2] == ".40"
    assert grid.tips[1][2] == "same answer: 70.0 % on “Anna”"
    assert "of all 2 heads of layer 4, same answer" in same_sentence(view, "bits", [SITE])
    of_all = replace(view, request=replace(request, scope="stack"))
    assert "of all 2 heads, same answer" in same_sentence(of_all, "bits", [SITE])
    several = [SITE, SiteRef("encoder", 0)]
    assert "of all 2 heads of the decoder, same answer" in same_sentence(of_all, "bits", several)
    assert "of all 2 heads of decoder layer 4, same answer" in same_sentence(view, "bits", several)
