"""Qt calls that return nothing must not take a reference from None.

PySide6 6.12.0 does on Python 3.11: after enough calls the interpreter aborts. pyproject.toml excludes that release;
this test says whether the next one may come in.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

CALLS = 2_000
TOLERANCE = 200
"""References that come and go by themselves between two readings; a loss shows as about one a call."""


def set_text(label: QLabel) -> None:
    label.setText("query")


def set_tool_tip(label: QLabel) -> None:
    label.setToolTip("key")


def update(label: QLabel) -> None:
    label.update()


def ask_parent(label: QLabel) -> None:
    assert label.parent() is None


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None is immortal from Python 3.12 on and has no count to lose")
@pytest.mark.parametrize("call", [set_text, set_tool_tip, update, ask_parent], ids=lambda f: f.__name__)
def test_none_keeps_its_references(qtbot: QtBot, call: Callable[[QLabel], None]) -> None:
    label = QLabel()
    qtbot.addWidget(label)
    before = sys.getrefcount(None)
    for _ in range(CALLS):
        call(label)
    assert abs(sys.getrefcount(None) - before) < TOLERANCE
