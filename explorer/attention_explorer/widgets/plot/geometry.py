"""Where the parts of a figure lie in a widget of some size: the room inside the axes, ticks, and names."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize
from PySide6.QtGui import QFont, QFontMetricsF

from attention_explorer.widgets.number_text import MINUS, nice_ticks, power_text, power_ticks, tick_texts
from attention_explorer.widgets.plot.figure import Axis, Figure, Series, Values

PAD = 6.0
LEGEND_KEY = 32.0  # pixels for the piece of line before a name
_SPARE = 0.06  # of the y range, above and below the points
_MARKED_SPARE = 0.03  # of the x range, so that no mark lies on the y axis
_NEAR = 20.0  # pixels around the axes that still belong to them

Ticks = list[tuple[float, str]]  # value, text


class Geometry:
    """A figure laid out. Pixels are the widget's own; nothing here depends on what is being read."""

    def __init__(self, figure: Figure, font: QFont, size: QSize) -> None:
        self.figure, self.font, self.size = figure, font, size
        self.metrics = QFontMetricsF(font)
        self.line = self.metrics.height()
        self.x_range, self.y_range = _x_range(figure), _y_range(figure)
        self.y_ticks = _ticks(figure.y, self.y_range, 5 if size.height() < 12 * self.line else 6)
        self.legend = self._legend()
        self.room = self._room()
        self.x_ticks = _ticks(figure.x, self.x_range, self._most_x_ticks())

    # from values to pixels and back

    def across(self, x: float) -> float:
        return float(self._across(np.asarray(x)))

    def down(self, y: float) -> float:
        return float(self._down(np.asarray(y)))

    def _across(self, x: Values) -> Values:
        return np.asarray(self.room.left() + _share(x, self.x_range, self.figure.x) * self.room.width())

    def _down(self, y: Values) -> Values:
        return np.asarray(self.room.bottom() - _share(y, self.y_range, self.figure.y) * self.room.height())

    def point(self, x: float, y: float) -> QPointF:
        return QPointF(self.across(x), self.down(y))

    def points(self, series: Series) -> Values:
        """The pixels of a series, (points, 2)."""
        return np.stack([self._across(series.x), self._down(series.y)], axis=1)

    def nearest(self, places: Values, pixel: float) -> float:
        """The place that lies nearest to a column of pixels; there is at least one."""
        return float(places[np.abs(self._across(places) - pixel).argmin()])

    def contains(self, position: QPointF) -> bool:
        """Whether a pixel lies between the axes, on their ticks, or close by."""
        below = self.size.height() - self.room.bottom()
        return self.room.adjusted(-_NEAR, -_NEAR / 2, _NEAR, below).contains(position)

    def spread(self, margin: float) -> tuple[QRectF, tuple[float, float], tuple[float, float]]:
        """The room with `margin` more pixels on all sides, and the scaled x and y ranges that fill it."""
        room = self.room.adjusted(-margin, -margin, margin, margin)
        ranges = []
        for (low, high), axis, length in (
            (self.x_range, self.figure.x, self.room.width()),
            (self.y_range, self.figure.y, self.room.height()),
        ):
            low, high = scaled(np.array([low, high]), axis).tolist()
            more = (high - low) * margin / length
            ranges.append((low - more, high + more))
        return room, ranges[0], ranges[1]

    # rows and columns around the room

    def count_row(self) -> QRectF:
        """Below the ticks of x: the numbers of the counts."""
        return QRectF(0, self.room.bottom() + self.line + 4, self.size.width(), self.line)

    def _room(self) -> QRectF:
        figure, width = self.figure, self.metrics.horizontalAdvance
        left = max((width(text) for _, text in self.y_ticks), default=0.0) + 2 * PAD
        right = 14.0
        if figure.names == "end":
            right = max((width(series.name) for series in figure.named), default=0.0) + 2 * PAD
        top = self.line + 8
        if self.legend:
            top = self.legend[-1].bottom() + 8
        if figure.rules:
            top += self.line - 2
        bottom = (3 if figure.counts is not None else 2) * self.line + 10
        size = self.size
        return QRectF(left, top, max(20.0, size.width() - left - right), max(20.0, size.height() - top - bottom))

    def _legend(self) -> list[QRectF]:
        """Where each name stands with the longest value it may have: reading a point moves nothing."""
        if self.figure.names != "legend":
            return []
        x, y, places = PAD, self.line + 4, []
        widest = str.maketrans(dict.fromkeys("0123456789", max("0123456789", key=self.metrics.horizontalAdvance)))
        for series in self.figure.named:
            texts = {text.translate(widest) for text in self.figure.longest_texts(series)}
            longest = max(map(self.metrics.horizontalAdvance, texts), default=0.0)
            width = LEGEND_KEY + self.metrics.horizontalAdvance(f"{series.name}  ") + longest
            if x > PAD and x + width > self.size.width() - PAD:
                x, y = PAD, y + self.line + 2
            places.append(QRectF(x, y, width, self.line))
            x += width + 14
        return places

    def _most_x_ticks(self) -> int:
        ends = (f"{end:,.0f}".replace("-", MINUS) for end in self.x_range)
        widest = max(self.metrics.horizontalAdvance(text) for text in ends) * 1.4 + 10
        return max(3, int(self.room.width() / widest))


def scaled(values: Values, axis: Axis) -> Values:
    """Values as they lie along the axis: logarithms to base 10 on a logarithmic one."""
    return np.log10(values) if axis.log else values


def _share(values: Values, ends: tuple[float, float], axis: Axis) -> Values:
    """How far along the axis, 0 at its low and 1 at its high end."""
    low, high = scaled(np.array(ends), axis)
    return np.asarray((scaled(values, axis) - low) / (high - low or 1.0))


def _x_range(figure: Figure) -> tuple[float, float]:
    """The ends of the x axis; marks keep clear of them."""
    marked = any(series.mark != "none" for series in figure.series)
    return _ends(figure.x, [series.x for series in figure.series], _MARKED_SPARE if marked else 0.0, 0.0)


def _y_range(figure: Figure) -> tuple[float, float]:
    """The ends of the y axis, with some room beyond the points."""
    return _ends(figure.y, [series.y for series in figure.series], _SPARE, 0.5)


def _ends(axis: Axis, values: Sequence[Values], spare: float, least: float) -> tuple[float, float]:
    """From the least to the greatest finite value, a share `spare` of that further, `least` where all are the same."""
    shown = np.concatenate([np.zeros(0), *values])
    shown = scaled(shown[np.isfinite(shown)], axis)
    low, high = (float(shown.min()), float(shown.max())) if len(shown) else (0.0, 1.0)
    more = spare * (high - low) or least
    low, high = low - more, high + more
    if axis.log:
        low, high = 10**low, 10**high
    return low if axis.low is None else axis.low, high if axis.high is None else axis.high


def _ticks(axis: Axis, ends: tuple[float, float], most: int) -> Ticks:
    low, high = ends
    if axis.ticks:
        inside = [tick for tick in axis.ticks if low <= tick <= high]
        return [(tick, f"{tick:,g}") for tick in inside]
    powers = power_ticks(math.log10(low), math.log10(high), most) if axis.log else []
    if powers:
        return [(10.0**power, power_text(power)) for power in powers]
    places = nice_ticks(low, high, most)
    if axis.whole:
        places = [place for place in places if place == round(place)]
        return [(place, f"{place:,.0f}".replace("-", MINUS)) for place in places]
    return list(zip(places, tick_texts(places), strict=True))
