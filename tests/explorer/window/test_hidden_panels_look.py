"""A panel that is out of sight when the look changes has the new one when it is shown, as if it had been in sight."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import opened_window, picture, settle


@pytest.fixture(scope="module")
def real_window(qapp: QApplication) -> Iterator[MainWindow]:
    with opened_window() as opened:
        opened.resize(1280, 800)
        yield opened


@pytest.fixture
def window(real_window: MainWindow) -> Iterator[MainWindow]:
    real_window.set_theme_name("light")
    yield real_window
    real_window.set_theme_name("light")


def shown(window: MainWindow, name: str) -> QWidget:
    window.dock_host.go_to(name)
    QTest.qWait(300)
    settle(window)
    return window.dock_host.docks[name]


@pytest.mark.short("playground", "masks")
@pytest.mark.parametrize("name", ["playground", "effects", "decoding", "masks", "positions", "lookup"])
def test_it_looks_as_one_that_was_in_sight(window: MainWindow, name: str) -> None:
    before = picture(shown(window, name))
    shown(window, "cell")
    window.set_theme_name("dark")
    late = picture(shown(window, name))
    window.apply_theme()  # once more, with this panel in sight
    QTest.qWait(300)
    assert late == picture(window.dock_host.docks[name])
    assert late != before


def test_nothing_out_of_sight_is_styled_meanwhile(window: MainWindow) -> None:
    shown(window, "playground")
    shown(window, "cell")
    hidden = window.dock_host.docks["playground"].widget().findChildren(QWidget)
    assert sum(one.testAttribute(Qt.WidgetAttribute.WA_WState_Polished) for one in hidden) > 300
    window.apply_theme()
    assert sum(one.testAttribute(Qt.WidgetAttribute.WA_WState_Polished) for one in hidden) < 100
