"""What a widget paints, as a picture to look into."""

from __future__ import annotations

from typing import cast

from PySide6.QtCore import QPoint
from PySide6.QtGui import QColor, QImage, QPainter, QRegion
from PySide6.QtWidgets import QWidget

from attention_explorer.look.theme import LIGHT


def rendered(widget: QWidget, ratio: float = 1.0) -> QImage:
    """The widget upon the light surface, with `ratio` device pixels a logical one."""
    image = QImage(widget.size() * ratio, QImage.Format.Format_ARGB32_Premultiplied)
    image.setDevicePixelRatio(ratio)
    image.fill(QColor(LIGHT.surface))
    painter = QPainter(image)
    widget.render(painter, QPoint(), QRegion(), QWidget.RenderFlag.DrawChildren)
    painter.end()
    return image


def rgb(colour: QColor | int) -> tuple[int, int, int]:
    """Red, green and blue of a colour or a QRgb."""
    return cast("tuple[int, int, int]", QColor(colour).toRgb().getRgb()[:3])  # type: ignore[index]
