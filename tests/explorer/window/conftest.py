"""The window that most files here share: real engine, story-gpt, its example."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication

from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import back_to_start, opened_window


@pytest.fixture(scope="module")
def opened(qapp: QApplication) -> Iterator[MainWindow]:
    """One window for all tests of a file."""
    with opened_window() as window:
        yield window


@pytest.fixture
def window(opened: MainWindow) -> MainWindow:
    """That window with all that a person may have chosen put back."""
    back_to_start(opened)
    return opened
