"""A translation that is presented: its two texts leave the map its height."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.session.intents import SelectHead, SetText
from attention_explorer.window.window import MainWindow
from attention_models.protocol.values import SiteRef
from tests.explorer.real_window import key, opened_window, panel_of, settle, wait_until

pytestmark = pytest.mark.full

SHORT = "The cat sleeps on the bed."
LONG = "The old woman who lives in the house near the river knows that her children will come home tomorrow."


@pytest.fixture(scope="module")
def real_window(qapp: QApplication) -> Iterator[MainWindow]:
    with opened_window("en-es", SHORT) as opened:
        yield opened


@pytest.fixture
def window(real_window: MainWindow) -> Iterator[MainWindow]:
    """On the smallest screen, with the map in front."""
    real_window.session.dispatch(SetText(SHORT))
    real_window.dock_host.go_to("map")
    settle(real_window)
    QTest.qWait(300)
    key(real_window, Qt.Key.Key_F5)
    QTest.qWait(300)
    assert real_window.presenter.is_on
    real_window.resize(1024, 768)
    rest(real_window)
    yield real_window
    real_window.presenter.end()
    wait_until(lambda: not real_window.contents.one_panel.alone)


def rest(window: MainWindow) -> None:
    QTest.qWait(600)
    settle(window)
    QTest.qWait(300)  # buttons have the height of their text


def choose(window: MainWindow, stack: str) -> None:
    window.session.dispatch(SelectHead(SiteRef(stack, 0), 0))
    settle(window)
    QTest.qWait(100)


def seen(window: MainWindow) -> list[str]:
    areas = {"source": window.input.strip_area, "target": window.input.target.area}
    return [name for name, area in areas.items() if area.isVisible()]


def test_the_map_keeps_its_height(window: MainWindow) -> None:
    heat_map, high = panel_of(window, HeadMapPanel).map, {}
    for size in ((1024, 768), (1280, 720), (1920, 1080)):  # the last is 4K at 200 %
        window.resize(*size)
        for text in (SHORT, LONG):
            window.session.dispatch(SetText(text))
            rest(window)
            assert (window.width(), window.height()) == size
            for stack in ("encoder", "decoder", "cross"):
                choose(window, stack)
                high[size, text, stack] = heat_map.view.rows.extent / size[1]
    assert min(high.values()) >= 0.6, high


def test_there_are_the_texts_in_which_the_head_has_queries_or_keys(window: MainWindow) -> None:
    choose(window, "encoder")
    assert seen(window) == ["source"]
    choose(window, "decoder")
    assert seen(window) == ["target"]
    choose(window, "cross")
    assert seen(window) == ["source", "target"]
    source, target = window.input.strip_area, window.input.target.area
    assert source.y() == target.y()
    for area in (source, target):
        last = area.strip.chip_rect(area.strip.count - 1)
        assert area.viewport().rect().contains(last.toAlignedRect()), "all of a short text is seen"


def test_other_panels_have_both_texts_below_each_other(window: MainWindow) -> None:
    choose(window, "decoder")
    window.dock_host.go_to("next")
    QTest.qWait(200)
    assert seen(window) == ["source", "target"]
    assert window.input.target.area.y() >= window.input.strip_area.geometry().bottom()


def test_all_is_as_it_was_after_it(real_window: MainWindow) -> None:
    input_, areas = real_window.input, (real_window.input.strip_area, real_window.input.target.area)
    choose(real_window, "decoder")
    real_window.resize(1280, 800)
    wait_until(lambda: not real_window.contents.one_panel.alone)
    QTest.qWait(300)
    before = [(area.parentWidget(), area.geometry(), area.isVisible()) for area in areas]
    key(real_window, Qt.Key.Key_F5)
    QTest.qWait(600)
    assert not input_.strip_area.isVisible()
    key(real_window, Qt.Key.Key_F5)
    wait_until(lambda: not real_window.contents.one_panel.alone)
    QTest.qWait(300)
    assert [(area.parentWidget(), area.geometry(), area.isVisible()) for area in areas] == before
