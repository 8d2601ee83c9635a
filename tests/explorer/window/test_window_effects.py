"""Effects in the window, on the real engine: a head is found, taken out, and the numbers are those of the function."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QApplication, QMenu

import models
from explorer.panels.effects.panel import EffectsPanel
from explorer.panels.head_atlas.panel import HeadAtlasPanel
from explorer.session.intents import OpenCheckpoint
from models.protocol.attribution import AttributionView
from models.protocol.effects import EffectsView
from models.protocol.explanation import ExplanationView
from models.protocol.lens import LensView
from models.protocol.patching import PatchView
from models.protocol.skip import Skip
from models.protocol.values import SiteRef
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
    assert values == [Skip("head", SiteRef("decoder", 2), 3)]
    assert window.session.state.ran.inputs.interventions == tuple(values)


ANSWERED = {  # model: the pages of Effects that have an answer there
    "story-bert": {"Heads", "Lens", "Tokens"},
    "story-next": {"Heads", "Tokens"},  # a classifier reads the first token after a pooling layer
    "en-es": {"Heads", "Lens"},
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
    effects.controls.other.clear()
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
