"""Text of twice the size in a low window: the map keeps its room, nothing is cut, and Ctrl+0 leaves nothing behind."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QFontMetricsF
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QScrollBar, QWidget

from attention_explorer.panels.decoding.panel import DecodingPanel
from attention_explorer.panels.flow.panel import FlowPanel
from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.window.docks import Arrangement
from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import EXAMPLE, click, opened_window, panel_of, settle, wait_until


def area(window: MainWindow) -> float:
    """Of the cells of the map, in pixels."""
    heat_map, site = panel_of(window, HeadMapPanel).map, window.session.state.site
    assert site is not None
    whole = heat_map.cell_rect(0, 0).united(heat_map.cell_rect(site.queries - 1, site.keys - 1))
    return whole.width() * whole.height()


def laid_out(window: MainWindow) -> None:
    """Wait until no widget moves any longer."""
    sizes: list[object] = []

    def is_still() -> bool:
        QTest.qWait(300)
        sizes.append([(widget.pos(), widget.size()) for widget in window.findChildren(QWidget) if widget.isVisible()])
        return len(sizes) > 3 and sizes[-1] == sizes[-2] == sizes[-3]

    wait_until(is_still)


def overlapping(window: MainWindow) -> list[str]:
    """Panels in front that have less room than they need, so that others cover them."""
    docks = window.dock_host.docks.items()
    return [name for name, dock in docks if dock.isVisible() and dock.width() < dock.minimumSizeHint().width()]


def scroll_bars(window: MainWindow) -> int:
    return sum(bar.isVisible() and bar.maximum() > 0 for bar in window.findChildren(QScrollBar))


def cut(window: MainWindow) -> list[str]:
    """Chips and buttons of the bar at the top that are not seen whole."""
    bar = window.top_bar
    chips = [chip for chip in (bar.trust.mode, bar.trust.ids, bar.trust.rows, bar.trust.equal) if chip.isVisible()]
    found = [chip.text for chip in chips if chip.width() < chip.sizeHint().width()]
    for widget in (*chips, bar.open_button, bar.examples.button, bar.devices, window.input.step_button):
        left, right = (
            widget.mapTo(window, widget.rect().topLeft()).x(),
            widget.mapTo(window, widget.rect().topRight()).x(),
        )
        if left < 0 or right >= window.width() or widget.visibleRegion().boundingRect() != widget.rect():
            found.append(widget.accessibleName() or type(widget).__name__)
    return found


@pytest.mark.full
@pytest.mark.parametrize("arrangement", ["flow", "heads"])
@pytest.mark.parametrize(("name", "text"), [("story-gpt", EXAMPLE), ("en-es", "The black cat sleeps.")])
def test_the_map_keeps_its_room_and_ctrl_0_leaves_nothing(qapp, name: str, text: str, arrangement: Arrangement) -> None:
    with opened_window(name, text, arrangement) as window:
        window.resize(1280, 720)
        window.dock_host.raise_panel("map")
        settle(window)
        laid_out(window)
        before, bars = area(window), scroll_bars(window)
        assert not cut(window)
        window.scale_text(2.0)
        laid_out(window)
        assert window.settings.text_scale == 2.0
        assert area(window) >= 0.6 * before
        assert not cut(window)
        assert not overlapping(window)
        QTest.keyClick(window, Qt.Key.Key_0, Qt.KeyboardModifier.ControlModifier)
        laid_out(window)
        assert area(window) == pytest.approx(before, rel=0.02)
        assert scroll_bars(window) == bars


@pytest.mark.full
def test_what_holds_becomes_a_sign_before_a_fact_is_cut(qapp) -> None:
    with opened_window("recurrent-en-es-bahdanau", "I have an old book.") as window:
        settle(window)
        laid_out(window)
        bar = window.top_bar
        assert bar.facts.fontMetrics().horizontalAdvance(bar.facts.text()) <= bar.facts.width()
        assert "tokens" in bar.facts.text()
        shown = bar.menu.fontMetrics().horizontalAdvance(bar.menu.currentText())
        assert shown < bar.menu.width() - 20  # the arrow


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "text"), [("en-es", "The black cat sleeps."), ("story-gpt", EXAMPLE), ("story-bert", "A red [MASK].")]
)
def test_the_legend_of_flow_is_not_cut_at_the_usual_size(qapp, name: str, text: str) -> None:
    with opened_window(name, text, "flow") as window:
        settle(window)
        laid_out(window)
        picture = panel_of(window, FlowPanel).body.model
        header = picture.header()
        room = header.outputs().rect.left() - 30
        metrics = QFontMetricsF(picture.font())
        rows = [header.said_at(QPointF(1, (i + 0.5) * (metrics.height() + 1))) for i in range(6)]
        said = [words for words in rows if words]
        assert len(said) >= 3
        assert all(metrics.horizontalAdvance(words) <= room for words in said), said


@pytest.mark.full
@pytest.mark.parametrize("arrangement", ["flow", "heads"])
@pytest.mark.parametrize(("name", "text"), [("story-gpt", EXAMPLE), ("en-es", "The black cat sleeps.")])
def test_decode_brings_three_candidates_into_sight_and_takes_no_more_than_its_column(
    qapp, name: str, text: str, arrangement: Arrangement
) -> None:
    with opened_window(name, text, arrangement) as window:
        window.resize(1280, 800 - 24)  # below a title bar
        window.dock_host.raise_panel("decoding")
        window.scale_text(1.5)
        settle(window)
        laid_out(window)
        panel, dock = panel_of(window, DecodingPanel), window.dock_host.docks["decoding"]
        width = dock.width()
        for strategy in ("greedy", "sample"):
            panel.view.knobs.choose(strategy)
            settle(window)
            button = panel.view.transport.step_button
            click(button, button.rect().center())
            wait_until(lambda: panel.player.pending is None and window.is_settled())
            laid_out(window)
            bars = panel.view.candidates.bars
            assert all(bars.visibleRegion().contains(bars.row_rect(i).toAlignedRect()) for i in range(3)), strategy
            assert dock.width() == width, strategy
            assert not overlapping(window)
            page = panel.view.area.widget()
            assert page is not None
            assert page.width() <= panel.view.area.viewport().width()
            for control in (panel.view.use, panel.view.follow, panel.view.again, button):
                assert control.isHidden() or control.visibleRegion().boundingRect() == control.rect()


@pytest.mark.full
@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)  # an offscreen list takes no keyboard
@pytest.mark.parametrize("scale", [1.0, 1.5, 2.0])
def test_open_lists_show_every_entry_whole_up_to_the_last(qapp, scale: float) -> None:
    with opened_window() as window:
        if scale != 1:
            window.scale_text(scale)
            laid_out(window)
        seen = set()
        for name in window.dock_host.open_panels():
            window.dock_host.raise_panel(name)
            settle(window)
            for box in window.findChildren(QComboBox):
                if not box.isVisible() or not box.count() or box in seen:
                    continue
                seen.add(box)
                box.showPopup()
                view, last = box.view(), box.model().index(box.count() - 1, 0)
                view.scrollToBottom()
                QTest.qWait(20)
                assert view.viewport().rect().contains(view.visualRect(last)), box.accessibleName()
                widest = max(view.fontMetrics().horizontalAdvance(box.itemText(i)) for i in range(box.count()))
                assert widest <= view.viewport().width(), box.accessibleName()
                box.hidePopup()
        assert len(seen) >= 7
