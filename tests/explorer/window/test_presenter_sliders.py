"""While a panel is presented on a small screen, a slider and the bars that it moves are in sight together."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from attention_explorer.panels.decoding.panel import DecodingPanel
from attention_explorer.panels.effects.panel import EffectsPanel
from attention_explorer.panels.effects.words_page import WordsPage
from attention_explorer.panels.lookup.panel import LookupPanel
from attention_explorer.panels.masks.panel import MaskScalePanel
from attention_explorer.panels.variance.panel import VariancePanel
from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import back_to_start, opened_window, panel_of, press, settle, wait_until


@pytest.fixture(scope="module")
def real_window(qapp: QApplication) -> Iterator[MainWindow]:
    with opened_window() as opened:
        yield opened


@pytest.fixture(params=[pytest.param((1024, 768), marks=pytest.mark.full), (1280, 720)], ids=str)
def window(real_window: MainWindow, request: pytest.FixtureRequest) -> Iterator[MainWindow]:
    back_to_start(real_window)
    real_window.dock_host.go_to("map")
    press(real_window, Qt.Key.Key_F5)
    QTest.qWait(300)
    real_window.resize(*request.param)
    QTest.qWait(400)
    yield real_window
    real_window.presenter.end()
    wait_until(lambda: not real_window.contents.one_panel.alone)


def seen(widget: QWidget) -> QRect:
    """The part of a widget that no widget around it cuts off: nothing of it where it is not shown."""
    part, around = widget.rect() if widget.isVisible() else QRect(), widget.parentWidget()
    while around is not None:
        part = part.intersected(around.rect().translated(-widget.mapTo(around, QPoint(0, 0))))
        around = around.parentWidget()
    return part


def is_whole(widget: QWidget) -> bool:
    return seen(widget).height() == widget.height()


def move(window: MainWindow, slider: QWidget) -> None:
    slider.setFocus()
    for _ in range(3):
        press(slider, Qt.Key.Key_Right)
    settle(window)
    QTest.qWait(300)
    settle(window)
    QTest.qWait(200)


@pytest.mark.full
def test_masks(window: MainWindow) -> None:
    window.dock_host.go_to("masks")
    settle(window)
    panel = panel_of(window, MaskScalePanel)
    move(window, panel.scale_knobs.slider)
    assert window.session.state.document.interventions, "it acts"
    assert is_whole(panel.scale_knobs.slider)
    bars = panel.effect.bars
    assert seen(bars).top() == 0
    assert seen(bars).height() >= bars.down_to(2) > 60


@pytest.mark.full
def test_masks_outside_of_the_presenter_stand_as_they_did(window: MainWindow) -> None:
    panel = panel_of(window, MaskScalePanel)
    window.dock_host.go_to("masks")
    assert panel.effect.y() < panel.part_chooser.y()
    press(window, Qt.Key.Key_F5)
    wait_until(lambda: not window.contents.one_panel.alone)
    window.dock_host.go_to("masks")
    QTest.qWait(200)
    assert panel.effect.y() > panel.list.y()


@pytest.mark.full
def test_lookup(window: MainWindow) -> None:
    window.dock_host.go_to("lookup")
    panel = panel_of(window, LookupPanel)
    pages = (panel.dictionary.temperature, panel.dictionary.table), (panel.arrows.temperature, panel.arrows.table)
    for step, (temperature, table) in enumerate(pages):
        panel.go_to(step)
        QTest.qWait(200)
        move(window, temperature.slider)
        assert is_whole(temperature.slider)
        assert is_whole(table)


@pytest.mark.full
def test_variance(window: MainWindow) -> None:
    window.dock_host.go_to("variance")
    settle(window)
    panel = panel_of(window, VariancePanel)
    move(window, panel.slider)
    assert is_whole(panel.slider)
    assert all(map(is_whole, panel.bars))


@pytest.mark.full
def test_words_in_effects(window: MainWindow) -> None:
    window.dock_host.go_to("effects")
    panel = panel_of(window, EffectsPanel)
    page = panel.findChild(WordsPage)
    assert isinstance(page, WordsPage)
    QTest.mouseClick(panel.pages.button(5), Qt.MouseButton.LeftButton)
    settle(window)
    move(window, page.slider)
    assert is_whole(page.slider)
    picture = page.stack.currentWidget()
    assert picture is not None
    assert is_whole(picture)


@pytest.mark.full
def test_settings_of_decode_and_candidates(window: MainWindow) -> None:
    window.dock_host.go_to("decoding")
    view = panel_of(window, DecodingPanel).view
    QTest.mouseClick(view.knobs.strategy_buttons.button(1), Qt.MouseButton.LeftButton)
    settle(window)
    for _ in range(2):
        QTest.mouseClick(view.transport.step_button, Qt.MouseButton.LeftButton)
        settle(window)
        QTest.qWait(300)
    assert is_whole(view.knobs.fields["temperature"])
    bars = view.candidates.bars
    third = bars.mapTo(view, bars.row_rect(2).toAlignedRect().bottomLeft()).y()
    assert third <= view.area.y() + view.area.height()
