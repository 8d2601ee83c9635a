"""What draws curves is imported before the first test: on a busy machine the thread that does so outlives a test."""

from __future__ import annotations

import importlib

import pytest


@pytest.fixture(autouse=True, scope="session")
def plots_are_imported() -> None:
    importlib.import_module("attention_explorer.widgets.plot.canvas")
