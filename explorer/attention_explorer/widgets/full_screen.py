"""A window as large as its screen."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget


def fill_screen(window: QWidget, full: bool) -> None:
    """Let a window fill its screen, or be again as it was: maximised, if it was."""
    state, filling = window.windowState(), Qt.WindowState.WindowFullScreen
    window.setWindowState(state | filling if full else state & ~filling)
