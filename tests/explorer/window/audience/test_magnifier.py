"""The magnifier: what is about the mouse is enlarged in both windows, sharply, and nothing below it changes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QImage, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.session.hover import NOTHING
from attention_explorer.window.audience.audience_window import AudienceWindow
from attention_explorer.window.audience.marks import lens_rect
from attention_explorer.window.audience.stage import area_of
from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import click_cell, key, panel_of, press
from tests.explorer.window.audience.seen import colour, middle, mirrored, picture, point_at, rest

pytestmark = pytest.mark.x


def zoom(window: MainWindow) -> float:
    return window.presenter.tools.marks.zoom


def in_hand(window: MainWindow) -> str:
    return window.presenter.tools.marks.tool


def turn_wheel(window: MainWindow, where: QPoint, notches: int) -> None:
    event = QWheelEvent(
        QPointF(where),
        window.mapToGlobal(QPointF(where)),
        QPoint(),
        QPoint(0, 120 * notches),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(window.windowHandle(), event)
    QTest.qWait(30)


def cells_about(window: MainWindow, query: int, at: int, factor: float) -> dict[QPoint, QPoint]:
    """Points of cells near one: where they are in the window, and where a lens about that one's middle shows them."""
    centre = middle(window, query, at)
    near = [middle(window, row, column) for row in range(query - 1, query + 2) for column in (at - 1, at, at + 1)]
    return {where: centre + (QPointF(where - centre) * factor).toPoint() for where in near}


@pytest.mark.full
def test_what_is_about_the_mouse_is_enlarged_in_both_windows(presenting: MainWindow, audience: AudienceWindow) -> None:
    window = presenting
    click_cell(window, 13, 1)
    rest(window)
    before, theirs_before = picture(window), picture(audience)
    key(window, Qt.Key.Key_M)
    centre = middle(window, 9, 4)
    point_at(window, centre)
    after, theirs = picture(window), picture(audience)
    for where, shown in cells_about(window, 9, 4, 2.0).items():
        for by in (QPoint(-4, -4), QPoint(4, 4)):  # no letter is there
            assert colour(after, shown + by * 4) == colour(before, where + by * 2), where
        corner = mirrored(window, where + QPoint(-6, -6))
        there = mirrored(window, centre) + (corner - mirrored(window, centre)) * 2
        assert colour(theirs, there) == colour(theirs_before, corner), where
    far = middle(window, 2, 0)
    assert colour(after, far) == colour(before, far), "outside of the lens all is as it was"
    key(window, Qt.Key.Key_Escape)
    rest(window)
    assert not in_hand(window)
    assert window.presenter.is_on
    assert picture(audience) == theirs_before


def edges(image: QImage, start: QPoint, length: int) -> tuple[int, int]:
    """Of a row of pixels that passes letters: how far the steepest step goes, and how many pixels it takes."""
    row = [image.pixelColor(start.x() + x, start.y()).lightness() for x in range(length)]
    steps = [abs(after - before) for before, after in pairwise(row)]
    jump = max(steps)
    around = steps[max(0, steps.index(jump) - 3) : steps.index(jump) + 4]
    return jump, sum(step > 0.15 * jump for step in around)


def test_it_is_painted_anew_and_not_stretched(presenting: MainWindow, audience: AudienceWindow) -> None:
    """At four times an enlarged picture of a letter would go from light to dark over several pixels."""
    window = presenting
    heat_map = panel_of(window, HeadMapPanel).map
    key(window, Qt.Key.Key_M)
    for _ in range(9):
        key(window, Qt.Key.Key_Plus)
    assert zoom(window) == 4.0
    view = heat_map.view
    label = heat_map.mapTo(window, QPoint(round(view.columns.origin) - 30, round(view.rows.centre(13))))
    point_at(window, label)
    for image, where in ((picture(window), label), (picture(audience), mirrored(window, label))):
        jump, pixels = edges(image, where - QPoint(90, 0), 180)
        assert jump > 60
        assert pixels <= 2


def test_the_wheel_and_keys_change_the_factor_within_bounds(presenting: MainWindow, audience: AudienceWindow) -> None:
    window = presenting
    heat_map = panel_of(window, HeadMapPanel).map
    key(window, Qt.Key.Key_M)
    where = middle(window, 9, 4)
    point_at(window, where)
    key(window, Qt.Key.Key_0)
    view, seen = heat_map.view, {zoom(window)}
    for _ in range(6):
        turn_wheel(window, where, 1)
        seen.add(zoom(window))
    assert seen == {2.0, 2.5, 3.0, 3.5, 4.0}
    for _ in range(9):
        key(window, Qt.Key.Key_Minus)
    assert zoom(window) == 1.5
    key(window, Qt.Key.Key_0)
    assert zoom(window) == 2.0
    assert heat_map.view == view, "the map below is not zoomed"
    key(window, Qt.Key.Key_M)
    turn_wheel(window, where, 1)
    assert heat_map.view != view, "without the magnifier the wheel is the map's"
    key(window, Qt.Key.Key_0)


def test_nothing_below_it_is_pointed_at_or_chosen(presenting: MainWindow, audience: AudienceWindow) -> None:
    window = presenting
    selection = window.session.state.selection
    key(window, Qt.Key.Key_M)
    for cell in ((3, 1), (9, 4)):
        point_at(window, middle(window, *cell))
        assert window.hover.pointed == NOTHING
    QTest.mouseClick(
        window.windowHandle(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, middle(window, 8, 5)
    )
    assert window.session.state.selection == selection


def test_a_frozen_picture_keeps_what_is_enlarged(presenting: MainWindow, audience: AudienceWindow) -> None:
    window = presenting
    key(window, Qt.Key.Key_M)
    point_at(window, middle(window, 9, 4))
    rest(window)
    shown = picture(audience)
    key(window, Qt.Key.Key_F)
    point_at(window, middle(window, 4, 2))
    click_cell(window, 5, 2)
    rest(window)
    assert picture(audience) == shown
    key(window, Qt.Key.Key_M)
    rest(window)
    assert picture(audience) == shown
    key(window, Qt.Key.Key_F)
    rest(window)
    assert picture(audience) != shown


def test_it_stays_inside_of_the_panels(presenting: MainWindow, audience: AudienceWindow) -> None:
    window = presenting
    area = area_of(window.audience._parts())
    key(window, Qt.Key.Key_M)
    for corner in (area.topLeft(), area.bottomRight(), area.center()):
        point_at(window, corner + (area.center() - corner) / 200)
        lens = lens_rect(window.presenter.tools.marks, QRectF(area))
        assert lens.width() > 200
        assert QRectF(area).contains(lens), corner


def test_its_button_and_a_key_of_the_audience_s_window(presenting: MainWindow, audience: AudienceWindow) -> None:
    window = presenting
    bar = window.presenter.tools.toolbar
    bar.come(area_of(window.audience._parts()))
    QTest.mouseClick(bar.buttons["magnifier"], Qt.MouseButton.LeftButton)
    assert in_hand(window) == "magnifier"
    assert bar.buttons["magnifier"].isChecked()
    press(audience, Qt.Key.Key_M)
    assert not in_hand(window)
