"""The drawn plot: pyqtgraph's items for the data, in a view that answers no pointer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QFrame, QGraphicsItem, QWidget

from attention_explorer.look.text_size import wide
from attention_explorer.look.theme import Theme
from attention_explorer.widgets.plot.figure import Mark, Series
from attention_explorer.widgets.plot.geometry import Geometry, scaled
from attention_explorer.widgets.plot.paint import PEN_STYLES

_MARGIN = 9.0  # pixels around the room in which marks at its edge are still whole
_SYMBOLS: dict[Mark, str | None] = {"none": None, "circle": "o", "square": "s", "diamond": "d", "triangle": "t1"}
_LARGER = {"diamond": 1.25, "triangle": 1.25}  # so that all marks weigh the same
_OUTLINE = 1.6  # pixels, of a hollow mark

Paint = Callable[[QPainter], None]


class Canvas(pg.GraphicsView):
    """Draws a figure's data, and calls back for what stands behind and before it. Its scene is in pixels."""

    def __init__(self, parent: QWidget, back: Paint, front: Paint) -> None:
        super().__init__(parent)
        self._back, self._front = back, front
        self.setCentralWidget(None)  # its layout makes a window of its own, to measure styles by
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)  # the plot around it answers
        self._box = pg.ViewBox(enableMenu=False, enableMouse=False)
        self.scene().addItem(self._box)
        self._items: list[Any] = []
        self._surface = ""

    def show_data(self, geometry: Geometry, theme: Theme) -> None:
        """Draw another figure, size or theme."""
        if theme.surface != self._surface:
            self._surface = theme.surface
            self.setBackground(theme.surface)
        drawn = [series for series in geometry.figure.series if len(series.x)]
        while len(self._items) > len(drawn):
            self._box.removeItem(self._items.pop())
        while len(self._items) < len(drawn):
            self._items.append(_item())
            self._box.addItem(self._items[-1], ignoreBounds=True)
        for item, series in zip(self._items, drawn, strict=True):  # to make them anew takes several times as long
            item.setData(**_options(series, geometry, theme))
        room, x_range, y_range = geometry.spread(_MARGIN)
        self._box.setGeometry(room)
        self._box.setRange(xRange=x_range, yRange=y_range, padding=0)
        self.resetCachedContent()
        self.viewport().update()

    def show_reading(self) -> None:
        """What is read has changed; the data have not."""
        self.viewport().update()

    def drawBackground(self, painter: QPainter, rect: QRectF) -> None:
        super().drawBackground(painter, rect)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._back(painter)

    def drawForeground(self, painter: QPainter, rect: QRectF) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._front(painter)


def _item() -> Any:
    """Of one series, which may become another."""
    item = pg.PlotDataItem(antialias=True)
    item.curve.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)  # what is read changes more often
    item.curve.setSegmentedLineMode("off")  # dashes run on through the points
    return item


def _options(series: Series, geometry: Geometry, theme: Theme) -> dict[str, Any]:
    """All that an item is told of a series: what was told of another does not stay."""
    colour = QColor(getattr(theme, series.role))
    mark: Mark = "circle" if series.mark == "none" and len(series.x) == 1 else series.mark  # no line goes to it
    marked = mark != "none"
    hollow = np.zeros(len(series.x), bool) if series.hollow is None else series.hollow
    surface, outline = pg.mkBrush(theme.surface), pg.mkPen(colour, width=wide(_OUTLINE))
    ring = outline if hollow.any() else pg.mkPen(theme.surface, width=1)
    line = wide(series.width)
    return {
        "x": scaled(series.x.astype(float), geometry.figure.x),
        "y": scaled(series.y.astype(float), geometry.figure.y),
        "pen": None if series.line == "none" else pg.mkPen(colour, width=line, style=PEN_STYLES[series.line]),
        "symbol": _SYMBOLS[mark],
        "symbolSize": wide(series.mark_size) * _LARGER.get(series.mark, 1.0),
        "symbolBrush": [surface if empty else pg.mkBrush(colour) for empty in hollow] if marked else None,
        "symbolPen": [outline if empty else ring for empty in hollow] if marked else None,
        # a line of far more points than pixels is drawn by the extremes in each pixel
        "autoDownsample": not marked and not geometry.figure.x.log and len(series.x) > 4 * geometry.room.width(),
        "autoDownsampleFactor": 1.0,
        "downsampleMethod": "peak",
    }
