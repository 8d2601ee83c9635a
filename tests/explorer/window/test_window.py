"""The window with the real engine: one selection and many views, driven by mouse and keyboard."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QLabel, QWidget

import attention_models as models
from attention_explorer.look.theme import LIGHT
from attention_explorer.panels.all_heads.panel import HeadAtlasPanel
from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.panels.next_token.panel import NextTokenPanel
from attention_explorer.widgets.number_text import value_text
from attention_explorer.window.window import MainWindow
from attention_models.protocol.atlas import AtlasView
from attention_models.protocol.head import HeadView
from attention_models.protocol.prediction import PredictionView
from attention_models.protocol.trust import TrustReport, TrustRequest
from tests.explorer.real_window import (
    EXAMPLE,
    bars,
    click,
    click_cell,
    click_head,
    click_token,
    colour_at,
    panel_of,
    picture,
    press,
    requests_of,
    settle,
)
from tests.explorer.widgets.pictures import rgb

pytestmark = pytest.mark.x

ALT, SHIFT = Qt.KeyboardModifier.AltModifier, Qt.KeyboardModifier.ShiftModifier


def chip_frame(window: MainWindow, token: int) -> str:
    """The accent around a token's chip, "" where there is none: the strongest of the pixels across its left edge."""
    rect, image = window.input.strip.chip_rect(token), picture(window.input.strip)
    left, middle = round(rect.left()), round(rect.center().y())
    pixels = np.array([colour_at(image, QPoint(left + across, middle)) for across in range(-1, 4)])
    for role in ("query", "key"):
        if np.abs(pixels - rgb(QColor(getattr(LIGHT, role)))).sum(axis=1).min() < 60:
            return role
    return ""


def labels(widget: QWidget) -> str:
    """All that the labels in a widget say."""
    return "\n".join(label.text() for label in widget.findChildren(QLabel))


def assert_all_views_show(window: MainWindow, layer: int, head: int, query: int, key: int) -> None:
    """Every view follows the one selection, with the weights of that head."""
    settle(window)
    state = window.session.state
    selection, view = state.selection, state.results.of(HeadView)
    assert state.ran is not None
    assert view is not None
    assert selection.site is not None
    words = [token.word for token in state.ran.tokens]
    assert (selection.site.layer, selection.head, selection.query, selection.key) == (layer, head, query, key)
    assert (view.request.site.layer, view.request.head) == (layer, head)

    atlas, head_map = panel_of(window, HeadAtlasPanel), panel_of(window, HeadMapPanel)
    next_token = panel_of(window, NextTokenPanel)
    assert atlas.atlas.selection == (layer, head)
    assert head_map.map.selection == (query, key)
    assert head_map.card.accessibleName() == f"Layer {layer}, head {head}"
    weight = value_text(float(view.weights[query, key]))
    assert head_map.map.readout(query, key) in (
        f"“{words[query]}” looks at “{words[key]}”: {weight}",
        f"“{words[query]}” cannot look at “{words[key]}”: masked",
    )
    assert f"after “{words[query]}”, position {query} ·" in labels(next_token.card)
    assert window.input.caption.text() == f"arcs: layer {layer}, head {head}, from “{words[query]}”"
    accents = {token: "key" if token == key else "" for token in range(len(words))} | {query: "query"}
    assert {token: chip_frame(window, token) for token in accents} == accents


def test_the_first_start_shows_where_the_name_is_found(opened):
    state = opened.session.state
    assert state.ran is not None
    assert [token.word for token in state.ran.tokens][:4] == ["⟨start⟩", "Tom", "and", "Anna"]
    assert len(state.ran.tokens) == 14
    assert opened.input.text.text() == EXAMPLE
    assert_all_views_show(opened, layer=5, head=5, query=13, key=1)
    assert bars(opened).startswith("␣Tom 67.9 %, ")
    assert opened.windowTitle() == "story-gpt - Attention Explorer"
    assert "14 of 512 tokens" in opened.top_bar.facts.text()
    trust = opened.top_bar.trust
    assert [chip.kind for chip in (trust.mode, trust.rows, trust.equal)] == ["ok", "ok", "ok"]
    assert not opened.notice_bar.isVisible()


