"""The magnifier: what is about the mouse, larger, about the point that the mouse is at. Painted anew, not stretched."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath, QPen, QTransform

from attention_explorer.look.theme import Theme
from attention_explorer.window.audience.stage import Part, draw, within

# What is drawn over the panels while one presents: ink, spotlight, red dot, lens, black screen. Pure painting.


Tool = Literal["", "spotlight", "laser", "magnifier", "draw"]

Point = tuple[float, float]
"""Shares of the width and of the height, 0 to 1: the same place in windows of other sizes."""

Stroke = tuple[Point, ...]

INK = {False: "#b00020", True: "#ff8a80"}
"""Of strokes and the red dot, by whether the theme is dark."""

LEAST_ZOOM, FIRST_ZOOM, MOST_ZOOM, ZOOM_STEP = 1.5, 2.0, 4.0, 0.5
"""How many times as large the lens shows what is below it."""

_LENS = 0.72, 0.46
"""Of the height of the panels: the lens is so wide and so high, but never wider than they are."""

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
    zoom: float = FIRST_ZOOM  # of the lens


def paint(painter: QPainter, marks: Marks, area: QRectF, theme: Theme, lens: QImage | None = None) -> None:
    """Draw `marks` over `area`. A rim in the surface's colour keeps ink readable on whatever it lies on.

    `lens` is what the magnifier shows of the panels; ink is as much larger in it as they are.
    """
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    ink, rim = QColor(INK[theme.is_dark]), QColor(theme.surface)
    if marks.tool == "spotlight":
        _spotlight(painter, marks.pointer, area, ink)
    _ink(painter, marks, area, ink, rim)
    place = lens_rect(marks, area)
    if lens is not None and not place.isEmpty():
        painter.save()
        painter.setClipRect(place)
        painter.drawImage(place, lens)
        painter.setTransform(magnified(marks, area), combine=True)
        _ink(painter, marks, area, ink, rim)
        painter.restore()
        painter.setBrush(Qt.BrushStyle.NoBrush)
        width = max(2.0, 0.004 * area.height())
        for colour, wide in ((rim, 2.2 * width), (ink, width)):
            painter.setPen(QPen(colour, wide, j=Qt.PenJoinStyle.MiterJoin))
            painter.drawRect(place)
    if marks.tool == "laser" and marks.pointer is not None:
        centre, radius = placed(marks.pointer, area), dot_radius(area)
        painter.setPen(QPen(rim, radius / 2))
        painter.setBrush(ink)
        painter.drawEllipse(centre, radius, radius)
    painter.restore()
    if marks.is_black:
        painter.fillRect(area, QColor("black"))


def lens_rect(marks: Marks, area: QRectF) -> QRectF:
    """Where the lens is: about the mouse, and inside of `area`. Empty where none is in the hand."""
    if marks.tool != "magnifier" or marks.pointer is None:
        return QRectF()
    place = QRectF(0, 0, min(area.width(), _LENS[0] * area.height()), _LENS[1] * area.height())
    place.moveCenter(placed(marks.pointer, area))
    place.moveLeft(min(max(place.left(), area.left()), area.right() - place.width()))
    place.moveTop(min(max(place.top(), area.top()), area.bottom() - place.height()))
    return place.toAlignedRect().toRectF()


def magnified(marks: Marks, area: QRectF) -> QTransform:
    """From a place in `area` to where the lens shows it: what the mouse is at stays where it is."""
    if marks.pointer is None:
        return QTransform()
    at = placed(marks.pointer, area)
    scaled = QTransform.fromTranslate(-at.x(), -at.y()) * QTransform.fromScale(marks.zoom, marks.zoom)
    return scaled * QTransform.fromTranslate(at.x(), at.y())


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


def _ink(painter: QPainter, marks: Marks, area: QRectF, ink: QColor, rim: QColor) -> None:
    width = max(3.0, _LINE * area.height())
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for stroke in marks.strokes:
        path = path_of([placed(point, area) for point in stroke])
        for colour, wide in ((rim, 2.2 * width), (ink, width)):
            style = Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin
            painter.setPen(QPen(colour, wide, *style))
            painter.drawPath(path)


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
