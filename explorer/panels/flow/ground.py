"""What of a picture follows neither pointer nor Play: drawn once, and laid under the rest."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter, QPixmap
from PySide6.QtWidgets import QWidget


class Ground:
    """Kept until it is dropped, or the widget is on a screen of another scale."""

    def __init__(self) -> None:
        self._pixmap: QPixmap | None = None

    def drop(self) -> None:
        """What it shows has changed."""
        self._pixmap = None

    def drawn(self, widget: QWidget, draw: Callable[[QPainter], object]) -> QPixmap:
        """As large as `widget`; transparent where `draw` leaves it."""
        ratio = widget.devicePixelRatioF()
        if self._pixmap is None or self._pixmap.devicePixelRatio() != ratio:
            self._pixmap = QPixmap(widget.size() * ratio)
            self._pixmap.setDevicePixelRatio(ratio)
            self._pixmap.fill(Qt.GlobalColor.transparent)
            painter = QPainter(self._pixmap)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            draw(painter)
            painter.end()
        return self._pixmap
