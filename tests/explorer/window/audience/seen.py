"""What both windows show, and where; and the mouse."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, QRectF
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.window.audience.stage import area_of
from attention_explorer.window.window import MainWindow
from tests.explorer.real_window import panel_of, settle, wait_until


def rest(window: MainWindow) -> None:
    """Wait until the audience has the picture of what is on screen."""
    settle(window)
    QTest.qWait(400)
    wait_until(lambda: not window.audience._picture.isActive())


def picture(shown: QWidget) -> QImage:
    return shown.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)


def mirrored(window: MainWindow, where: QPoint) -> QPoint:
    """Where the audience sees a point of the window: worked out from what both have, and nothing that is stored."""
    shown, area = window.audience.window, area_of(window.audience._parts())
    assert shown is not None
    scale = min(shown.width() / area.width(), shown.height() / area.height())
    centre = QPointF(shown.width(), shown.height()) / 2
    return (centre + (QPointF(where) - QRectF(area).center()) * scale).toPoint()


def point_at(window: MainWindow, where: QPoint) -> None:
    """Move the mouse, as the window system says it."""
    QTest.mouseMove(window.windowHandle(), where)
    QTest.qWait(30)


def middle(window: MainWindow, query: int, key: int) -> QPoint:
    """The middle of a cell of the map, in the window."""
    heat_map = panel_of(window, HeadMapPanel).map
    return heat_map.mapTo(window, heat_map.cell_rect(query, key).center().toPoint())


def colour(image: QImage, where: QPoint) -> str:
    return image.pixelColor(where).name()
