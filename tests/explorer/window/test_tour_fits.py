"""On a screen of 1280 x 720 the offer of the tour leaves the model whole, and at the largest text every step works."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRect
from PySide6.QtGui import QFont
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QWidget

from attention_explorer.panels.flow.panel import FlowPanel
from attention_explorer.window.tour.pointing import place_of
from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import click, opened_window, panel_of, settle, wait_until

LOW = 720 - 24
"""What a screen of 720 lines leaves below a title bar."""


def in_window(window: MainWindow, widget: QWidget) -> QRect:
    return QRect(widget.mapTo(window, widget.rect().topLeft()), widget.size())


def check_the_bar(window: MainWindow) -> None:
    """All of it can be read and pressed, and it covers nothing."""
    bar = window.tour.bar
    for label in (bar.text, bar.title):
        assert label.visibleRegion().boundingRect() == label.rect()
    assert bar.text.heightForWidth(bar.text.width()) <= bar.text.height()
    assert bar.title.sizeHint().width() <= bar.title.width()
    assert bar.title.font().bold() or bar.title.font().weight() >= QFont.Weight.DemiBold
    assert bar.text.font().weight() == QFont.Weight.Normal
    shown = [button for button in bar.buttons.values() if button.isVisible()]
    assert shown
    for button in shown:
        assert button.visibleRegion().boundingRect() == button.rect()
        assert button.width() >= button.sizeHint().width()
        assert window.rect().contains(in_window(window, button))
    assert not in_window(window, bar).intersects(in_window(window, window.dock_host))


def check_the_model_is_whole(window: MainWindow) -> None:
    picture = panel_of(window, FlowPanel).body.model
    layout = picture.layout_now()
    (stack,) = layout.stacks
    assert (layout.most_scroll_x, layout.most_scroll_y) == (0, 0)
    assert list(layout.visible_blocks(0)) == list(range(stack.blocks)) == list(range(8))
    assert layout.area.contains(layout.block_rect(0, 7).center())
    assert layout.area.contains(layout.block_rect(0, -1).center())
    letters = picture.fontMetrics().tightBoundingRect("block 0123456789")
    assert layout.block >= letters.height()  # names lie on one another, and none on the next


@pytest.mark.full
@pytest.mark.parametrize("height", [LOW, 720, 776])
def test_the_whole_model_is_there_from_the_start_while_the_tour_is_offered(qapp, height: int) -> None:
    with opened_window(arrangement="flow") as window:
        window.resize(1280, height)
        window.tour.offer()
        settle(window)
        QTest.qWait(500)
        check_the_bar(window)
        check_the_model_is_whole(window)
        window.tour.begin()
        QTest.qWait(500)
        check_the_bar(window)
        check_the_model_is_whole(window)


@pytest.mark.full
def test_every_step_can_be_read_and_done_at_the_largest_text_in_a_low_window(qapp) -> None:
    with opened_window(arrangement="flow") as window:
        window.resize(1280, LOW)
        window.scale_text(2.0)
        settle(window)
        QTest.qWait(1000)
        guide = window.tour
        guide.begin()
        for _ in guide.tour.step:
            for _ in range(3):  # a tab first, then what is in the panel
                settle(window)
                QTest.qWait(600)  # docks take their places, and what is pointed at is scrolled to
                check_the_bar(window)
                if guide.is_done(window.session.state):
                    break
                do_what_is_pointed_at(window)
            wait_until(lambda: guide.is_done(window.session.state))
            wait_until(lambda: "…" not in guide.bar.text.text())
            QTest.qWait(300)
            check_the_bar(window)
            guide.go_on()
        assert guide.at == len(guide.tour.step)


def do_what_is_pointed_at(window: MainWindow) -> None:
    """Press it, where it is seen whole."""
    guide = window.tour
    place = place_of(
        window.contents, guide.tour.step[guide.at].point, guide.tour.step[guide.at].act, window.session.state
    )
    assert place is not None
    widget, where = place
    assert widget.visibleRegion().boundingRect().contains(where), guide.bar.title.text()
    assert guide.ring.isVisible()
    assert guide.ring.geometry().contains(QRect(widget.mapTo(widget.window(), where.topLeft()), where.size()))
    if isinstance(widget, QComboBox):  # a list that an offscreen window has no keyboard for
        guide.show_me()
    else:
        click(widget, where.center())
