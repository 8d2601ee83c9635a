"""“Show as PyTorch” in the window: asked of a panel, read, copied, saved, and said where there is nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from attention_explorer.panels.all_heads.panel import HeadAtlasPanel
from attention_explorer.panels.cell.panel import CellPanel
from attention_explorer.panels.lookup.panel import LookupPanel
from attention_explorer.session.corpus import roles_view
from attention_explorer.session.intents import AskHeads, ColourByRole, SelectCell
from attention_explorer.widgets import dialogs
from attention_explorer.window.window import MainWindow
from attention_models.protocol.cell import CellView
from attention_models.protocol.roles import HeadQuestion, WhichHeadsView
from tests.explorer.real_window import panel_of, settle, wait_until
from tests.explorer.script_window import script_of
from tests.models.scripts.running import printed


def press(window: MainWindow) -> None:
    """Ctrl+P, in the main window."""
    window.activateWindow()
    assert QTest.qWaitForWindowActive(window)
    QTest.keyClick(window.focusWidget(), Qt.Key.Key_P, Qt.KeyboardModifier.ControlModifier)


def show(window: MainWindow, name: str) -> None:
    window.dock_host.raise_panel(name)
    settle(window)


def test_the_button_of_cell_shows_lines_that_give_its_weight(window: MainWindow, tmp_path: Path) -> None:
    show(window, "cell")
    panel = panel_of(window, CellPanel)
    QTest.mouseClick(panel.code_button, Qt.MouseButton.LeftButton)
    script = script_of(window)
    view = window.session.state.results.of(CellView)
    assert view is not None
    assert "head 5" in script.title.text() or str(view.request.head) in script.title.text()
    assert script.text.toPlainText() == script.code
    line = script.code.split("\n").index("# ---- the computation ----")
    seen = script.text.firstVisibleBlock().blockNumber()
    assert 0 < seen <= line < seen + script.text.viewport().height() // script.text.fontMetrics().lineSpacing()
    lines = printed({"cell": script.code}, tmp_path)["cell"]
    weight = next(line for line in lines if line.name == "weight")
    assert weight.computed == pytest.approx(view.weight, abs=1e-6)
    assert weight.shown == view.weight

    QTest.mouseClick(script.copy_button, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == script.code
    QTest.mouseClick(script.numbers_button, Qt.MouseButton.LeftButton)
    assert script.text.firstVisibleBlock().blockNumber() == 0
    script.close()
    settle(window)


def test_the_key_asks_the_panel_in_front(window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    show(window, "cell")
    press(window)
    script = script_of(window)
    before = script.code
    monkeypatch.setattr(dialogs, "file_to_save", lambda *_: (str(tmp_path / "mine"), "Python (*.py)"))
    QTest.mouseClick(script.save_button, Qt.MouseButton.LeftButton)
    assert (tmp_path / "mine.py").read_text(encoding="utf-8") == before
    assert str(tmp_path / "mine.py") in script.note.text()

    monkeypatch.setattr(dialogs, "file_to_save", lambda *_: ("/proc/none/x.py", "Python (*.py)"))
    QTest.mouseClick(script.save_button, Qt.MouseButton.LeftButton)
    assert "could not be written" in script.note.text()

    window.session.dispatch(SelectCell(3, 1))
    settle(window)
    assert script.code == before  # it keeps what was on screen
    QTest.keyClick(script.text, Qt.Key.Key_P, Qt.KeyboardModifier.ControlModifier)  # there too
    wait_until(lambda: script.code not in ("", before))
    assert "(3)" in script.title.text()
    script.close()
    settle(window)


def test_the_button_of_the_input_shows_how_its_tokens_are_made(window: MainWindow, tmp_path: Path) -> None:
    button = window.contents.input.code_button
    assert button.isEnabled()
    assert "Ctrl+P" not in button.toolTip()  # that key is for the panels below
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    script = script_of(window)
    assert "the tokens of the input" in script.title.text()
    lines = printed({"input": script.code}, tmp_path)["input"]
    ran = window.session.state.ran
    assert ran is not None
    assert [line.computed for line in lines if line.name.endswith(", id")] == [token.id for token in ran.tokens]
    script.close()
    settle(window)


@pytest.mark.full
def test_the_button_of_all_heads_shows_what_the_heads_are_coloured_by(window: MainWindow, tmp_path: Path) -> None:
    show(window, "heads")
    panel = panel_of(window, HeadAtlasPanel)
    QTest.mouseClick(panel.code_button, Qt.MouseButton.LeftButton)
    script = script_of(window)
    assert "the thumbnails of all heads" in script.title.text()
    thumbnails = script.code
    script.close()
    settle(window)
    window.session.dispatch(AskHeads(HeadQuestion("previous")))
    settle(window)
    QTest.mouseClick(panel.code_button, Qt.MouseButton.LeftButton)
    script = script_of(window)
    assert "attends to the token before" in script.title.text()
    view = window.session.state.results.of(WhichHeadsView)
    assert view is not None
    lines = printed({"images": thumbnails, "scores": script.code}, tmp_path)
    for line in (*lines["images"], *lines["scores"]):
        assert line.computed == pytest.approx(line.shown, abs=1e-6), line
    assert lines["scores"][0].shown == view.scores.max()
    script.close()
    settle(window)
    window.session.dispatch(ColourByRole("breadth"))
    wait_until(lambda: (found := roles_view(window.session.state)) is not None and found.done == 1)
    QTest.mouseClick(panel.code_button, Qt.MouseButton.LeftButton)
    script = script_of(window)
    assert "how broadly each head attends, over 32 texts" in script.title.text()
    found = roles_view(window.session.state)
    assert found is not None
    first = printed({"role": script.code}, tmp_path)["role"][0]
    assert first.shown == found.ranked("breadth", 1)[0][2]
    assert first.computed == pytest.approx(first.shown, abs=2e-6)
    script.close()
    settle(window)


@pytest.mark.full
def test_a_script_follows_the_theme(window: MainWindow) -> None:
    show(window, "cell")
    panel_of(window, CellPanel).show_script()
    script = script_of(window)
    window.set_theme_name("dark")
    line = script.text.document().findBlockByNumber(0)  # a remark
    formats = line.layout().formats()
    form = formats[0].format
    assert form.foreground().color().name() == window.theme.ok
    window.set_theme_name("light")
    script.close()
    settle(window)


def test_a_page_without_such_figures_says_so(window: MainWindow) -> None:
    show(window, "lookup")
    panel = panel_of(window, LookupPanel)
    panel.pages.setCurrentIndex(0)
    assert not panel.code_button.isEnabled()
    assert "no figure is on this page" in panel.code_button.toolTip()
    panel.pages.setCurrentIndex(2)
    assert panel.code_button.isEnabled()
    panel.show_script()
    script = script_of(window)
    assert "attends to" in script.title.text()
    script.close()
    settle(window)
