"""What is drawn over the panels while one presents: ink, a spotlight, a red dot, a black screen. Pure painting."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

from explorer.theme import Theme

Tool = Literal["", "spotlight", "laser", "draw"]

Point = tuple[float, float]
"""Shares of the width and of the height, 0 to 1: the same place in windows of other sizes."""

Stroke = tuple[Point, ...]

INK = {False: "#b00020", True: "#ff8a80"}
"""Of strokes and the red dot, by whether the theme is dark."""

_DIMMED = 0.7
_SPOT, _DOT, _LINE = 0.17, 0.012, 0.006
"""Of the height: radii of the spotlight and of the red dot, width of a stroke."""


@dataclass(frozen=True, slots=True)
class Marks:
    """All that is drawn over the panels now."""

    tool: Tool = ""
    pointer: Point | None = None  # where the mouse is; None outside
    strokes: tuple[Stroke, ...] = ()
    is_black: bool = False


def paint(painter: QPainter, marks: Marks, area: QRectF, theme: Theme) -> None:
    """Draw `marks` over `area`. A rim in the surface's colour keeps ink readable on whatever it lies on."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    ink, rim = QColor(INK[theme.is_dark]), QColor(theme.surface)
    if marks.tool == "spotlight":
        _spotlight(painter, marks.pointer, area, ink)
    width = max(3.0, _LINE * area.height())
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for stroke in marks.strokes:
        path = path_of([placed(point, area) for point in stroke])
        for colour, wide in ((rim, 2.2 * width), (ink, width)):
            style = Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin
            painter.setPen(QPen(colour, wide, *style))
            painter.drawPath(path)
    if marks.tool == "laser" and marks.pointer is not None:
        centre, radius = placed(marks.pointer, area), dot_radius(area)
        painter.setPen(QPen(rim, radius / 2))
        painter.setBrush(ink)
        painter.drawEllipse(centre, radius, radius)
    painter.restore()
    if marks.is_black:
        painter.fillRect(area, QColor("black"))


def placed(point: Point, area: QRectF) -> QPointF:
    return QPointF(area.x() + point[0] * area.width(), area.y() + point[1] * area.height())


def share(where: QPointF, area: QRectF) -> Point | None:
    """The place of a point in `area` as shares of it; None outside."""
    if not area.contains(where):
        return None
    return (where.x() - area.x()) / area.width(), (where.y() - area.y()) / area.height()


def dot_radius(area: QRectF) -> float:
    return max(5.0, _DOT * area.height())


def spot_radius(area: QRectF) -> float:
    return _SPOT * area.height()


def path_of(points: list[QPointF]) -> QPainterPath:
    """A smooth line through the points: curves from middle to middle, each bent towards the point between."""
    path = QPainterPath(points[0])
    if len(points) == 1:
        path.lineTo(points[0] + QPointF(0.01, 0))  # a dab
    for at, after in pairwise(points[1:]):
        path.quadTo(at, (at + after) / 2)
    if len(points) > 1:
        path.lineTo(points[-1])
    return path


def _spotlight(painter: QPainter, pointer: Point | None, area: QRectF, rim: QColor) -> None:
    dim = QPainterPath()
    dim.addRect(area)
    shade = QColor("black")
    shade.setAlphaF(_DIMMED)
    if pointer is None:
        painter.fillPath(dim, shade)
        return
    circle = QPainterPath()
    circle.addEllipse(placed(pointer, area), spot_radius(area), spot_radius(area))
    painter.fillPath(dim - circle, shade)
    painter.setPen(QPen(rim, max(2.0, 0.003 * area.height())))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setClipRect(area)
    painter.drawPath(circle)
