"""A window in which the runs of a prepared experiment learn: they grow on screen, and end with the window."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from attention_explorer.panels.playground import experiments
from attention_explorer.panels.playground.experiments import ExperimentsPage
from attention_explorer.panels.playground.panel import EXPERIMENTS, PlaygroundPanel
from attention_explorer.window.window import MainWindow
from attention_models.protocol.loading import Loaded
from attention_models.protocol.trust import TrustReport
from tests.explorer.prepared import tiny_experiment
from tests.explorer.real_window import click, opened_window, panel_of, settle, wait_until

pytestmark = pytest.mark.full


def opened_page(window: MainWindow) -> ExperimentsPage:
    """Brought to the front by the mouse."""
    window.dock_host.raise_panel("playground")
    panel = panel_of(window, PlaygroundPanel)
    button = panel.pages.button(EXPERIMENTS)
    click(button, button.rect().center())
    wait_until(panel.experiments.run.isVisible)
    return panel.experiments


def test_the_model_of_a_run_is_opened_and_is_the_models_own(qapp, settings_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(experiments, "FILE", Path(tiny_experiment(tmp_path)[0]))
    with opened_window() as window:
        page = opened_page(window)
        click(page.run, page.run.rect().center())
        wait_until(lambda: len(page.models.buttons) == 2)
        wait_until(page.models.buttons[1].isVisible)
        click(page.models.buttons[1], page.models.buttons[1].rect().center())
        wait_until(lambda: window.session.state.loading is None and window.session.state.ran is not None)
        settle(window)
        wait_until(lambda: not window.session.live.busy)
        loaded, report = window.session.state.results.of(Loaded), window.session.state.results.of(TrustReport)
        assert loaded is not None
        assert loaded.info.reference.endswith("tiny-no-positions")
        folder = Path(loaded.info.folder)
        assert window.session.state.document.text
        assert report is not None
        assert report.logit_difference == 0.0
    assert not folder.exists()


def test_it_is_run_and_the_window_closes_while_it_learns(qapp, settings_folder):
    with opened_window() as window:
        page = opened_page(window)
        opened = window.session.state.document
        click(page.run, page.run.rect().center())
        wait_until(lambda: window.session.live.experiment is not None and window.session.live.experiment.step > 0)
        assert page.standing.text().startswith("Learning · step ")
        wait_until(lambda: not page.plots[0].figure.is_empty)
        assert window.session.state.document == opened  # it opens nothing
        link = window.contents.experiment
        assert link.process is not None
        process = psutil.Process(link.process.pid)
    assert not process.is_running()
