"""What is painted around the data of a plot: axes and counts behind it; names, notes and what is read before it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF, QRegion

from attention_explorer.look.text_size import wide
from attention_explorer.look.theme import Theme
from attention_explorer.widgets.plot.figure import Line, Mark, Series
from attention_explorer.widgets.plot.geometry import LEGEND_KEY, PAD, Geometry

# Where the names of series stand in a plot: at the ends of their lines, or beside them where there is room.


Label = tuple[Series, QRectF]

_TRIED = 16  # points along a series
_AWAY = 7.0  # pixels from the point
_APART = 3.0  # pixels: how densely a line counts as an obstacle
_IN_THE_WAY = 1000.0  # a name over another, or outside of the axes, costs as much as this many pixels of lines


def end_labels(geometry: Geometry) -> list[Label]:
    """Each name beside its line's end, moved down where it would lie on the one above."""
    line, room = geometry.line, geometry.room
    named = [series for series in geometry.figure.named if len(series.x)]
    ends = sorted((geometry.down(float(series.y[-1])), i) for i, series in enumerate(named))
    lowest = room.bottom() + line - line * len(ends)
    labels: list[Label] = []
    y = -math.inf
    for place, (wanted, index) in enumerate(ends):
        y = max(min(wanted - line / 2, lowest + line * place), y + line)
        labels.append((named[index], QRectF(room.right() + PAD, y, geometry.size.width(), line)))
    return labels


def labels_of(geometry: Geometry) -> list[Label]:
    """What is written into the plot; nothing where the names stand above it."""
    names = geometry.figure.names
    return [] if names == "legend" else end_labels(geometry) if names == "end" else curve_labels(geometry)


def curve_labels(geometry: Geometry) -> list[Label]:
    """Each name beside its own series, at the place that covers the least of lines, marks and other names."""
    outlines = [_outline(geometry.points(series)) for series in geometry.figure.series]
    obstacles = np.concatenate([np.zeros((0, 2)), *outlines])
    labels: list[Label] = []
    for series in geometry.figure.named:
        points = geometry.points(series)
        if not len(points):
            continue
        width = geometry.metrics.horizontalAdvance(series.name) + 4
        taken = [rect for _, rect in labels]
        tried = [points[i] for i in np.unique(np.linspace(0, len(points) - 1, _TRIED).round().astype(int))]
        places = [
            (place, 0.01 * abs(i - 0.75 * len(tried)) + 0.001 * side)
            for i, point in enumerate(tried)
            for side, place in enumerate(_around(float(point[0]), float(point[1]), width, geometry.line))
        ]
        best = min(places, key=lambda each: _cost(each[0], geometry.room, obstacles, taken) + each[1])
        labels.append((series, best[0]))
    return labels


def _around(x: float, y: float, width: float, height: float) -> list[QRectF]:
    """Above, below, left and right of a point."""
    return [
        QRectF(x - width / 2, y - _AWAY - height, width, height),
        QRectF(x - width / 2, y + _AWAY, width, height),
        QRectF(x - _AWAY - width, y - height / 2, width, height),
        QRectF(x + _AWAY, y - height / 2, width, height),
    ]


def _cost(rect: QRectF, room: QRectF, obstacles: np.ndarray, taken: list[QRectF]) -> float:
    covered = (
        (obstacles[:, 0] > rect.left())
        & (obstacles[:, 0] < rect.right())
        & (obstacles[:, 1] > rect.top())
        & (obstacles[:, 1] < rect.bottom())
    )
    bad = (not room.contains(rect)) + sum(rect.intersects(other) for other in taken)
    return float(covered.sum()) * _APART + bad * _IN_THE_WAY


def _outline(corners: np.ndarray) -> np.ndarray:
    """Pixels along the straight lines between `corners` (points, 2), (pixels, 2)."""
    parts = [corners]
    for start, end in pairwise(corners):
        count = int(np.hypot(*(end - start)) / _APART)
        parts.append(start + (end - start) * np.linspace(0, 1, count + 2)[1:-1, None])
    return np.concatenate(parts)


PEN_STYLES: dict[Line, Qt.PenStyle] = {
    "none": Qt.PenStyle.NoPen,
    "solid": Qt.PenStyle.SolidLine,
    "dashed": Qt.PenStyle.DashLine,
    "dotted": Qt.PenStyle.DotLine,
    "dash-dot": Qt.PenStyle.DashDotLine,
}
_COUNTS = 0.16  # of the height: the tallest column of counts
_RADIUS = 4.5  # pixels, of a mark in the legend and of the point that is read
_LEFT, _CENTRE, _RIGHT = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignHCenter, Qt.AlignmentFlag.AlignRight
_MIDDLE = Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True, slots=True)
class Reading:
    """The chosen place and the one under the pointer; None for none."""

    cursor: float | None = None
    hover: float | None = None

    @property
    def place(self) -> float | None:
        """The place that is read."""
        return self.hover if self.hover is not None else self.cursor


