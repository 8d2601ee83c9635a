"""The player in the real window, for tests that press its buttons."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from attention_explorer.panels.decoding.panel import DecodingPanel
from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import click, panel_of, wait_until


def panel(window: MainWindow) -> DecodingPanel:
    return panel_of(window, DecodingPanel)


def pressed(window: MainWindow, button: QWidget) -> None:
    """Click `button`, and wait until what it asked for is there."""
    click(button, button.rect().center())
    wait_until(lambda: window.session.state.pending_step is None and not window.bridge.busy)
