"""The hatching that stands for what a mask hides, the same wherever weights are drawn."""

from __future__ import annotations

from PySide6.QtCore import QLineF, QRectF
from PySide6.QtGui import QColor, QPainter, QPen

from attention_explorer.theme import Theme


def draw_hatching(painter: QPainter, theme: Theme, area: QRectF, step: float) -> None:
    """Lines that rise to the right, `step` pixels apart along the upper edge, clipped to `area`."""
    painter.save()
    painter.setClipRect(area)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor(theme.hatch), 1.0))
    height = area.height()
    for i in range(1, int((area.width() + height) / step) + 1):
        x = area.left() + i * step
        painter.drawLine(QLineF(x, area.top(), x - height, area.bottom()))
    painter.restore()
