"""The window that a class sees: panels as they are, with what the teacher points with, and nothing else."""

from __future__ import annotations

import time

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QColor,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QWidget

from attention_explorer.look.theme import LIGHT, Theme
from attention_explorer.widgets.screens import fill_screen
from attention_explorer.window.audience import marks as drawing
from attention_explorer.window.audience.marks import Marks, lens_picture
from attention_explorer.window.audience.stage import Part, area_of, draw


class AudienceWindow(QWidget):
    """Has no buttons and takes no text: a double click fills the screen, and keys go to the presenter.

    The panels are painted again, by their own paint functions, at the size and the scale of this window: sharp on any
    projector, and always what the teacher's panels show, with their pages, their zoom and what covers an answer. A
    second set of panels would have choices of its own, would ask the engine for everything twice, and would uncover
    what a lesson covers; a picture of the first set would blur wherever the projector's scale is another.
    """

    key_pressed = Signal(QKeyEvent)
    closed = Signal()
    resized = Signal()
    """Its size, or the scale of its screen, is another."""

    def __init__(self) -> None:
        super().__init__()
        self.setWindowTitle("Attention Explorer: audience")
        self.setAttribute(Qt.WidgetAttribute.WA_ShowWithoutActivating)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setMinimumSize(320, 180)
        self._theme = LIGHT
        self._picture = QPixmap()
        self._area = QRectF()  # where in this window the picture of the panels is
        self._marks = Marks()
        self._lens: QImage | None = None
        self.cost = 0.0
        """Seconds that the last picture took."""

    def take_picture(self, parts: list[Part], theme: Theme) -> None:
        """Show these parts of another window as they are now; nothing of them is kept but what was painted."""
        began = time.perf_counter()
        self._theme = theme
        ratio, room = self.devicePixelRatioF(), self.size()
        picture = QPixmap(room * ratio)
        picture.setDevicePixelRatio(ratio)
        picture.fill(QColor(theme.window))
        source = area_of(parts)
        self._area = fitted(source.size(), self.rect())
        if not source.isEmpty():
            painter = QPainter(picture)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.translate(self._area.topLeft())
            scale = self._area.width() / source.width()
            painter.scale(scale, scale)
            painter.translate(-source.topLeft())
            draw(painter, parts)
            painter.end()
        self._picture = picture
        self.cost = time.perf_counter() - began
        self.update()

    def show_marks(self, marks: Marks) -> None:
        if marks != self._marks:
            self._marks = marks
            self.update()

    def take_lens(self, parts: list[Part], marks: Marks) -> None:
        """Have the magnifier of `marks` show these parts as they are now, at the size and the scale of this window."""
        source = QRectF(area_of(parts))
        lens = lens_picture(parts, source, marks, self._area, self.devicePixelRatioF(), self._theme)
        if lens != self._lens:
            self._lens = lens
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        painter.fillRect(self.rect(), QColor(self._theme.window))
        if not self._picture.isNull():
            size = self._picture.deviceIndependentSize().toSize()
            place = fitted(size, self.rect())  # another than its own only while it is frozen
            painter.drawPixmap(place, self._picture, QRectF(self._picture.rect()))
        if self._marks.is_black:
            painter.fillRect(self.rect(), QColor("black"))
        else:
            drawing.paint(painter, self._marks, self._area, self._theme, self._lens)

    def sizeHint(self) -> QSize:
        return QSize(960, 540)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        fill_screen(self, not self.isFullScreen())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_F11:
            fill_screen(self, not self.isFullScreen())
        else:
            self.key_pressed.emit(event)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self.resized.emit()
        return super().event(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.resized.emit()

    def closeEvent(self, event: QCloseEvent) -> None:
        super().closeEvent(event)
        self.closed.emit()


def fitted(size: QSize, room: QRect) -> QRectF:
    """The largest rectangle of the form of `size` in the middle of `room`."""
    if size.isEmpty():
        return QRectF(room)
    place = QRectF(QPointF(), QSizeF(size).scaled(QSizeF(room.size()), Qt.AspectRatioMode.KeepAspectRatio))
    place.moveCenter(QRectF(room).center())
    return place
