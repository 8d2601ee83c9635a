"""What of a picture follows neither pointer nor Play: drawn once, and laid under the rest."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QPainter, QPixmap
from PySide6.QtWidgets import QWidget

from attention_explorer.widgets.kept_pictures import is_of_other_scale


class Ground:
    """Kept until it is dropped, or the widget is on a screen of another scale."""

    def __init__(self) -> None:
        self._pixmap: QPixmap | None = None

    def drop(self) -> None:
        """What it shows has changed."""
        self._pixmap = None

    def lay(self, painter: QPainter, widget: QWidget, draw: Callable[[QPainter], object]) -> None:
        """Paint what `draw` does, or did; a painter of another scale than the screen's gets it anew, to be sharp."""
        ratio = widget.devicePixelRatioF()
        if is_of_other_scale(painter, ratio):
            painter.save()
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            draw(painter)
            painter.restore()
            return
        if self._pixmap is None or self._pixmap.devicePixelRatio() != ratio:
            self._pixmap = QPixmap(widget.size() * ratio)
            self._pixmap.setDevicePixelRatio(ratio)
            self._pixmap.fill(Qt.GlobalColor.transparent)
            ground = QPainter(self._pixmap)
            ground.setRenderHint(QPainter.RenderHint.Antialiasing)
            draw(ground)
            ground.end()
        painter.drawPixmap(QPointF(0, 0), self._pixmap)
