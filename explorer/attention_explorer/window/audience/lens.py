"""The magnifier: what is about the mouse, larger, about the point that the mouse is at. Painted anew, not stretched."""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage, QPainter, QTransform

from attention_explorer.theme import Theme
from attention_explorer.window.audience.marks import Marks, lens_rect, magnified
from attention_explorer.window.audience.stage import Part, draw, within


def lens_picture(
    parts: list[Part], source: QRectF, marks: Marks, area: QRectF, ratio: float, theme: Theme
) -> QImage | None:
    """What the lens shows of `parts`; None where none is in the hand, or the mouse is elsewhere.

    `source` is the part of the window that `area`, where it is shown, has room for; `ratio` are device pixels a logical
    one. Parts are painted by their own paint functions at the scale of the lens.
    """
    place = lens_rect(marks, area)
    if place.isEmpty() or source.isEmpty():
        return None
    image = QImage((place.size() * ratio).toSize(), QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    image.fill(QColor(theme.window))
    scale = area.width() / source.width()
    shown = QTransform.fromTranslate(-source.x(), -source.y()) * QTransform.fromScale(scale, scale)
    shown *= QTransform.fromTranslate(area.x(), area.y()) * magnified(marks, area)
    seen, _ = shown.inverted()
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setTransform(shown * QTransform.fromTranslate(-place.x(), -place.y()))
    draw(painter, within(parts, seen.mapRect(place).toAlignedRect()))
    painter.end()
    return image
