"""What the teacher points with, drawn over the panels of the window.

All but the pen and the magnifier let the mouse through: what is pointed at changes, and a lens shows it as it is.
"""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QImage, QMouseEvent, QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QWidget

from attention_explorer.theme import LIGHT, Theme
from attention_explorer.window.audience.marks import (
    Marks,
    Point,
    dot_radius,
    lens_rect,
    paint,
    placed,
    share,
    spot_radius,
)

_NOTCH = 120
"""What a wheel with steps turns by in one."""


class Overlay(QWidget):
    """Draws the marks it is given; what the pen does is told by signals, as shares of width and height."""

    pen_down = Signal(object)  # Point
    pen_moved = Signal(object)  # Point
    wheel_turned = Signal(int)
    """Over the magnifier: up (1) or down (-1)."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._theme = LIGHT
        self.marks = Marks()
        self._lens: QImage | None = None
        self._turned = 0  # by the wheel, less than a step
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setObjectName("overlay")
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def show_marks(self, marks: Marks, lens: QImage | None = None) -> None:
        """`lens` is what the magnifier shows, where it is in the hand."""
        before, self.marks = self.marks, marks
        if lens != self._lens:
            self._lens = lens
            self.update(lens_rect(marks, QRectF(self.rect())).toAlignedRect())
        takes_mouse = marks.tool in ("draw", "magnifier") or marks.is_black
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents, not takes_mouse)
        if marks.tool == "draw":
            self.setCursor(Qt.CursorShape.CrossCursor)
        else:
            self.unsetCursor()
        self.setVisible(bool(marks.tool or marks.strokes or marks.is_black))
        if (before.tool, before.strokes, before.is_black) == (marks.tool, marks.strokes, marks.is_black):
            self.update(self._moving(before) | self._moving(marks))  # the panels below are painted there alone
        else:
            self.update()

    def _moving(self, marks: Marks) -> QRect:
        """What follows the mouse, with its rim."""
        if marks.pointer is None:
            return self.rect() if marks.tool == "spotlight" else QRect()
        area = QRectF(self.rect())
        if marks.tool == "magnifier":
            return lens_rect(marks, area).toAlignedRect().adjusted(-8, -8, 8, 8)
        radius = spot_radius(area) if marks.tool == "spotlight" else dot_radius(area)
        centre, reach = placed(marks.pointer, area), QPointF(radius + 8, radius + 8)
        return QRectF(centre - reach, centre + reach).toAlignedRect()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        point = self._drawn(event)
        if point is not None and event.button() == Qt.MouseButton.LeftButton:
            self.pen_down.emit(point)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        point = self._drawn(event)
        if point is not None and event.buttons() & Qt.MouseButton.LeftButton:
            self.pen_moved.emit(point)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.marks.tool != "magnifier":
            event.ignore()
            return
        self._turned += event.angleDelta().y()
        steps = int(self._turned / _NOTCH)
        self._turned -= steps * _NOTCH
        for _ in range(abs(steps)):
            self.wheel_turned.emit(1 if steps > 0 else -1)

    def _drawn(self, event: QMouseEvent) -> Point | None:
        return share(event.position(), QRectF(self.rect())) if self.marks.tool == "draw" else None

    def paintEvent(self, event: QPaintEvent) -> None:
        paint(QPainter(self), self.marks, QRectF(self.rect()), self._theme, self._lens)
