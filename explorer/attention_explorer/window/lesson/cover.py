"""What lies over a widget, or a part of one: nothing of it can be read or pointed at."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QRect, Qt
from PySide6.QtGui import QColor, QFont, QFontInfo, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from attention_explorer.text_size import is_read_from_afar
from attention_explorer.theme import LIGHT, Theme
from attention_explorer.widgets.hatching import draw_hatching


class Cover(QWidget):
    """Over all of a widget, or a rectangle of it; the mouse does not reach what is below."""

    def __init__(self, over: QWidget, where: Callable[[], QRect] | None = None) -> None:
        super().__init__(over)
        self.over = over
        self._where = where
        self._theme = LIGHT
        self.setAccessibleName("Covered until Reveal")
        self.setCursor(Qt.CursorShape.ArrowCursor)
        over.installEventFilter(self)
        self.follow()
        self.show()
        self.raise_()

    def follow(self) -> None:
        """Lie where it is to lie now."""
        area = self.over.rect() if self._where is None else self._where() & self.over.rect()
        if area != self.geometry():
            self.setGeometry(area)
        self.raise_()

    def lie_over(self, where: QRect | None) -> None:
        """Lie over this rectangle; None for all of the widget, however large that becomes."""
        self._where = None if where is None else lambda: where
        self.follow()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.LayoutRequest):
            self.follow()
        return False

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Taken, and nothing done."""

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self.draw_ground(painter)
        font = QFont(self.font())
        pixels = max(9, min(64, int(min(self.height(), self.width()) * 0.7)))
        if is_read_from_afar() and pixels < QFontInfo(font).pixelSize():
            return  # the hatching says it
        font.setPixelSize(pixels)
        font.setBold(True)
        painter.setFont(font)
        painter.setPen(QColor(self._theme.text))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, "?")

    def draw_ground(self, painter: QPainter) -> None:
        """What says that something is hidden here."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(self.rect(), QColor(self._theme.surface))
        draw_hatching(painter, self._theme, self.rect().toRectF(), 9.0)
        painter.setPen(QPen(QColor(self._theme.query), 2))
        painter.drawRect(self.rect().adjusted(1, 1, -1, -1))
