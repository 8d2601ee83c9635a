"""Effects in the window, on the real engine: a head is found, taken out, and the numbers are those of the function."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu

import attention_models as models
from attention_explorer.panels.all_heads.panel import HeadAtlasPanel
from attention_explorer.panels.effects.panel import EffectsPanel
from attention_explorer.panels.effects.questions import PATCH, TOKENS, WORDS
from attention_explorer.session.effects_choices import EffectsChoices
from attention_explorer.session.intents import AskEffects, OpenCheckpoint, SelectHead, SelectQuery, SetText
from attention_explorer.widgets.number_text import percent_text, value_text
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.effects import (
    AdversarialAttentionRequest,
    AdversarialAttentionView,
    AttributionView,
    EffectsView,
    ExplanationView,
    InContextView,
    LensView,
    PatchView,
)
from attention_models.protocol.prediction import PredictionView
from attention_models.protocol.values import SiteRef
from tests.explorer.real_window import EXAMPLE, destroy, panel_of, settle, wait_until


@pytest.fixture
def effects(window) -> EffectsPanel:
    window.dock_host.docks["effects"].show()
    window.dock_host.raise_panel("effects")
    panel = panel_of(window, EffectsPanel)
    wait_until(panel.isVisible)
    settle(window)
    return panel


def test_the_head_that_matters_most_is_one_press_away_and_so_is_the_run_without_it(window, effects):
    effects.controls.against.setEditText("␣Anna")
    effects.controls.against.lineEdit().editingFinished.emit()
    settle(window)
    expected = models.head_effects(models.open_checkpoint("story-gpt"), EXAMPLE, target=" Tom", against=" Anna")
    view = window.session.state.results.of(EffectsView)
    for ours, theirs in zip(view.sites, expected.sites, strict=True):
        assert abs(ours.heads - theirs.heads).max() < 1e-4
    effects.controls.strongest.click()
    settle(window)
    assert expected.largest is not None
    site, head, change = expected.largest
    assert (window.session.state.selection.site, window.session.state.selection.head) == (site, head)
    effects.controls.without.click()
    settle(window)
    view = window.session.state.results.of(EffectsView)
    assert view.before.value == pytest.approx(expected.aim.value, abs=1e-4)
    assert view.now.value == pytest.approx(expected.aim.value + change, abs=1e-4)
    assert effects.change.isVisible()


def test_every_page_has_its_answer(window, effects):
    effects.controls.other.setText(EXAMPLE.replace("Anna gave", "Tom gave"))
    effects.controls.other.editingFinished.emit()
    for page, kind in enumerate((EffectsView, LensView, AttributionView, PatchView, ExplanationView)):
        effects.pages.button(page).click()
        settle(window)
        assert window.session.state.results.of(kind) is not None
        assert effects.grid.grid is not None
        assert effects.sentence.isVisible()
        assert window.session.state.notice is None
    effects.pages.button(0).click()


def test_the_atlas_menu_takes_a_head_out(window, monkeypatch):
    opened = []
    monkeypatch.setattr(QMenu, "popup", lambda menu, where: opened.append(menu))  # it would take the keyboard
    atlas = panel_of(window, HeadAtlasPanel)
    where = atlas.atlas.cell_rect(2, 3).center().toPoint()
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, where, atlas.atlas.mapToGlobal(where))
    QApplication.sendEvent(atlas.atlas, event)
    assert len(opened) == 1
    next(action for action in opened[0].actions() if action.text() == "Without this head").trigger()
    destroy(opened.pop())
    settle(window)
    values = [item.value for item in window.session.state.document.interventions]
    assert values == [Ablation("head", SiteRef("decoder", 2), 3)]
    assert window.session.state.ran.inputs.interventions == tuple(values)


def test_other_weights_on_screen_are_those_of_the_function_and_within_their_bound(window, effects):
    window.session.dispatch(SelectHead(SiteRef("decoder", 4), 1))
    effects.pages.button(TOKENS).click()
    settle(window)
    QTest.mouseClick(effects.weights.search, Qt.MouseButton.LeftButton)
    wait_until(
        lambda: (view := window.session.state.results.of(AdversarialAttentionView)) is not None and view.done == 1
    )
    settle(window)
    view = window.session.state.results.of(AdversarialAttentionView)
    assert view.same.distance <= 0.01
    assert view.same.divergence[0] > 0.05
    assert value_text(view.same.distance) in effects.weights.same.text()
    grid = effects.weights.grid.grid
    np.testing.assert_array_equal(grid.values[1], view.same.weights[0])
    trace = models.run(models.open_checkpoint("story-gpt"), EXAMPLE)
    np.testing.assert_allclose(grid.values[0], trace.weights(("decoder", 4), 1)[-1], atol=1e-6)
    assert view.moved is not None
    assert f"“Tom” {percent_text(view.before.probability)} → " in effects.weights.changed.text()
    QTest.mouseClick(effects.weights.search, Qt.MouseButton.LeftButton)


def test_a_search_is_called_off_in_between_and_the_window_goes_on(window, effects):
    effects.pages.button(TOKENS).click()
    settle(window)
    window.session.dispatch(AskEffects(EffectsChoices(scope="stack")))
    QTest.mouseClick(effects.weights.search, Qt.MouseButton.LeftButton)

    def found() -> AdversarialAttentionView | None:
        view = window.session.state.results.of(AdversarialAttentionView)
        return None if view is None or view.request.scope != "stack" else view

    wait_until(lambda: found() is not None)
    QTest.mouseClick(effects.weights.search, Qt.MouseButton.LeftButton)
    settle(window)
    view = found()
    assert view is not None
    assert view.done < 1
    assert not effects.weights.search.isChecked()
    assert AdversarialAttentionRequest.lane not in window.session.live.busy
    effects.pages.button(0).click()
    settle(window)
    assert window.session.state.results.of(EffectsView).done == 1
    window.session.undo()
    assert window.session.state.document.effects == EffectsChoices()


def test_words_in_context_are_those_of_the_function(window, effects):
    effects.pages.button(WORDS).click()
    settle(window)
    view = window.session.state.results.of(InContextView)
    asked = EffectsChoices()
    expected = models.word_in_context(models.open_checkpoint("story-gpt"), *asked.texts, "bank")
    np.testing.assert_allclose(view.cosine, expected.cosine, atol=1e-9)
    np.testing.assert_array_equal(effects.words.plot.figure.series[0].y, view.cosine)
    QTest.mouseClick(effects.words.buttons[1].buttons[8], Qt.MouseButton.LeftButton)
    settle(window)
    assert window.session.state.document.effects.words == ("bank", "money")
    view = window.session.state.results.of(InContextView)
    assert view.request.words == ("bank", "money")
    assert "“bank” and “money”" in effects.words.sentence.text()
    effects.pages.button(0).click()


def test_texts_of_different_length_are_aligned_by_a_button(window, effects):
    effects.pages.button(PATCH).click()
    effects.controls.other.setFocus()
    QTest.keyClicks(effects.controls.other, "Little " + EXAMPLE)
    QTest.keyClick(effects.controls.other, Qt.Key.Key_Return)
    settle(window)
    assert "tokens long to story-gpt" in effects.sentence.text()
    assert window.session.state.notice is None
    QTest.mouseClick(effects.controls.offers["end"], Qt.MouseButton.LeftButton)
    settle(window)
    view = window.session.state.results.of(PatchView)
    assert view.done == 1
    assert effects.grid.grid.second_labels[-1] == "to"
    effects.pages.button(0).click()


def test_effects_and_next_list_the_same_answers_of_a_text_with_a_mask(window, effects):
    window.session.dispatch(OpenCheckpoint("story-bert"))
    wait_until(lambda: window.session.state.document.checkpoint == "story-bert" and window.is_settled())
    window.session.dispatch(SetText("Tom and Anna [MASK] to the park."))
    settle(window)
    window.session.dispatch(SelectQuery(1))
    window.dock_host.raise_panel("next")
    settle(window)
    predicted = window.session.state.results.of(PredictionView).predictions[0]
    window.dock_host.raise_panel("effects")
    wait_until(effects.isVisible)
    settle(window)
    view = window.session.state.results.of(EffectsView)
    assert view.aim.position == predicted.position == window.session.state.ran.masks[0]
    assert [c.id for c in view.aim.candidates] == [c.id for c in predicted.candidates]
    assert effects.controls.at.text().startswith("at “")
    assert f"({predicted.position})" in effects.controls.at.text()


ANSWERED = {  # model: the pages of Effects that have an answer there
    "story-bert": {"Heads", "Lens", "Sum", "Tokens"},
    "story-next": {"Heads", "Tokens"},  # a classifier reads the first token after a pooling layer
    "en-es": {"Heads", "Lens", "Sum"},
    "vit-quickdraw": {"Heads", "Lens", "Sum"},
    "recurrent-en-es-bahdanau": set(),
    "dates-bottleneck": set(),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_every_page_has_an_answer_or_says_why_not(window, effects, name):
    window.session.dispatch(OpenCheckpoint(name))
    wait_until(lambda: window.session.state.document.checkpoint == name and window.is_settled())
    window.dock_host.docks["effects"].show()
    window.dock_host.raise_panel("effects")
    wait_until(effects.isVisible)
    answered = set()
    for page in range(5):
        effects.pages.button(page).click()
        settle(window)
        assert window.session.state.notice is None, page
        if effects.grid.grid is not None:
            answered.add(effects.pages.button(page).text())
        else:
            assert effects.grid.empty_text or effects.sentence.text(), page
    assert answered - {"Patch"} == ANSWERED[name]
