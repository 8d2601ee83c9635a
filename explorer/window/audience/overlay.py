"""What the teacher points with, drawn over the panels of the window. All but the pen lets the mouse through."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from explorer.theme import LIGHT, Theme
from explorer.window.audience.marks import Marks, Point, dot_radius, paint, placed, share, spot_radius


class Overlay(QWidget):
    """Draws the marks it is given; what the pen does is told by signals, as shares of width and height."""

    pen_down = Signal(object)  # Point
    pen_moved = Signal(object)  # Point

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._theme = LIGHT
        self.marks = Marks()
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setObjectName("overlay")
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def show_marks(self, marks: Marks) -> None:
        before, self.marks = self.marks, marks
        takes_mouse = marks.tool == "draw" or marks.is_black
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

    def _drawn(self, event: QMouseEvent) -> Point | None:
        return share(event.position(), QRectF(self.rect())) if self.marks.tool == "draw" else None

    def paintEvent(self, event: QPaintEvent) -> None:
        paint(QPainter(self), self.marks, QRectF(self.rect()), self._theme)
