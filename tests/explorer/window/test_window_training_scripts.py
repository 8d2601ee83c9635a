"""“Show as PyTorch” in the playground of a real window: the scripts of what its process learns give its numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QWidget

from attention_explorer.panels.playground.panel import CURVES, ONE_BATCH, PlaygroundPanel
from attention_explorer.session.intents import Train
from attention_explorer.session.training import TrainingState
from attention_explorer.window.window import MainWindow
from attention_models.protocol.training_messages import Asked
from tests.explorer.real_window import click, opened_window, panel_of, wait_until
from tests.explorer.script_window import code_of
from tests.models.scripts.running import printed

pytestmark = pytest.mark.full

ASKED = Asked("reverse:5", (("width", "32"), ("batch", "16")), seed=3, seconds=600.0)


def of(window: MainWindow) -> TrainingState:
    training = window.session.live.learning
    assert training is not None
    return training


def press(button: QWidget) -> None:
    click(button, button.rect().center())


def test_of_what_learns_and_of_its_next_batch(qapp, settings_folder, tmp_path: Path) -> None:
    with opened_window() as window:
        window.dock_host.raise_panel("playground")
        panel = panel_of(window, PlaygroundPanel)
        window.session.dispatch(Train(ASKED))
        press(panel.pages.button(CURVES))
        wait_until(lambda: of(window).step >= 30)  # by now its snapshots are opened one after another
        learning = code_of(window, panel)
        press(panel.pause)
        wait_until(lambda: of(window).phase == "paused" and of(window).snapshot == of(window).step)
        press(panel.pages.button(ONE_BATCH))
        wait_until(panel.code_button.isEnabled)
        batch = code_of(window, panel)
        curves, found = of(window).curves, of(window).dissection
        assert found is not None
        # by the clock it would take ten minutes: the first steps say enough
        short = learning.replace("spent / 600.0", "number / 12")
        scripts = {"learning": short, "batch": batch}
        lines = printed(scripts, tmp_path, own_classes=True)  # the snapshot is there while the window is
    shown = [line for line in lines["learning"] if line.name.startswith("loss of step")]
    losses = {f"loss of step {point.step}": point.loss for point in curves.first}
    assert {line.name: line.shown for line in shown} == losses
    for line in [*lines["learning"], *lines["batch"]]:
        assert line.computed == pytest.approx(line.shown, rel=1e-5, abs=1e-7), line
    assert lines["batch"][0].shown == found.loss
