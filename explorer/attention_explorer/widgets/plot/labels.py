"""Where the names of series stand in a plot: at the ends of their lines, or beside them where there is room."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from PySide6.QtCore import QRectF

from attention_explorer.widgets.plot.figure import Series
from attention_explorer.widgets.plot.geometry import PAD, Geometry

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