def test_every_number_shown_is_the_models(window):
    trace = models.run(models.open_checkpoint("story-gpt"), EXAMPLE)
    click_head(window, 2, 7)
    settle(window)
    view, atlas = window.session.state.results.of(HeadView), window.session.state.results.of(AtlasView)
    np.testing.assert_array_equal(view.weights, trace.weights(("decoder", 2), 7))
    np.testing.assert_array_equal(atlas.images[6, 1], trace.weights(("decoder", 6), 1))
    prediction = window.session.state.results.of(PredictionView).predictions[0]
    logits = trace.logits[13].astype(np.float64)
    probabilities = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    assert prediction.candidates[0].probability == pytest.approx(probabilities.max(), rel=1e-6)
    assert prediction.candidates[0].id == probabilities.argmax()


def test_a_thumbnail_a_cell_and_a_token_select_in_every_view(window):
    click_head(window, 6, 2)
    assert_all_views_show(window, 6, 2, 13, 1)
    click_cell(window, 9, 3)
    assert_all_views_show(window, 6, 2, 9, 3)
    click_token(window, 4)
    assert_all_views_show(window, 6, 2, 4, 3)
    click_token(window, 2, SHIFT)
    assert_all_views_show(window, 6, 2, 4, 2)


def test_arrows_in_each_view(window):
    heat_map = panel_of(window, HeadMapPanel).map
    heat_map.setFocus()
    press(heat_map, Qt.Key.Key_Up)
    press(heat_map, Qt.Key.Key_Right)
    assert_all_views_show(window, 5, 5, 12, 2)
    atlas = panel_of(window, HeadAtlasPanel).atlas
    press(atlas, Qt.Key.Key_Down)
    press(atlas, Qt.Key.Key_Left)
    assert_all_views_show(window, 6, 4, 12, 2)
    press(window.input.strip, Qt.Key.Key_Left)
    press(window.input.strip, Qt.Key.Key_Right, SHIFT)
    assert_all_views_show(window, 6, 4, 11, 3)


def test_alt_and_arrows_walk_over_the_heads_from_inside_the_input(window):
    steps = ((Qt.Key.Key_Down, 6, 5), (Qt.Key.Key_Right, 6, 6), (Qt.Key.Key_Up, 5, 6), (Qt.Key.Key_Left, 5, 5))
    for key, layer, head in steps:
        press(window.input.text, key, ALT)
        assert_all_views_show(window, layer, head, 13, 1)
    for _ in range(4):  # beyond the last layer nothing happens
        press(window.input.text, Qt.Key.Key_Down, ALT)
    assert_all_views_show(window, 7, 5, 13, 1)


def test_a_click_on_the_trust_strip_measures_again(window):
    trust = window.top_bar.trust
    before = window.session.state.results.of(TrustReport)
    with requests_of(window) as asked:
        click(trust.equal, trust.equal.rect().center())
    assert [type(request) for request in asked] == [TrustRequest]
    settle(window)
    report = window.session.state.results.of(TrustReport)
    assert report is not before
    assert report.holds
    assert trust.equal.text.startswith("✓ equals the model")


def test_bars_and_arcs_follow_the_token_that_looks(window):
    click_token(window, 1)
    settle(window)
    after_tom = bars(window)
    click_token(window, 3)
    settle(window)
    assert bars(window) != after_tom
    view = window.session.state.results.of(PredictionView)
    assert [prediction.position for prediction in view.predictions] == [3]
    assert view.predictions[0].actual.label == "␣went"


def test_a_selection_made_while_the_last_head_is_computed_is_shown(window):
    click_head(window, 1, 1)
    click_head(window, 5, 5)  # back before the answer, which is then of no use
    settle(window)
    click_head(window, 1, 1)
    assert_all_views_show(window, 1, 1, 13, 1)
