"""“Show as PyTorch” of Effects: each page its own lines, of the head, position or layer that is selected."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from attention_explorer.panels.effects.panel import EffectsPanel
from attention_explorer.panels.effects.panel import printed as printed_of
from attention_explorer.panels.effects.questions import HEADS, LENS, PATCH, SUM, TOKENS, WORDS
from attention_explorer.session.effects_choices import EffectsChoices
from attention_explorer.session.intents import AskEffects, SelectHead
from attention_explorer.session.state import State
from attention_models.protocol.effects import (
    AdversarialAttentionView,
    AttributionRequest,
    EffectsView,
    ExplanationRequest,
    HeadEffectRequest,
    InContextAtRequest,
    InContextView,
    LensAtRequest,
    LensView,
    PatchColumnRequest,
)
from attention_models.protocol.values import SiteRef
from tests.explorer.panels.effects.words_answers import comparison
from tests.explorer.real_window import opened_window, panel_of, settle, wait_until
from tests.explorer.script_window import code_of, script_of
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown
from tests.models.scripts.running import printed

SITE = SiteRef("decoder", 4)


@pytest.fixture
def session() -> SilentSession:
    session = SilentSession(answers.after(State(), answers.loaded(), answers.ran()))
    session.dispatch(SelectHead(SITE, 1))
    return session


def test_every_page_names_what_is_selected(session) -> None:
    state = session.state
    head = printed_of(HEADS, state, 0)
    assert isinstance(head, HeadEffectRequest)
    assert (head.site, head.head) == (SITE, 1)
    lens = printed_of(LENS, state, 0)
    assert isinstance(lens, LensAtRequest)
    assert lens.position == 3
    assert isinstance(printed_of(SUM, state, 0), AttributionRequest)
    assert isinstance(printed_of(TOKENS, state, 0), ExplanationRequest)
    words = printed_of(WORDS, state, 2)
    assert isinstance(words, InContextAtRequest)
    assert words.layer == 2


def test_a_patch_is_that_of_the_position_or_of_the_head(session) -> None:
    assert printed_of(PATCH, session.state, 0) is None  # no other text was typed
    session.dispatch(AskEffects(EffectsChoices(other="Tom and Tom went")))
    of_position = printed_of(PATCH, session.state, 0)
    assert isinstance(of_position, PatchColumnRequest)
    assert (of_position.kind, of_position.site, of_position.column) == ("residual", None, 3)
    session.dispatch(AskEffects(EffectsChoices(other="Tom and Tom went", copied="head")))
    of_head = printed_of(PATCH, session.state, 0)
    assert isinstance(of_head, PatchColumnRequest)
    assert (of_head.site, of_head.column) == (SITE, 1)


def test_the_button_waits_for_the_words(qtbot, session) -> None:
    panel = shown(qtbot, EffectsPanel, session)
    assert panel.code_button.isEnabled()
    panel.pages.button(WORDS).click()
    assert not panel.code_button.isEnabled()
    session.arrive(comparison())
    assert panel.code_button.isEnabled()
    panel.words.slider.setValue(2)
    asked = panel.prints(session.state)
    assert isinstance(asked, InContextAtRequest)
    assert asked.layer == 2


@pytest.mark.full
@pytest.mark.x
def test_the_button_of_each_page_opens_its_own_lines(tmp_path: Path) -> None:
    with opened_window() as window:
        window.dock_host.raise_panel("effects")
        settle(window)
        panel = panel_of(window, EffectsPanel)
        scripts = {}
        for page in (HEADS, LENS, WORDS):
            QTest.mouseClick(panel.pages.button(page), Qt.MouseButton.LeftButton)
            wait_until(lambda: not panel.is_waiting())
            scripts[str(page)] = code_of(window, panel)
        results = window.session.state.results
        effects, lens, words = results.of(EffectsView), results.of(LensView), results.of(InContextView)
    assert effects is not None
    assert lens is not None
    assert words is not None
    lines = printed(scripts, tmp_path)
    change = next(line for line in lines[str(HEADS)] if line.name == "change")
    of_site = effects.of(SiteRef("decoder", 5))
    assert of_site is not None
    assert change.shown == of_site[5]
    assert lens.target_rank is not None
    ranks = [line.shown for line in lines[str(LENS)] if line.name.startswith("rank")]
    assert ranks == lens.target_rank[:, 13].tolist()
    cosines = [line.shown for line in lines[str(WORDS)] if line.name.startswith("cosine")]
    assert cosines == words.cosine.tolist()
    for line in (line for found in lines.values() for line in found):
        assert line.computed == pytest.approx(line.shown, abs=1e-5)


@pytest.mark.full
@pytest.mark.x
def test_weights_that_were_found_have_a_button_of_their_own(tmp_path: Path) -> None:
    with opened_window() as window:
        window.dock_host.raise_panel("effects")
        settle(window)
        panel = panel_of(window, EffectsPanel)
        QTest.mouseClick(panel.pages.button(TOKENS), Qt.MouseButton.LeftButton)
        wait_until(lambda: not panel.is_waiting())
        assert not panel.weights.code.isVisible()
        QTest.mouseClick(panel.weights.search, Qt.MouseButton.LeftButton)
        wait_until(lambda: panel.weights.code.isVisible() and not panel.is_waiting())
        QTest.mouseClick(panel.weights.code, Qt.MouseButton.LeftButton)
        script = script_of(window)
        code = script.code
        script.close()
        settle(window)
        view = window.session.state.results.of(AdversarialAttentionView)
    assert view is not None
    lines = printed({"weights": code}, tmp_path)["weights"]
    said = {line.name: line for line in lines}
    assert said["same, total variation distance"].shown == view.same.distance
    assert said["same, total variation distance"].computed == pytest.approx(view.same.distance, abs=1e-6)