def readout(geometry: Geometry, place: float | None) -> str:
    """The place in words, with the values there unless the legend has them: "4:  measured 3.97   law 4.00"."""
    if place is None:
        return ""
    said = geometry.figure.place_text(place)
    if geometry.figure.names == "legend":
        return said
    return f"{said}:  " + "   ".join(f"{name} {value}" for name, value in values_at(geometry, place))


def values_at(geometry: Geometry, place: float) -> list[tuple[str, str]]:
    """Name and value, in words, of each series that has a point there."""
    read = ((series.name, series.at(place)) for series in geometry.figure.named)
    return [(name, geometry.figure.value_text(value)) for name, value in read if not math.isnan(value)]


# behind the data


def paint_back(painter: QPainter, geometry: Geometry, theme: Theme) -> None:
    """Counts, grid, ticks and the title of x."""
    painter.setFont(geometry.font)
    _paint_counts(painter, geometry, theme)
    room, line = geometry.room, geometry.line
    for tick, text in geometry.y_ticks:
        y = round(geometry.down(tick)) + 0.5
        foot = tick == 0 or tick == geometry.y_range[0]
        painter.setPen(QPen(QColor(theme.border_strong if foot else theme.border), 1))
        painter.drawLine(QPointF(room.left(), y), QPointF(room.right(), y))
        painter.setPen(QColor(theme.text_dim))
        painter.drawText(QRectF(0, y - line / 2, room.left() - PAD, line), _RIGHT | _MIDDLE, text)
    for tick, text in geometry.x_ticks:
        x = geometry.across(tick)
        painter.drawText(QRectF(x - 60, room.bottom() + 2, 120, line), _CENTRE | _MIDDLE, text)
    width, height = geometry.size.width(), geometry.size.height()
    title = geometry.metrics.elidedText(geometry.figure.x.title, Qt.TextElideMode.ElideRight, width)
    painter.setPen(QColor(theme.text_dim))
    painter.drawText(QRectF(0, height - line - 4, width, line), _CENTRE | _MIDDLE, title)


def _paint_counts(painter: QPainter, geometry: Geometry, theme: Theme) -> None:
    counts, room = geometry.figure.counts, geometry.room
    if counts is None:
        return
    most = max(1, int(counts.counts.max(initial=1)))
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(theme.border))
    columns = list(zip(counts.low.tolist(), counts.high.tolist(), counts.counts.tolist(), strict=True))
    for low, high, count in columns:
        left, right = geometry.across(low), geometry.across(high)
        tall = _COUNTS * room.height() * count / most
        painter.drawRect(QRectF(left, room.bottom() - tall, right - left, tall))
    painter.setPen(QColor(theme.text_dim))
    row, end = geometry.count_row(), -1e9
    widest = max(geometry.metrics.horizontalAdvance(f"{count:,}") for *_, count in columns) + 8
    for low, high, count in columns:
        x = (geometry.across(low) + geometry.across(high)) / 2
        if x - widest / 2 >= end:  # where there is room
            painter.drawText(QRectF(x - 40, row.top(), 80, row.height()), _CENTRE | _MIDDLE, f"{count:,}")
            end = x + widest / 2
    painter.drawText(QRectF(0, row.top(), room.left() - PAD, row.height()), _RIGHT | _MIDDLE, counts.name)


# before the data


def paint_front(painter: QPainter, geometry: Geometry, labels: Sequence[Label], theme: Theme, reading: Reading) -> None:
    """Rules, the cursor and the points that it reads, notes, names and the readout."""
    painter.setFont(geometry.font)
    _paint_rules(painter, geometry, theme)
    _paint_cursor(painter, geometry, theme, reading, labels)
    for series, place in zip(geometry.figure.named, geometry.legend, strict=False):
        _paint_legend(painter, geometry, theme, series, place, reading)
    for series, place in labels:
        if geometry.figure.names == "curve":  # a grid line may pass below
            painter.fillRect(place.adjusted(1, 2, -1, -2), _veil(theme))
        painter.setPen(QColor(getattr(theme, series.role)))
        painter.drawText(place, (_LEFT if geometry.figure.names == "end" else _CENTRE) | _MIDDLE, series.name)
    for note in geometry.figure.notes:
        _paint_note(painter, geometry, theme, geometry.point(note.x, note.y), note.text)
    _paint_head(painter, geometry, theme, reading)


def _veil(theme: Theme) -> QColor:
    colour = QColor(theme.surface)
    colour.setAlphaF(0.75)
    return colour


