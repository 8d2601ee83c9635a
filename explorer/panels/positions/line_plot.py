"""Curves over one axis, with a cursor that can be dragged and the values under it in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.widgets.number_text import nice_ticks, tick_texts, value_text
from explorer.widgets.themed import ThemedWidget

_PAD = 6.0
_LEFT, _RIGHT = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight
_MIDDLE = Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True, eq=False)
class Curve:
    """`values` (points,) at the plot's own x; `role` names a colour of the theme. Only labelled curves are read out."""

    values: NDArray[np.floating]
    label: str = ""
    role: str = "bar"
    width: float = 2.0


class LinePlot(ThemedWidget):
    """Click or drag moves the cursor to the nearest point, so do the arrow keys; labels stand at the curves' ends."""

    cursor_moved = Signal(int)  # index of a point, moved here by pointer or keyboard

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(name, parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._x: NDArray[np.floating] = np.zeros(0)
        self._curves: tuple[Curve, ...] = ()
        self._titles = ("", "")
        self._log = False
        self._cursor: int | None = None
        self._marker: tuple[int, str] | None = None
        self._range = (0.0, 1.0)
        self._height = 190

    def set_curves(
        self, x: NDArray[np.number], curves: Sequence[Curve], x_title: str, y_title: str, *, log: bool = False
    ) -> None:
        """Draw `curves` over the ascending `x`; with `log` all values are above 0. No curves: the empty text."""
        self._x, self._curves = np.asarray(x, dtype=float), tuple(curves)
        self._titles, self._log = (x_title, y_title), log
        if self._cursor is not None:
            self._cursor = min(self._cursor, len(self._x) - 1) if len(self._x) else None
        self._marker = None
        lows, highs = [float(c.values.min()) for c in self._curves], [float(c.values.max()) for c in self._curves]
        low, high = min(lows, default=0.0), max(highs, default=1.0)
        if log:
            self._range = (10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high) + 1e-9))
        else:
            space = 0.06 * (high - low) or 0.5
            self._range = (low - space, high + space)
        self._describe()
        self.update()

    def set_cursor(self, index: int | None) -> None:
        """Read the values at a point; emits nothing."""
        index = None if index is None or not 0 <= index < len(self._x) else index
        if index != self._cursor:
            self._cursor = index
            self._describe()
            self.update()

    def set_marker(self, index: int, text: str) -> None:
        """Point out one point of the first curve: "here it stands"."""
        self._marker = (index, text) if 0 <= index < len(self._x) else None
        self.update()

    def set_height(self, pixels: int) -> None:
        self._height = pixels
        self.updateGeometry()

    @property
    def cursor_index(self) -> int | None:
        return self._cursor

    def readout(self) -> str:
        """The values at the cursor, as they stand above the curves."""
        if self._cursor is None or not self._curves:
            return ""
        place = f"{self._x[self._cursor]:g}".replace("-", "−")
        named = [curve for curve in self._curves if curve.label]
        texts = [f"{curve.label} {value_text(float(curve.values[self._cursor]))}" for curve in named]
        return f"{place}:  " + "   ".join(texts)

    def x_of(self, index: int) -> float:
        """Where a point lies across the widget, in pixels."""
        room = self._room()
        return self._across(float(self._x[index]), room)

    # geometry

    def sizeHint(self) -> QSize:
        return QSize(360, max(self._height, round(8 * QFontMetricsF(self.font()).height())))

    def minimumSizeHint(self) -> QSize:
        return QSize(200, self.sizeHint().height())

    def _ticks(self) -> tuple[list[float], list[str]]:
        low, high = self._range
        if self._log:
            powers = range(round(math.log10(low)), round(math.log10(high)) + 1)
            step = -(-len(powers) // 5)
            ticks = [10.0**power for power in powers[::step]]
            return ticks, [f"{tick:,g}" if tick < 1e6 else f"1e{round(math.log10(tick))}" for tick in ticks]
        ticks = nice_ticks(low, high, 5)
        return ticks, tick_texts(ticks)

    def _room(self) -> QRectF:
        metrics = QFontMetricsF(self.font())
        line = metrics.height()
        left = max((metrics.horizontalAdvance(text) for text in self._ticks()[1]), default=0) + 2 * _PAD
        right = max((metrics.horizontalAdvance(curve.label) for curve in self._curves), default=0) + 2 * _PAD
        return QRectF(left, line + 8, max(20.0, self.width() - left - right), max(20.0, self.height() - 3.2 * line - 8))

    def _across(self, x: float, room: QRectF) -> float:
        low, high = float(self._x[0]), float(self._x[-1])
        return room.left() + (x - low) / (high - low or 1.0) * room.width()

    def _down(self, value: float, room: QRectF) -> float:
        low, high = self._range
        if self._log:
            value, low, high = math.log10(value), math.log10(low), math.log10(high)
        return room.bottom() - (value - low) / (high - low or 1.0) * room.height()

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self._curves or not len(self._x):
            self._draw_empty_text(painter)
            self._draw_focus_ring(painter)
            return
        room = self._room()
        self._draw_axes(painter, room)
        self._draw_cursor(painter, room)
        for curve in self._curves:
            self._draw_curve(painter, curve, room)
        self._draw_end_labels(painter, room)
        self._draw_points(painter, room)
        self._draw_focus_ring(painter)

    def _draw_axes(self, painter: QPainter, room: QRectF) -> None:
        theme, metrics = self._theme, QFontMetricsF(self.font())
        line = metrics.height()
        for tick, text in zip(*self._ticks(), strict=True):
            y = round(self._down(tick, room)) + 0.5
            painter.setPen(QPen(QColor(theme.border_strong if tick == 0 else theme.border), 1))
            painter.drawLine(QPointF(room.left(), y), QPointF(room.right(), y))
            painter.setPen(QColor(theme.text_dim))
            painter.drawText(QRectF(0, y - line / 2, room.left() - _PAD, line), _RIGHT | _MIDDLE, text)
        widest = metrics.horizontalAdvance(f"{self._x[-1]:,.0f}") * 2.2 + 8
        ticks = nice_ticks(float(self._x[0]), float(self._x[-1]), max(2, int(room.width() / widest)))
        for tick, text in zip(ticks, tick_texts(ticks), strict=True):
            x = self._across(tick, room)
            painter.drawText(QRectF(x - 60, room.bottom() + 2, 120, line), Qt.AlignmentFlag.AlignHCenter, text)
        below = QRectF(0, room.bottom() + 2 + line, self.width(), line)
        title = metrics.elidedText(self._titles[0], Qt.TextElideMode.ElideRight, below.width())
        painter.drawText(below, Qt.AlignmentFlag.AlignHCenter, title)
        readout = self.readout()
        top = QRectF(_PAD, 0, self.width() - 2 * _PAD, line)
        if metrics.horizontalAdvance(readout + self._titles[1]) + 12 < top.width():  # else the readout names it
            painter.drawText(top, _LEFT | _MIDDLE, self._titles[1])
        painter.setPen(QColor(theme.text))
        shown = metrics.elidedText(readout, Qt.TextElideMode.ElideRight, top.width())
        painter.drawText(top, _RIGHT | _MIDDLE, shown)

    def _draw_cursor(self, painter: QPainter, room: QRectF) -> None:
        if self._cursor is not None:
            x = self._across(float(self._x[self._cursor]), room)
            painter.setPen(QPen(QColor(self._theme.text), 1, Qt.PenStyle.DashLine))
            painter.drawLine(QPointF(x, room.top()), QPointF(x, room.bottom()))

    def _draw_curve(self, painter: QPainter, curve: Curve, room: QRectF) -> None:
        painter.setPen(QPen(QColor(getattr(self._theme, curve.role)), curve.width))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        points = zip(self._x, curve.values, strict=True)
        polygon = QPolygonF([QPointF(self._across(float(x), room), self._down(float(v), room)) for x, v in points])
        painter.drawPolyline(polygon)

    def _draw_end_labels(self, painter: QPainter, room: QRectF) -> None:
        """Each label beside its curve's end, moved down where it would lie on the one above."""
        line = QFontMetricsF(self.font()).height()
        named = [curve for curve in self._curves if curve.label]
        ends = sorted(((self._down(float(c.values[-1]), room), c) for c in named), key=lambda end: end[0])
        lowest = room.bottom() + line - line * len(ends)
        y = -math.inf
        for place, (wanted, curve) in enumerate(ends):
            y = max(min(wanted - line / 2, lowest + line * place), y + line)
            painter.setPen(QColor(getattr(self._theme, curve.role)))
            painter.drawText(QRectF(room.right() + _PAD, y, self.width(), line), _LEFT | _MIDDLE, curve.label)

    def _draw_points(self, painter: QPainter, room: QRectF) -> None:
        if self._cursor is not None:
            x = self._across(float(self._x[self._cursor]), room)
            painter.setPen(QPen(QColor(self._theme.surface), 1.5))
            for curve in self._curves:
                if curve.label:
                    painter.setBrush(QColor(getattr(self._theme, curve.role)))
                    painter.drawEllipse(QPointF(x, self._down(float(curve.values[self._cursor]), room)), 4.5, 4.5)
        if self._marker is not None and self._curves:
            index, text = self._marker
            x = self._across(float(self._x[index]), room)
            y = self._down(float(self._curves[0].values[index]), room)
            painter.setPen(QPen(QColor(self._theme.text), 2))
            painter.setBrush(QColor(self._theme.surface))
            painter.drawEllipse(QPointF(x, y), 5, 5)
            metrics = QFontMetricsF(self.font())
            width, line = metrics.horizontalAdvance(text), metrics.height()
            left = x + 9 if x + 9 + width < self.width() else x - 9 - width
            up = y - line - 4 if y - line - 4 > room.top() else y + 6
            box = QRectF(left - 3, up, width + 6, line)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.drawRoundedRect(box, 3, 3)
            painter.setPen(QColor(self._theme.text))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)

    # pointer and keyboard

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton or not self._curves:
            event.ignore()
            return
        self._point(event.position().x())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton and self._curves:
            self._point(event.position().x())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        last = len(self._x) - 1
        at = self._cursor if self._cursor is not None else 0
        moves = {
            Qt.Key.Key_Left: at - 1,
            Qt.Key.Key_Right: at + 1,
            Qt.Key.Key_PageUp: at - 10,
            Qt.Key.Key_PageDown: at + 10,
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: last,
        }
        if not self._curves or Qt.Key(event.key()) not in moves:
            event.ignore()
            return
        self._move(min(max(moves[Qt.Key(event.key())], 0), last))

    def _point(self, x: float) -> None:
        room = self._room()
        wanted = float(self._x[0]) + (x - room.left()) / room.width() * float(self._x[-1] - self._x[0])
        self._move(int(np.abs(self._x - wanted).argmin()))

    def _move(self, index: int) -> None:
        if index != self._cursor:
            self.set_cursor(index)
            self.cursor_moved.emit(index)

    def _describe(self) -> None:
        self.setAccessibleDescription(f"{self._titles[1]} over {self._titles[0]}. {self.readout()}")
