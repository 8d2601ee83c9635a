"""A vector as stripes: blue below zero, red above, the stronger the further from it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPen, QPixmap
from PySide6.QtWidgets import QWidget

from attention_explorer.look.colour_maps import diverging
from attention_explorer.look.theme import Theme
from attention_explorer.widgets.cell_image import is_of_other_scale


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


_FAINTEST = 0.06  # a stripe of almost nothing can be told from none


_STRIPE = 3.0
"""Pixels of the narrowest stripe: of a wide vector several numbers share one."""


def draw_stripes(painter: QPainter, rect: QRectF, vector: np.ndarray, theme: Theme) -> None:
    """Stripes from left to right. A stripe that several numbers share shows that furthest from 0."""
    painter.save()
    painter.setPen(QPen(QColor(theme.border), 1))
    painter.setBrush(QColor(theme.surface))
    painter.drawRect(rect.adjusted(-0.5, -0.5, 0.5, 0.5))
    painter.drawImage(rect, stripes_image(vector, rect.width(), theme.is_dark))
    painter.restore()


def shown_numbers(vector: np.ndarray, width: float) -> np.ndarray:
    """Which numbers of a vector its stripes show, (stripes,) int."""
    count = len(vector)
    each = -(-count // max(1, int(width / _STRIPE)))  # numbers that share a stripe
    if each <= 1:
        return np.arange(count)
    size = np.full(-(-count // each) * each, -1.0)
    size[:count] = np.abs(np.nan_to_num(vector))
    stripes = size.reshape(-1, each)
    chosen: np.ndarray = np.arange(0, len(size), each) + stripes.argmax(axis=1)
    return chosen


def stripes_image(vector: np.ndarray, width: float, is_dark: bool = False) -> QImage:
    """A pixel a stripe, in one line."""
    values = np.nan_to_num(np.asarray(vector, np.float64))
    values = values[shown_numbers(values, width)]
    share = np.abs(values) / (float(np.abs(values).max(initial=0.0)) or 1.0)
    alpha = np.where(share > 0, _FAINTEST + (1 - _FAINTEST) * share**0.75, 0.0)
    table = diverging()
    low, high = (table[56], table[-57]) if is_dark else (table[8], table[-9])
    rgba = np.empty((1, len(values), 4), np.uint8)
    rgba[0, :, :3] = np.where(values[:, None] < 0, low, high)
    rgba[0, :, 3] = np.round(255 * alpha)
    image = QImage(rgba.data, len(values), 1, 4 * len(values), QImage.Format.Format_RGBA8888)
    return image.copy()  # its own memory


def number_at(vector: np.ndarray, rect: QRectF, x: float) -> int:
    """Which number of a vector the stripe under `x` shows; -1 outside."""
    numbers = shown_numbers(vector, rect.width())
    share = (x - rect.left()) / max(rect.width(), 1e-9)
    return int(numbers[int(share * len(numbers))]) if 0 <= share < 1 and len(numbers) else -1
