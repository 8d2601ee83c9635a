"""“Show as PyTorch” of what is held against other runs, and of files and lengths: pressed, read and run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu

from attention_explorer.panels.compare.panel import ComparePanel
from attention_explorer.panels.corpus.panel import DISTANCE, MAP, PLACES, ROWS, CorpusPanel
from attention_explorer.panels.length.panel import DATES, QualityPanel
from attention_explorer.session.corpus import corpus_view
from attention_explorer.session.intents import AskCorpus, ChooseCorpus, CompareWith, PutIntervention, SetText
from attention_explorer.window.window import MainWindow
from attention_models.length import measurement as quality
from attention_models.protocol.corpus import CorpusQuestion
from attention_models.protocol.interventions import Scale
from attention_models.protocol.prediction import PredictionView
from attention_models.protocol.quality import QualityView
from attention_models.protocol.two_runs import TwoRunsView
from attention_models.protocol.values import SiteRef
from tests.explorer.real_window import EXAMPLE, click, destroy, key, panel_of, settle, wait_until
from tests.explorer.script_window import code_of, script_of
from tests.models.scripts.running import Line, printed

pytestmark = pytest.mark.full

OTHER = "Tom and Anna went to the park. Tom gave the ball to"


def show(window: MainWindow, name: str) -> None:
    window.dock_host.raise_panel(name)
    settle(window)


def checked(code: str, folder: Path, own_classes: bool = False) -> dict[str, Line]:
    """What a script prints, by name; all of it is what is on screen."""
    lines = printed({"script": code}, folder, own_classes)["script"]
    assert lines
    largest = max(1.0, *(abs(line.shown) for line in lines))
    for line in lines:
        assert line.computed == pytest.approx(line.shown, abs=1e-6 * largest), line
    return {line.name: line for line in lines}


@pytest.fixture
def compare(window: MainWindow) -> Iterator[ComparePanel]:
    show(window, "compare")
    yield panel_of(window, ComparePanel)
    window.session.dispatch(CompareWith(None))
    settle(window)


def test_compare_shows_lines_that_give_its_difference(
    window: MainWindow, compare: ComparePanel, tmp_path: Path
) -> None:
    assert not compare.code_button.isEnabled()  # there is no B yet
    compare.pages.asked.emit()
    window.session.dispatch(SetText(OTHER))
    settle(window)
    view = window.session.state.results.of(TwoRunsView)
    assert view is not None
    assert view.maps is not None
    lines = checked(code_of(window, compare), tmp_path)
    assert lines["largest of |A − B|"].shown == view.maps.largest
    change = view.counterpart(SiteRef("decoder", 5), 5)
    assert change is not None
    assert lines["how much the head changed"].shown == change.change
    assert lines["“␣Anna” in A"].shown == view.a.output.candidates[0].probability

    window.session.dispatch(SetText(EXAMPLE))
    window.session.dispatch(PutIntervention(Scale(0.5)))
    settle(window)
    code = code_of(window, compare)
    assert "Scale(factor=0.5" in code
    edited = window.session.state.results.of(TwoRunsView)
    assert edited is not None
    assert edited.maps is not None
    assert checked(code, tmp_path, own_classes=True)["largest of |A − B|"].shown == edited.maps.largest


def test_length_shows_lines_that_give_its_scores(
    window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quality, "DATES", 30)
    show(window, "quality")
    panel = panel_of(window, QualityPanel)
    assert not panel.code_button.isEnabled()  # nothing is measured yet
    click(panel.choices.task.button(DATES), panel.choices.task.button(DATES).rect().center())
    click(panel.run, panel.run.rect().center())
    wait_until(lambda: window.session.state.measuring is None and len(panel.plot.places) > 1)
    settle(window)
    QTest.keyClick(panel.plot, Qt.Key.Key_Home)
    QTest.keyClick(panel.plot, Qt.Key.Key_Right)
    view = window.session.state.results.of(QualityView)
    assert view is not None
    code = code_of(window, panel)
    assert repr(panel.examples.example.source) in code
    bin_ = view.bins[1]
    assert panel.examples.example in bin_.examples
    lines = checked(code, tmp_path, own_classes=True)
    for name, score in zip(view.models, bin_.scores, strict=True):
        assert lines[f"{name}, right, of {bin_.sentences}"].shown == score.exact
        assert lines[f"{name}, log p a token, nats"].shown == score.log_probability


def test_corpus_shows_lines_of_each_page(window: MainWindow, tmp_path: Path) -> None:
    texts = ["Tom and Anna went to the park.", "Anna gave the ball to Tom. Tom gave the ball to", "Tom fell."]
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(texts))
    show(window, "corpus")
    panel = panel_of(window, CorpusPanel)
    assert not panel.code_button.isEnabled()  # nothing is read yet
    window.session.dispatch(ChooseCorpus(str(path)))
    window.session.dispatch(AskCorpus(CorpusQuestion("copy", "Tom")))
    wait_until(lambda: not window.session.state.reading)
    settle(window)
    view = corpus_view(window.session.state)
    assert view is not None
    page = panel.pages.button(MAP)
    click(page, page.rect().center())
    cells = panel.map_page.map
    click(cells, cells.cell_rect(3, 1).center().toPoint())
    lines = checked(code_of(window, panel), tmp_path)
    assert lines["mean weight from place 3 to place 1"].shown == float(view.mean[5, 5, 3, 1])
    page = panel.pages.button(DISTANCE)
    click(page, page.rect().center())
    lines = checked(code_of(window, panel), tmp_path)
    assert all(name.endswith(" before") for name in lines)
    assert max(line.shown for line in lines.values()) == np.nanmax(view.by_distance[5, 5])
    page = panel.pages.button(PLACES)
    click(page, page.rect().center())
    hits = view.hits[5][5]
    panel.places.hits.setCurrentRow(1)
    lines = checked(code_of(window, panel), tmp_path)
    assert lines[f"weight of ({hits[1].query}, {hits[1].key})"].shown == hits[1].weight
    assert lines["how much the head does it, over all texts"].shown == view.scores[5, 5]
    page = panel.pages.button(ROWS)
    click(page, page.rect().center())
    row = view.rows[0]
    found = checked(code_of(window, panel), tmp_path)
    assert {line.shown for line in found.values()} <= set(row.weights[5][5].astype(float))
    assert len(found) >= 2


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)  # no keyboard for a menu offscreen
def test_the_model_as_transformers_runs_it_is_shown_from_the_menu_and_the_strip(
    window: MainWindow, tmp_path: Path
) -> None:
    menus = [action.menu() for action in window.menuBar().actions()]
    run = next(menu for menu in menus if isinstance(menu, QMenu) and menu.title() == "&Run")
    shows = next(action for action in run.actions() if action.text() == "Show &the model's own run as PyTorch")
    run.popup(window.mapToGlobal(QPoint(60, 30)))
    QTest.mouseClick(run, Qt.MouseButton.LeftButton, pos=run.actionGeometry(shows).center())
    script = script_of(window)
    assert "as transformers runs it" in script.title.text()
    lines = checked(script.code, tmp_path)
    prediction = window.session.state.results.of(PredictionView)
    assert prediction is not None
    best = prediction.predictions[0].candidates[0]
    assert lines[f"logit of “{best.label}”"].shown == pytest.approx(best.logit, rel=1e-7)
    script.close()
    destroy(script)

    window.activateWindow()
    assert QTest.qWaitForWindowActive(window)
    window.top_bar.trust.equal.setFocus()
    key(window, Qt.Key.Key_P, Qt.KeyboardModifier.ControlModifier)  # on a sign
    script = script_of(window)
    assert "as transformers runs it" in script.title.text()
    script.close()
    destroy(script)
