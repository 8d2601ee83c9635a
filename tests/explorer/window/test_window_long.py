"""A text of 1,500 tokens in the whole window: tiles, search, thumbnails, and the comparison on some rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from transformers import PreTrainedTokenizerFast

from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.panels.masks.effect import AFTER, BEFORE, CHANGE
from attention_explorer.panels.masks.panel import MaskScalePanel
from attention_explorer.session.intents import PutIntervention, SelectCell, SelectHead, SetText
from attention_explorer.widgets.number_text import value_text
from attention_explorer.window.window import MainWindow
from attention_models import open_checkpoint, run
from attention_models.forward.trace import Trace
from attention_models.protocol.atlas import AtlasView
from attention_models.protocol.comparison import CompareView
from attention_models.protocol.head import RowView
from attention_models.protocol.interventions import Mask, Scale
from attention_models.protocol.trust import TrustReport
from attention_models.protocol.values import SiteRef
from tests.explorer.real_window import opened_window, panel_of, settle, wait_until
from tests.models import tiny

TOKENS, ROOM = 1500, 2048


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny GPT-2 with room for 2,048 tokens."""
    kind = tiny.KINDS["gpt2"]

    def tokenizer() -> PreTrainedTokenizerFast:
        made = kind.tokenizer()
        made.model_max_length = ROOM
        return made

    long = replace(kind, settings={**kind.settings, "n_positions": ROOM}, tokenizer=tokenizer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(tiny.KINDS, "gpt2", long)
        return tiny.save("gpt2", tmp_path_factory.mktemp("long") / "long")


@pytest.fixture(scope="module")
def text(folder: Path) -> str:
    return tiny.text_of(open_checkpoint(folder), TOKENS)


@pytest.fixture(scope="module")
def trace(folder: Path, text: str) -> Trace:
    return run(open_checkpoint(folder), text)


@pytest.fixture
def window(qapp: QApplication, folder: Path, text: str) -> Iterator[MainWindow]:
    with opened_window(str(folder), text) as window:
        yield window


def test_the_map_is_the_run_s_own_weights_at_every_zoom(window: MainWindow, trace: Trace) -> None:
    panel = panel_of(window, HeadMapPanel)
    window.session.dispatch(SelectHead(SiteRef("decoder", 1), 2))
    settle(window)
    weights = trace.weights(("decoder", 1), 2)
    assert panel.map.is_tiled
    value, cell = panel.map.value_at(1200, 301) or (0.0, 0)
    assert cell == 1 << panel.map.level > 1
    rows, columns = (slice(place // cell * cell, (place // cell + 1) * cell) for place in (1200, 301))
    assert value == pytest.approx(float(weights[rows, columns].max()), abs=1e-6)
    panel.map.go_to_cell(1200, 301)
    settle(window)
    for query, key in ((1200, 301), (1203, 300), (1198, 305)):
        value, cell = panel.map.value_at(query, key) or (0.0, 0)
        assert cell == 1
        assert value == pytest.approx(float(weights[query, key]), abs=1e-6)
    panel.map.go_to_cell(1200, 1200)
    settle(window)
    assert panel.map.readout(1200, 1201).endswith(": masked")


@pytest.mark.x
def test_a_token_is_found_by_keyboard(window: MainWindow, trace: Trace) -> None:
    panel = panel_of(window, HeadMapPanel)
    QTest.keyClick(window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert panel.tools.search.field.hasFocus()
    QTest.keyClicks(panel.tools.search.field, "ann")
    places = [i for i, token in enumerate(trace.tokens) if "ann" in token.word.lower()]
    assert panel.tools.search.matches == tuple(places)
    QTest.keyClick(panel.tools.search.field, Qt.Key.Key_Return)
    settle(window)
    selection = window.session.state.selection
    assert selection.query in places
    assert selection.query in panel.map.view.rows.visible()
    row = window.session.state.results.of(RowView)
    assert row is not None
    site = selection.site
    assert site is not None
    np.testing.assert_allclose(row.weights, trace.weights(site, selection.head, [selection.query])[0], atol=1e-6)


def test_words_of_several_tokens_are_found(window: MainWindow, text: str, trace: Trace) -> None:
    panel = panel_of(window, HeadMapPanel)
    first, second = trace.tokens[700], trace.tokens[701]
    wanted = text[first.start : second.end].strip()
    panel.tools.search.field.setText(wanted)
    starts = [at for at in range(len(text)) if text[at : at + len(wanted)].lower() == wanted.lower()]
    places = {next(i for i, token in enumerate(trace.tokens) if token.start <= at < token.end) for at in starts}
    assert 700 in places
    assert set(panel.tools.search.matches) == places


def test_every_thumbnail_comes(window: MainWindow, trace: Trace) -> None:
    view = window.session.state.results.of(AtlasView)
    assert view is not None
    assert view.done == 1
    np.testing.assert_allclose(view.images, trace.atlas(48), atol=1e-6)


def test_it_is_compared_when_asked_and_on_some_rows(window: MainWindow) -> None:
    def report() -> TrustReport | None:
        return window.session.state.results.of(TrustReport)

    assert report() is None
    window.top_bar.trust.measure()
    wait_until(lambda: report() is not None)
    found = report()
    assert found is not None
    assert found.rows == 64
    assert found.holds


def test_to_a_short_text_and_back(window: MainWindow, text: str) -> None:
    panel = panel_of(window, HeadMapPanel)
    window.session.dispatch(SetText("Tom and Anna went"))
    settle(window)
    assert not panel.tools.isVisible()
    assert panel.map.cache.nbytes == 0
    assert "looks at" in panel.map.readout(3, 3)
    window.session.dispatch(SetText(text))
    settle(window)
    assert panel.map.is_tiled
    assert panel.map.missing() == []


def test_tiles_of_a_run_that_is_gone_are_not_kept(window: MainWindow) -> None:
    maps = (panel_of(window, HeadMapPanel).map, panel_of(window, MaskScalePanel).effect.change.map)
    window.dock_host.docks["masks"].raise_()
    settle(window)
    once = maps[0].cache.nbytes
    for factor in (0.5, 0.6, 0.7):
        window.session.dispatch(PutIntervention(Scale(factor)))
        settle(window)
    tile = maps[1].overview()
    assert tile is not None
    assert maps[0].cache.nbytes == once
    assert maps[1].cache.nbytes == 5 * tile.size  # a float and its colour


def test_masks_show_before_and_after_in_squares_and_rows_exactly(
    window: MainWindow, folder: Path, text: str, trace: Trace
) -> None:
    site, head, edit = SiteRef("decoder", 1), 2, Mask("window", window=40)
    window.session.dispatch(SelectHead(site, head))
    window.dock_host.docks["masks"].raise_()
    settle(window)
    panel = panel_of(window, MaskScalePanel)
    assert not panel.effect.change.isVisibleTo(panel)  # nothing is changed, so there is one number of each
    window.session.dispatch(PutIntervention(edit))
    window.session.dispatch(SelectCell(1200, 301))
    settle(window)
    view, change = window.session.state.results.of(CompareView), panel.effect.change
    assert view is not None
    assert view.done == 1
    edited = run(open_checkpoint(folder), text, interventions=[edit])
    whole = [t.weights(site, head) for t in (trace, edited)]
    top = [value_text(float(w[1200].max())) for w in whole]
    assert [label.text().split()[0] for label in panel.effect.numbers.rows[1][1:]] == top
    assert change.note.text() == f"A square is the largest change of {view.cell} × {view.cell} weights."
    assert view.cell == 8
    assert change.map.readout(1200, 301).startswith("around “")  # the panel is narrow, and the note says the rest
    square = (slice(1200, 1208), slice(296, 304))
    panel.area.ensureWidgetVisible(change.map)
    for which, values in ((CHANGE, whole[1] - whole[0]), (BEFORE, whole[0])):
        QTest.mouseClick(change.choice.button(which), Qt.MouseButton.LeftButton)
        found = values[square].ravel()[np.abs(values[square]).argmax()]
        np.testing.assert_allclose(change.map.value_at(1200, 301) or (), (found, 8), atol=1e-6)
    QTest.mouseClick(change.choice.button(AFTER), Qt.MouseButton.LeftButton)
    assert change.map.readout(1200, 301).endswith("all masked")
    place = change.map.cell_rect(700, 690).center().toPoint()
    QTest.mouseClick(change.map, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, place)
    selection = window.session.state.selection
    assert abs(selection.query - 700) <= 8  # within a pixel
    assert abs(selection.key - 690) <= 8
    QTest.keyClick(change.map, Qt.Key.Key_Plus)
    assert change.map.view.zoom > 1
