"""A window in which a model learns: every panel shows it, and what is shown is the model's own the whole time."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from safetensors.torch import load_file

from attention_explorer.panels.playground.form import RECURRENT
from attention_explorer.panels.playground.panel import PlaygroundPanel
from attention_explorer.recovery import owners, training_folders
from attention_explorer.session.intents import GoToStep, Train
from attention_explorer.session.training import TrainingState
from attention_explorer.widgets import dialogs
from attention_explorer.window.window import MainWindow
from attention_models.protocol.training_messages import Asked
from attention_models.protocol.trust import TrustReport
from tests.explorer.real_window import click, opened_window, panel_of, settle, wait_until


def of(window: MainWindow) -> TrainingState:
    training = window.session.live.learning
    assert training is not None
    return training


def opened_step(window: MainWindow) -> int | None:
    loaded = window.session.state.results.loaded
    training = None if loaded is None else loaded.info.training
    return None if training is None else training.step


def assert_is_the_models_own(window: MainWindow, logits: float = 0.0) -> None:
    settle(window)
    wait_until(lambda: not window.session.live.busy)
    report, ran = window.session.state.results.of(TrustReport), window.session.state.ran
    assert report is not None
    assert ran is not None
    assert report.request.run == ran.run
    assert report.logit_difference <= logits
    assert report.weight_difference <= 1e-6


def test_it_learns_pauses_takes_a_batch_stops_and_closes_while_it_learns(qapp, settings_folder):
    with opened_window() as window:
        window.dock_host.raise_panel("playground")
        panel = panel_of(window, PlaygroundPanel)
        wait_until(panel.train.isEnabled)
        click(panel.train, panel.train.rect().center())
        wait_until(lambda: window.session.live.learning is not None and of(window).phase == "running")
        folder = Path(of(window).folder)
        wait_until(lambda: window.session.state.training is not None)
        assert window.session.state.following
        opened = window.session.state.results.loaded
        assert opened is not None
        assert "@" in opened.info.reference  # a snapshot: the folder's own weights are written anew under what is open
        wait_until(lambda: of(window).step >= 25)
        click(panel.pause, panel.pause.rect().center())
        wait_until(lambda: of(window).phase == "paused" and of(window).snapshot == of(window).step)
        assert_is_the_models_own(window)
        step = of(window).step
        click(panel.batch, panel.batch.rect().center())
        wait_until(lambda: of(window).step == step + 1 and of(window).snapshot == step + 1)
        assert_is_the_models_own(window)
        click(panel.pause, panel.pause.rect().center())  # now “Go on”
        wait_until(lambda: of(window).step > step + 1)
    assert not folder.exists()  # a window that remembers nothing leaves nothing
    assert list(training_folders.trainings_folder().iterdir()) == []


@pytest.mark.full
def test_by_keys_alone_it_is_trained_stopped_and_saved(qapp, settings_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(dialogs, "folder", lambda *_: str(tmp_path / "mine"))
    with opened_window() as window:
        window.dock_host.raise_panel("playground")
        panel = panel_of(window, PlaygroundPanel)
        wait_until(panel.train.isEnabled)
        panel.form.task.setFocus()
        for _ in range(20):
            if qapp.focusWidget() is panel.train:
                break
            QTest.keyClick(qapp.focusWidget(), Qt.Key.Key_Backtab)
        QTest.keyClick(qapp.focusWidget(), Qt.Key.Key_Space)
        wait_until(lambda: window.session.live.learning is not None and of(window).step >= 25)
        assert qapp.focusWidget() is panel.train
        for _ in range(20):
            if qapp.focusWidget() is panel.stop:
                break
            QTest.keyClick(qapp.focusWidget(), Qt.Key.Key_Tab)
        QTest.keyClick(qapp.focusWidget(), Qt.Key.Key_Space)
        wait_until(lambda: of(window).phase == "ended")
        wait_until(panel.save.isEnabled)
        panel.save.setFocus()
        QTest.keyClick(panel.save, Qt.Key.Key_Space)
        wait_until(lambda: of(window).saved != "")
        assert of(window).saved_step == of(window).step
        folder, last = Path(of(window).folder), of(window).step
    assert not folder.parent.exists()  # all of it is in the folder that was chosen
    saved = load_file(tmp_path / "mine" / "model.safetensors")
    newest = load_file(tmp_path / "mine" / "snapshots" / f"step-{last:08}.safetensors")
    both = [name for name in saved if f"model.{name}" in newest]
    assert len(both) >= len(saved) - 1  # embeddings that are tied have one name only
    assert all(torch.equal(saved[name], newest[f"model.{name}"]) for name in both)


@pytest.mark.full
def test_a_recurrent_model_learns_and_each_step_opens(qapp, settings_folder):
    with opened_window() as window:
        window.dock_host.raise_panel("playground")
        panel = panel_of(window, PlaygroundPanel)
        wait_until(panel.train.isEnabled)
        button = panel.form.model.button(RECURRENT)
        click(button, button.rect().center())
        wait_until(lambda: panel.form.asked().switches == (("model", "recurrent"),))
        wait_until(panel.train.isEnabled)
        click(panel.train, panel.train.rect().center())
        wait_until(lambda: window.session.live.learning is not None and of(window).step >= 25)
        click(panel.pause, panel.pause.rect().center())
        wait_until(lambda: of(window).phase == "paused" and of(window).snapshot == of(window).step)
        settle(window)
        wait_until(lambda: opened_step(window) == of(window).step)
        loaded = window.session.state.results.loaded
        assert loaded is not None
        assert loaded.info.architecture == "RecurrentSeq2Seq"
        assert_is_the_models_own(window, 1e-5)  # against loops written out in NumPy
        window.session.dispatch(GoToStep(20))
        wait_until(lambda: opened_step(window) == 20)
        assert_is_the_models_own(window, 1e-5)


@pytest.mark.full
def test_the_next_window_offers_what_was_not_saved_and_goes_on_with_it(qapp, settings_folder):
    asked = Asked("copy:4", (("width", "16"), ("heads", "2"), ("layers", "1")), seconds=None, steps=1_000_000)
    with opened_window(remembers=True) as window:
        window.session.dispatch(Train(asked))
        wait_until(lambda: window.session.live.learning is not None and of(window).snapshot >= 20)
    (path,) = training_folders.trainings_folder().iterdir()
    host, pid = owners.own_mark().rsplit("-", 2)[:2]
    path.rename(path.with_name(f"{host}-{pid}-1-1"))  # as a process would have named it that has ended

    with opened_window() as window:  # of a picture, a check or a notebook: it is not asked about
        wait_until(window.has_all_panels)
        QTest.qWait(300)
        assert not window.contents.training_bar.isVisible()
    with opened_window(remembers=True) as window:
        bar, panel = window.contents.training_bar, panel_of(window, PlaygroundPanel)
        wait_until(bar.isVisible)
        assert "Recovered an unsaved model" in bar.text
        action = next(button for button in bar.findChildren(QPushButton) if button.text() == "Show in Playground")
        click(action, action.rect().center())
        wait_until(lambda: panel.isVisible() and bool(panel.left.buttons))
        assert not bar.isVisible()
        (button,) = panel.left.buttons
        step = window.session.state.left_trainings[0].step
        assert button.accessibleName() == f"Go on with copy, step {step}, just now"
        click(button, button.rect().center())
        wait_until(lambda: window.session.live.learning is not None and of(window).phase == "paused")
        assert (of(window).step, panel.left.isVisible()) == (step, False)
        assert_is_the_models_own(window)
        click(panel.pause, panel.pause.rect().center())  # “Go on”
        wait_until(lambda: of(window).step > step)
        click(panel.stop, panel.stop.rect().center())
        wait_until(lambda: of(window).phase == "ended")
