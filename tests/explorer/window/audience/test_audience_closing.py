"""The audience's window does not outlive the window that it belongs to."""

from __future__ import annotations

import pytest
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from attention_explorer.window.audience.audience_window import AudienceWindow
from tests.explorer.real_window import opened_window

pytestmark = pytest.mark.x


@pytest.mark.full
def test_closing_the_window_closes_the_audience_s(qapp: QApplication) -> None:
    with opened_window() as window:
        window.audience.open()
        shown = window.audience.window
        assert shown is not None
        QTest.qWait(100)
        window.close()
        assert window.audience.window is None
        assert not [
            each for each in QApplication.topLevelWidgets() if isinstance(each, AudienceWindow) and each.isVisible()
        ]
