"""While a panel is presented, no text on any page of it is too small for the last row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from attention_explorer.panels.decoding.panel import DecodingPanel
from attention_explorer.panels.decoding.player_view import Transport
from attention_explorer.panels.lookup.panel import StepBar
from attention_explorer.widgets.path_bar import PathBar
from attention_explorer.widgets.segments import Segments
from attention_explorer.window.window import MainWindow
from tests.explorer.drawn_text import Drawn, text_of_ours, text_on
from tests.explorer.real_window import back_to_start, opened_window, panel_of, press, settle, wait_until

pytestmark = pytest.mark.full

LEAST = 0.02
"""Of the screen's height: what a capital letter is high at least."""


@pytest.fixture(scope="module")
def window(qapp: QApplication) -> Iterator[MainWindow]:
    with opened_window() as opened:
        yield opened


@pytest.mark.parametrize("size", [(1024, 768), (1280, 720)])
def test_no_text_is_lower_than_two_hundredths(
    window: MainWindow, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    back_to_start(window)
    window.dock_host.go_to("map")
    press(window, Qt.Key.Key_F5)
    QTest.qWait(300)
    window.resize(*size)
    QTest.qWait(600)
    assert (window.width(), window.height()) == size
    low: dict[str, list[Drawn]] = {}
    seen = 0
    for name in window.dock_host.open_panels():
        window.dock_host.go_to(name)
        settle(window)
        for page in _pages(window, window.dock_host.docks[name]):
            _put_tools_away(window)
            with text_of_ours(monkeypatch) as ours:
                drawn = text_on(window) + ours
            print(name, page, len(drawn), sorted({round(d.cap_height, 1) for d in drawn})[:3])
            seen += len(drawn)
            small = [each for each in drawn if each.cap_height < LEAST * size[1]]
            if small:
                low[f"{name}: {page}"] = small
    window.presenter.end()
    wait_until(lambda: not window.contents.one_panel.alone)
    assert seen > 1000
    assert not low


def _put_tools_away(window: MainWindow) -> None:
    """The buttons that come with the mouse are read from the lectern."""
    tools = window.findChild(QWidget, "presenter_tools")
    assert isinstance(tools, QWidget)
    tools.hide()


def _write(window: MainWindow) -> None:
    """Where nothing was written yet with what Decode is set to, a step of it."""
    transport = panel_of(window, DecodingPanel).findChild(Transport)
    assert isinstance(transport, Transport)
    step = transport.step_button
    if step.isVisible() and step.isEnabled():
        QTest.mouseClick(step, Qt.MouseButton.LeftButton)
        settle(window)


def _pages(window: MainWindow, panel: QWidget) -> Iterator[str]:
    """Presses each button of each row of pages; what is shown is named."""
    rows = [row for row in panel.findChildren(Segments) if row.isVisible()]
    yield "as it is"
    for steps in panel.findChildren(StepBar):
        for step in range(steps.item_count()):
            QTest.mouseClick(steps, Qt.MouseButton.LeftButton, pos=steps.item_rect(step).center().toPoint())
            settle(window)
            yield f"step {step}"
    for path in panel.findChildren(PathBar):
        if panel.objectName() == "flow":
            for distance in range(3):
                QTest.mouseClick(path, Qt.MouseButton.LeftButton, pos=path.item_rect(distance).center().toPoint())
                settle(window)
                yield f"distance {distance}"
    for row in rows:
        for button in row.findChildren(QWidget):
            if button.isEnabled() and button.isVisible():
                QTest.mouseClick(button, Qt.MouseButton.LeftButton)
                settle(window)
                _write(window)
                yield row.accessibleName() + " " + str(button.property("text"))
