"""Which panels the layouts show of each kind of model, and that none is left too small or out of reach."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from attention_explorer.panels.length.panel import QualityPanel
from attention_explorer.session.intents import OpenCheckpoint
from tests.explorer.real_window import click, opened_window, panel_of, settle, wait_until

KINDS = ["story-gpt", "story-bert", "story-next", "en-es", "recurrent-en-es-bottleneck", "dates-luong", "vit-quickdraw"]


@pytest.mark.short("en-es")
@pytest.mark.parametrize("name", KINDS)
def test_layouts_show_what_suits_the_open_model(qapp: QApplication, name: str) -> None:
    with opened_window(name, "") as window:
        loaded = window.session.state.results.loaded
        assert loaded is not None
        suits = {panel.name for panel in window.panels if panel.suits(loaded.info)}
        assert set(window.dock_host.open_panels()) == suits
        for arrange in (window.heads_side_by_side, window.reset_layout):
            arrange()
            assert set(window.dock_host.open_panels()) == suits
        shown = window.dock_host.front_panels()
        assert set(shown) <= suits
        assert ("heads" in suits) == bool(loaded.info.stacks)  # without attention there are no heads to show


@pytest.mark.full
def test_a_tab_that_is_dropped_between_panels_can_be_read(qapp: QApplication) -> None:
    with opened_window() as window:
        host = window.dock_host
        heads, cell, settling = host.docks["heads"], host.docks["cell"], host.docks["map"]
        host.splitDockWidget(heads, cell, Qt.Orientation.Horizontal)
        host.resizeDocks([heads, cell, settling], [300, 1, 500], Qt.Orientation.Horizontal)
        QTest.qWait(0)
        assert cell.width() < 200  # as Qt leaves it: no wider than its smallest
        cell.dockLocationChanged.emit(Qt.DockWidgetArea.LeftDockWidgetArea)
        wait_until(lambda: cell.width() >= 200)
        assert heads.width() >= 140


@pytest.mark.full
def test_another_model_leaves_the_measurement_its_stop(qapp: QApplication) -> None:
    with opened_window("dates-luong", "") as window:
        window.dock_host.raise_panel("quality")
        settle(window)
        panel = panel_of(window, QualityPanel)
        click(panel.run, panel.run.rect().center())
        wait_until(lambda: window.session.state.measuring is not None)
        window.session.dispatch(OpenCheckpoint("story-gpt"))
        wait_until(lambda: window.session.state.loading is None and window.session.state.ran is not None)
        assert window.session.state.measuring is not None
        assert "quality" in window.dock_host.open_panels()
        window.dock_host.raise_panel("quality")
        wait_until(panel.stop.isVisible)
        assert panel.stop.isEnabled()
        click(panel.stop, panel.stop.rect().center())
        wait_until(lambda: window.session.state.measuring is None)
        assert "quality" not in window.dock_host.open_panels()  # nothing of it suits this model
