"""Fine-tuning in a window, with its real process: what cannot be tuned is said, and both sides are the models' own."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton

from attention_explorer.panels.compare.panel import ComparePanel
from attention_explorer.panels.playground.fine_tune import FILE, TUNED
from attention_explorer.panels.playground.panel import FINE_TUNE, PlaygroundPanel
from attention_explorer.panels.playground.training_form import STEPS
from attention_explorer.session.intents import SetSecond
from attention_explorer.session.training import TrainingState
from attention_explorer.widgets import dialogs
from attention_explorer.window.window import MainWindow
from attention_models import decode, open_checkpoint, run
from attention_models.forward.classes import classes_at
from attention_models.protocol.prediction import ClassesView
from attention_models.protocol.training_messages import Classified
from attention_models.protocol.trust import TrustReport
from attention_models.protocol.two_runs import TwoRunsView
from tests.explorer.real_window import opened_window, panel_of, settle, wait_until
from tests.models.training.test_finetuning import TEXT

pytestmark = pytest.mark.full


def press(button: QPushButton) -> None:
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def of(window: MainWindow) -> TrainingState:
    training = window.session.live.learning
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
        monkeypatch.setattr(dialogs, "file_to_open", lambda *_: str(tmp_path / "mine.txt"))
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
        wait_until(lambda: not window.session.live.busy)
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


def test_a_classifier_learns_from_labels_and_its_classes_are_its_own_before_and_after(qapp, settings_folder):
    first, second = "Tom lost his red ball in the park.", "He looked for it under every tree."
    rows = "\n".join(f"Tom went to {i}.\tHe saw {i}.\t{('goes on', 'another story')[i % 2]}" for i in range(20))
    with opened_window("story-next", first) as window:
        window.session.dispatch(SetSecond(second))
        window.dock_host.raise_panel("playground")
        panel = panel_of(window, PlaygroundPanel)
        page = panel.fine_tune
        press(panel.pages.button(FINE_TUNE))
        QApplication.clipboard().setText(f"{rows}\nMore.\tAnd more.\tgood")
        page.text.paste()
        wait_until(lambda: "The text, line 21: “good” is no class of story-next." in page.sentence.text())
        page.text.selectAll()
        QApplication.clipboard().setText(rows)
        page.text.paste()
        press(page.limit.button(STEPS))
        page.steps.setValue(2)
        wait_until(lambda: "parameters learn from 18 rows; 2 more are held out" in page.sentence.text())
        press(panel.train)
        wait_until(lambda: of(window).phase == "ended" or of(window).sentence != "")
        assert of(window).sentence == ""
        tuned = f"{of(window).folder}@2"
        wait_until(lambda: window.session.state.document.checkpoint == tuned)
        settle(window)
        found = of(window).wrote
        assert isinstance(found, Classified)
        assert (found.prompt, found.second, found.step) == (first, second, 2)
        for reference, when in (("story-next", "before"), (tuned, "after")):
            model = open_checkpoint(reference)
            theirs = {one.label: one.probability for one in classes_at(model, run(model, (first, second)), 0)}
            assert {one.label: getattr(one, when) for one in found.classes} == theirs
        assert page.result.classes.isVisible()
        window.dock_host.raise_panel("next")
        wait_until(lambda: window.session.state.results.of(ClassesView) is not None)
        view = window.session.state.results.of(ClassesView)
        assert view is not None
        assert {one.label: one.probability for one in view.classes} == theirs
