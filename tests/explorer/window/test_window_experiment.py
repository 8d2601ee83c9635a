"""A window in which the runs of a prepared experiment learn: they grow on screen, and end with the window."""

from __future__ import annotations

import psutil

from explorer.panels.playground.panel import EXPERIMENTS, PlaygroundPanel
from tests.explorer.real_window import click, opened_window, panel_of, wait_until


def test_it_is_run_and_the_window_closes_while_it_learns(qapp, settings_folder):
    with opened_window() as window:
        window.dock_host.raise_panel("playground")
        panel = panel_of(window, PlaygroundPanel)
        click(panel.pages.button(EXPERIMENTS), panel.pages.button(EXPERIMENTS).rect().center())
        page = panel.experiments
        wait_until(page.run.isVisible)
        opened = window.session.state.document
        click(page.run, page.run.rect().center())
        wait_until(lambda: window.session.state.experiment is not None and window.session.state.experiment.step > 0)
        assert page.standing.text().startswith("Learning · step ")
        wait_until(lambda: not page.plots[0].figure.is_empty)
        assert window.session.state.document == opened  # it opens nothing
        link = window.contents.experiment
        assert link.process is not None
        process = psutil.Process(link.process.pid)
    assert not process.is_running()
