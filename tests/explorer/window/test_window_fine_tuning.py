"""Fine-tuning in a window, with its real process: what cannot be tuned is said, and both sides are the models' own."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from explorer.panels.compare.panel import ComparePanel
from explorer.panels.playground.fine_tune import FILE, TUNED
from explorer.panels.playground.panel import FINE_TUNE, PlaygroundPanel
from explorer.panels.playground.training_form import STEPS
from explorer.session.training import TrainingState
from explorer.widgets import asking
from explorer.window.window import MainWindow
from models import decode, open_checkpoint
from models.protocol.trust import TrustReport
from models.protocol.two_runs import TwoRunsView
from tests.explorer.real_window import opened_window, panel_of, settle, wait_until
from tests.models.training.test_finetuning import TEXT


def press(button: QPushButton) -> None:
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def of(window: MainWindow) -> TrainingState:
    training = window.session.state.learning
    assert training is not None
    return training


@pytest.mark.parametrize("tuned", ["all", "lora"])
def test_it_learns_beside_what_it_was_and_is_compared_with_it(qapp, settings_folder, tmp_path, monkeypatch, tuned):
    with opened_window() as window:
        window.dock_host.raise_panel("playground")
        panel = panel_of(window, PlaygroundPanel)
        page = panel.fine_tune
        press(panel.pages.button(FINE_TUNE))
        wait_until(lambda: "The text is empty" in page.sentence.text())
        assert not panel.train.isEnabled()
        page.text.setFocus()
        QTest.keyClicks(page.text, "aaaa")
        wait_until(lambda: "nothing but “a”" in page.sentence.text())
        (tmp_path / "mine.txt").write_text(TEXT)
        monkeypatch.setattr(asking, "file_to_open", lambda *_: str(tmp_path / "mine.txt"))
        press(page.source.button(FILE))
        page.file.ask()
        press(page.tuned.button(TUNED.index(tuned)))
        press(page.limit.button(STEPS))
        page.steps.setValue(2)
        wait_until(lambda: "parameters learn" in page.sentence.text() and panel.train.isEnabled())
        page.prompt.setFocus()
        QTest.keyClicks(page.prompt, "Anna gave the")
        selection = window.session.state.selection
        press(panel.train)
        wait_until(lambda: bool(of(window).folder or of(window).sentence))
        wait_until(lambda: of(window).wrote is not None or of(window).sentence != "")
        wait_until(lambda: of(window).step == 2 or of(window).sentence != "")
        wait_until(lambda: of(window).phase == "ended" or of(window).sentence != "")
        assert of(window).sentence == ""
        wait_until(lambda: window.session.state.document.checkpoint == f"{of(window).folder}@2")
        settle(window)
        training = window.session.state.training
        assert training is not None
        assert (training.reference, training.step, training.steps) == (of(window).folder, 2, (0, 2))
        assert Path(of(window).folder).name == "story-gpt-tuned"
        assert window.session.state.selection.site == selection.site
        assert window.session.state.selection.head == selection.head
        wait_until(lambda: not window.session.state.busy)
        report, ran = window.session.state.results.of(TrustReport), window.session.state.ran
        assert report is not None
        assert ran is not None
        assert (report.request.run, report.logit_difference) == (ran.run, 0.0)
        result = page.result
        assert result.isVisible()
        written = [*decode(open_checkpoint("story-gpt"), "Anna gave the", 40)][-1].text
        assert result.before.text.text() == written.lstrip()
        after = [*decode(open_checkpoint(f"{of(window).folder}@2"), "Anna gave the", 40)][-1].text
        assert result.after.text.text() == after.lstrip()
        press(result.compare)
        compared = panel_of(window, ComparePanel)
        wait_until(compared.isVisible)
        wait_until(lambda: window.session.state.results.of(TwoRunsView) is not None)
        other = window.session.state.document.compared
        assert other is not None
        assert (other.document.checkpoint, window.session.state.document.checkpoint) == (
            "story-gpt",
            f"{of(window).folder}@2",
        )
