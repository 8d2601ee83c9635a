"""A small plot over a logarithmic axis: lines, dots, names written at the curves, and a marker that can be dragged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QWheelEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from explorer.theme import LIGHT, Theme
from explorer.widgets.number_text import nice_ticks, tick_texts

_NORMAL_LINE = 18.0  # pixels: a line of text at its normal size
_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


@dataclass(frozen=True, eq=False)
class Curve:
    """`x` and `y` are (points,), x above 0, and y too where the plot's y axis is logarithmic.

    `role` names a colour of the theme. `label` is written at point `label_at`; `anchor` says which part of the text
    lies there, (0, 0) its top left and (1, 1) its bottom right corner.
    """

    x: np.ndarray
    y: np.ndarray
    role: str
    kind: Literal["line", "dots", "both", "diamond"] = "both"
    label: str = ""
    label_at: int = -1
    anchor: tuple[float, float] = (0.5, 1.2)


class CurvePlot(QWidget):
    """The page it lies in keeps the wheel; nothing pans or zooms, and no menu opens. x is always logarithmic."""

    marker_moved = Signal(float)
    """The x, in its own units, that the person dragged the marker to or clicked."""

    def __init__(self, x_label: str, y_label: str, *, log_y: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._log_y = log_y
        self._labels = (x_label, y_label)
        self._curves: tuple[Curve, ...] = ()
        self._y_range: tuple[float, float] | None = None
        self._height = 170
        self.setAccessibleName(y_label)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._view = _View(enableMenu=False)
        self._view.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        item = self._view.getPlotItem()
        item.setLogMode(True, log_y)
        item.ctrlMenu.setParent(self, item.ctrlMenu.windowFlags())  # else a window that outlives the plot
        item.hideButtons()
        item.setMouseEnabled(False, False)
        item.showGrid(True, True, 0.25)
        self._marker = pg.InfiniteLine(movable=True)
        self._marker.sigDragged.connect(lambda line: self.marker_moved.emit(10 ** float(line.value())))
        self._has_marker = False
        item.scene().sigMouseClicked.connect(self._on_clicked)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._view)
        self._paint()

    @property
    def curves(self) -> tuple[Curve, ...]:
        return self._curves

    def set_theme(self, theme: Theme) -> None:
        """Draw in the colours of `theme` from now on."""
        if theme != self._theme:
            self._theme = theme
            self._paint()

    def set_curves(self, curves: Sequence[Curve], y_range: tuple[float, float] | None = None) -> None:
        """Draw `curves`; the y axis spans `y_range`, or what the curves need."""
        self._curves, self._y_range = tuple(curves), y_range
        self.setAccessibleDescription(", ".join(curve.label for curve in self._curves if curve.label))
        self._paint()

    def set_marker(self, x: float) -> None:
        """Put the upright line at `x`."""
        if not self._has_marker:
            self._has_marker = True
            self._view.addItem(self._marker, ignoreBounds=True)
        self._marker.blockSignals(True)
        self._marker.setValue(math.log10(x))
        self._marker.blockSignals(False)

    def set_height(self, height: int) -> None:
        """In pixels at the normal size of text."""
        self._height = height
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        return QSize(360, self._scaled_height())

    def minimumSizeHint(self) -> QSize:
        return QSize(200, self._scaled_height())

    def _scaled_height(self) -> int:
        return round(self._height * max(1.0, QFontMetricsF(self.font()).height() / _NORMAL_LINE))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.updateGeometry()
            self._paint()

    def _on_clicked(self, event: Any) -> None:
        box = self._view.getPlotItem().vb
        if self._has_marker and box.sceneBoundingRect().contains(event.scenePos()):
            self.marker_moved.emit(10 ** float(box.mapSceneToView(event.scenePos()).x()))

    # painting

    def _paint(self) -> None:
        item, theme = self._view.getPlotItem(), self._theme
        self._view.setBackground(theme.surface)
        item.clearPlots()
        for extra in [i for i in item.items if isinstance(i, pg.TextItem)]:
            item.removeItem(extra)
        self._paint_axes(item)
        for curve in self._curves:
            self._paint_curve(item, curve)
        self._set_range(item)
        self._marker.setPen(pg.mkPen(theme.focus, width=1.5, style=Qt.PenStyle.DashLine))
        self._marker.setHoverPen(pg.mkPen(theme.focus, width=4))

    def _paint_axes(self, item: Any) -> None:
        theme, font = self._theme, QFont(self.font())
        font.setPointSizeF(self.font().pointSizeF() * 0.9)
        metrics = QFontMetricsF(font)
        for side, text in zip(("bottom", "left"), self._labels, strict=True):
            axis = item.getAxis(side)
            axis.setPen(pg.mkPen(theme.border_strong))
            axis.setTextPen(pg.mkPen(theme.text_dim))
            axis.setStyle(
                tickFont=font,
                tickLength=-4,
                autoExpandTextSpace=False,
                autoReduceTextSpace=False,
                hideOverlappingLabels=False,
            )
            axis.label.setFont(font)
            axis.enableAutoSIPrefix(False)
            axis.setLabel(text, color=theme.text_dim)
        left = metrics.horizontalAdvance("0.00") + metrics.height() + 12
        item.getAxis("left").setWidth(round(left))
        item.getAxis("bottom").setHeight(round(2 * metrics.height() + 4))

    def _paint_curve(self, item: Any, curve: Curve) -> None:
        colour = QColor(getattr(self._theme, curve.role))
        pen = pg.mkPen(colour, width=2) if curve.kind in ("line", "both") else None
        symbol = {"dots": "o", "both": "o", "diamond": "d", "line": None}[curve.kind]
        item.plot(
            curve.x,
            curve.y,
            pen=pen,
            symbol=symbol,
            symbolSize=15 if curve.kind == "diamond" else 7,
            symbolBrush=colour,
            symbolPen=pg.mkPen(self._theme.surface, width=1),
        )
        if curve.label:
            label = pg.TextItem(curve.label, color=colour, anchor=curve.anchor)
            label.setFont(self.font())
            item.addItem(label, ignoreBounds=True)
            x, y = float(curve.x[curve.label_at]), float(curve.y[curve.label_at])
            label.setPos(math.log10(x), math.log10(y) if self._log_y else y)

    def _set_range(self, item: Any) -> None:
        if not self._curves:
            return
        xs = np.concatenate([curve.x for curve in self._curves])
        ys = np.concatenate([curve.y for curve in self._curves])
        low, high = self._y_range or (float(ys.min()), float(ys.max()))
        if self._log_y:
            low, high = math.log10(low), math.log10(high)
            ticks = _powers_of_ten(low, high)
        else:
            places = nice_ticks(low, high, 5)
            ticks = list(zip(places, tick_texts(places), strict=True))
        item.getAxis("left").setTicks([ticks])
        first, last = math.log10(xs.min()), math.log10(xs.max())
        span = last - first
        # room for half of the last tick's text, which the axis else leaves out
        item.setXRange(first - 0.03 * span, last + 0.1 * span, padding=0)
        item.setYRange(low, high, padding=0.1)
        shown = [d for d in (1, 4, 16, 64, 256, 1024) if xs.min() <= d <= xs.max()]
        item.getAxis("bottom").setTicks([[(math.log10(d), f"{d:,}") for d in shown]])


def _powers_of_ten(low: float, high: float) -> list[tuple[float, str]]:
    """Ticks in log10 units; every other power where there are many."""
    first, last = math.floor(low), math.ceil(high)
    step = 1 if last - first <= 5 else -(-(last - first) // 5)
    return [(float(p), _power_text(p)) for p in range(first, last + 1, step)]


def _power_text(power: int) -> str:
    if -2 <= power <= 3:
        return f"{10.0**power:g}"
    return "10" + str(power).translate(_SUPERSCRIPT)


class _View(pg.PlotWidget):
    """Leaves the wheel to the page."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()