def _paint_rules(painter: QPainter, geometry: Geometry, theme: Theme) -> None:
    room, line, whole = geometry.room, geometry.line, geometry.size.width()
    for rule in geometry.figure.rules:
        if not geometry.x_range[0] < rule.x < geometry.x_range[1]:
            continue
        x = round(geometry.across(rule.x)) + 0.5
        painter.setPen(QPen(QColor(theme.text_dim), wide(1), Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(x, room.top() - line), QPointF(x, room.bottom()))
        before, after = x - PAD, whole - x - PAD
        shown = geometry.metrics.elidedText(rule.text, Qt.TextElideMode.ElideRight, max(before, after))
        width = geometry.metrics.horizontalAdvance(shown) + 1
        left = x + PAD if after >= before else x - PAD - width
        painter.drawText(QRectF(left, room.top() - line, width, line), _LEFT | _MIDDLE, shown)


def _paint_cursor(
    painter: QPainter, geometry: Geometry, theme: Theme, reading: Reading, labels: Sequence[Label]
) -> None:
    room = geometry.room
    for place, role, style in (
        (reading.cursor, theme.focus, Qt.PenStyle.DashLine),
        (reading.hover, theme.border_strong, Qt.PenStyle.SolidLine),
    ):
        if place is not None:
            x = round(geometry.across(place)) + 0.5
            painter.setPen(QPen(QColor(role), wide(1), style))
            free = QRegion(room.toAlignedRect())  # names are not struck through
            for _, label in labels:
                free -= QRegion(label.toAlignedRect())
            painter.save()
            painter.setClipRegion(free)
            painter.drawLine(QPointF(x, room.top()), QPointF(x, room.bottom()))
            painter.restore()
    if reading.place is None:
        return
    for series in geometry.figure.named:
        value = series.at(reading.place)
        if not math.isnan(value):
            surface, colour = QColor(theme.surface), QColor(getattr(theme, series.role))
            hollow = series.is_hollow(reading.place)
            painter.setPen(QPen(colour if hollow else surface, wide(1.5)))
            painter.setBrush(surface if hollow else colour)
            radius = max(_RADIUS, series.mark_size / 2 + 1.5)
            paint_mark(painter, series.mark, geometry.point(reading.place, value), radius)


def _paint_legend(
    painter: QPainter, geometry: Geometry, theme: Theme, series: Series, place: QRectF, reading: Reading
) -> None:
    colour, y = QColor(getattr(theme, series.role)), place.center().y()
    paint_key(painter, series.line, series.mark, colour, QPointF(place.left(), y))
    value = math.nan if reading.place is None else series.at(reading.place)
    name = series.name if math.isnan(value) else f"{series.name}  {geometry.figure.value_text(value)}"
    room = min(place.width(), geometry.size.width() - place.left() - PAD) - LEGEND_KEY
    painter.setPen(colour)
    text = geometry.metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, room + 2)
    painter.drawText(place.adjusted(LEGEND_KEY, 0, 20, 0), _LEFT | _MIDDLE, text)


def paint_key(painter: QPainter, line: Line, mark: Mark, colour: QColor, left: QPointF) -> None:
    """The piece of line before a name, with its mark, from `left` on."""
    if line != "none":
        painter.setPen(QPen(colour, wide(2), PEN_STYLES[line]))
        painter.drawLine(left, left + QPointF(LEGEND_KEY - 6, 0))
    if mark != "none":
        painter.setPen(QPen(colour, wide(1.6)))
        painter.setBrush(colour)
        paint_mark(painter, mark, left + QPointF(LEGEND_KEY / 2 - 3, 0), _RADIUS)


def _paint_note(painter: QPainter, geometry: Geometry, theme: Theme, at: QPointF, text: str) -> None:
    painter.setPen(QPen(QColor(theme.text), wide(2)))
    painter.setBrush(QColor(theme.surface))
    painter.drawEllipse(at, wide(5), wide(5))
    width, line = geometry.metrics.horizontalAdvance(text), geometry.line
    left = at.x() + 9 if at.x() + 9 + width < geometry.size.width() else at.x() - 9 - width
    above = at.y() - line - 4
    box = QRectF(left - 3, above if above > geometry.room.top() else at.y() + 6, width + 6, line)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.drawRoundedRect(box, 3, 3)
    painter.setPen(QColor(theme.text))
    painter.drawText(box, _CENTRE | _MIDDLE, text)


def _paint_head(painter: QPainter, geometry: Geometry, theme: Theme, reading: Reading) -> None:
    """The title of y, and what is read; the title gives way, since the readout names the same."""
    metrics, title = geometry.metrics, geometry.figure.y.title
    top = QRectF(PAD, 0, geometry.size.width() - 2 * PAD, geometry.line)
    said = readout(geometry, reading.place)
    painter.setPen(QColor(theme.text_dim))
    if metrics.horizontalAdvance(said + title) + 12 < top.width():
        painter.drawText(top, _LEFT | _MIDDLE, title)
    painter.setPen(QColor(theme.text))
    painter.drawText(top, _RIGHT | _MIDDLE, metrics.elidedText(said, Qt.TextElideMode.ElideRight, top.width()))


def paint_mark(painter: QPainter, mark: Mark, at: QPointF, radius: float) -> None:
    if mark in ("none", "circle"):
        painter.drawEllipse(at, radius, radius)
    elif mark == "square":
        painter.drawRect(QRectF(at.x() - radius, at.y() - radius, 2 * radius, 2 * radius))
    else:
        r = 1.25 * radius
        corners = [(0, -r), (r, 0), (0, r), (-r, 0)] if mark == "diamond" else [(0, -r), (r, 0.8 * r), (-r, 0.8 * r)]
        painter.drawPolygon(QPolygonF([QPointF(at.x() + x, at.y() + y) for x, y in corners]))
