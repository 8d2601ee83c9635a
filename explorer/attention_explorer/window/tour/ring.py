"""A ring about a part of the window. The pointer goes through it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QRegion
from PySide6.QtWidgets import QWidget

from attention_explorer.theme import LIGHT, Theme

_AROUND = 6  # pixels between what is pointed at and the ring's outer edge
_WIDTH = 3


class Ring(QWidget):
    """Drawn above all else, and only where it is drawn: what is inside it is neither covered nor painted anew."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._home = window
        self._theme = LIGHT
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setObjectName("ring")
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def point(self, widget: QWidget | None, where: QRect) -> None:
        """Surround `where`, in the coordinates of `widget`; None hides it. In whichever window the widget is."""
        if widget is None or where.isEmpty():
            self.hide()
            return
        window = widget.window()
        area = QRect(widget.mapTo(window, where.topLeft()), where.size()).adjusted(-_AROUND, -_AROUND, _AROUND, _AROUND)
        if window is not self.parentWidget():
            self._move_to(window)
        if area != self.geometry() or self.isHidden():
            self.setGeometry(area)
            inner = self.rect().adjusted(_AROUND, _AROUND, -_AROUND, -_AROUND)
            self.setMask(QRegion(self.rect()) - QRegion(inner))
            self.show()
            self.raise_()

    def _move_to(self, window: QWidget) -> None:
        if (parent := self.parentWidget()) is not self._home and parent is not None:
            parent.removeEventFilter(self)
        self.setParent(window)
        if window is not self._home:
            window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.DeferredDelete and watched is self.parent():
            self._move_to(self._home)  # a panel that floats and fails goes with its window, and all that is in that
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colour = QColor(self._theme.query)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        area = QRectF(self.rect())
        for width, strength in ((2.0 * _AROUND, 0.22), (float(_WIDTH), 1.0)):
            colour.setAlphaF(strength)
            painter.setPen(QPen(colour, width))
            half = width / 2 if width == _WIDTH else 0.0
            painter.drawRoundedRect(area.adjusted(half, half, -half, -half), 8, 8)
