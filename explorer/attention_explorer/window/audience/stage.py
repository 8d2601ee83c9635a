"""Which parts of the window the audience sees, and where they stand in it: panels, tokens, what a lesson says and asks.

Never a menu, a notice, a dialog, a tooltip, or the teacher's notes: those are no part of it.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QPainter, QRegion
from PySide6.QtWidgets import QWidget

from attention_explorer.window.contents import Contents

if TYPE_CHECKING:  # needed with the first lesson
    from attention_explorer.window.lesson.column import LessonColumn

_MARGIN = 12
"""Pixels about all of it."""
_BETWEEN = 10
_SMALLEST = 0.6
"""How much smaller a lesson's text may become so that all of it is seen."""


@dataclass(frozen=True, slots=True)
class Part:
    """What can be seen of a widget, in its own coordinates, and where: in those of the window."""

    widget: QWidget
    seen: QRect
    place: QRect
    scale: float = 1.0


def parts_of(contents: Contents, left_out: Container[str], column: LessonColumn | None) -> list[Part]:
    """What of the window is mirrored. Empty where none of the panels for the audience is in front."""
    window, host = contents.window(), contents.dock_host
    panels = [panel for name, panel in contents.made_panels.items() if name not in left_out]
    shown = [part for panel in panels if (part := _part(window, panel, host))]
    if not shown:
        return []
    tokens = (contents.input.strip_area, contents.input.target.area)
    parts = [*(part for widget in tokens if (part := _part(window, widget, contents))), *shown]
    return parts if column is None else [*_said(column, area_of(parts)), *parts]


def _said(column: LessonColumn, beside: QRect) -> list[Part]:
    """What a lesson says and asks, from the top on: the class sees all of it, however far the teacher has scrolled."""
    widgets = [widget for widget in (column.heading, column.text, column.question) if widget.isVisible()]
    if not widgets or not column.isVisible():
        return []
    left = column.area.mapTo(column.window(), QPoint()).x()
    high = sum(widget.height() for widget in widgets) + _BETWEEN * (len(widgets) - 1)
    scale = max(_SMALLEST, min(1.0, beside.height() / high))
    parts, top = list[Part](), float(beside.top() + _MARGIN)
    for widget in widgets:
        size = widget.size() * scale
        parts.append(Part(widget, widget.rect(), QRect(QPoint(left, round(top)), size), scale))
        top += size.height() + _BETWEEN * scale
    return parts


def part_of(widget: QWidget, within: QRect | None = None) -> Part:
    """All of a widget, or what of it lies in a part of the window."""
    corner = widget.mapTo(widget.window(), QPoint())
    place = QRect(corner, widget.size())
    place = place if within is None else place & within
    return Part(widget, place.translated(-corner), place)


def _part(window: QWidget, widget: QWidget, within: QWidget) -> Part | None:
    """What can be seen of `widget` inside of `within`; None where that is nothing, or in another window."""
    if not widget.isVisible() or widget.window() is not window or widget.visibleRegion().isEmpty():
        return None
    part = part_of(widget, QRect(within.mapTo(window, QPoint()), within.size()))
    return None if part.place.isEmpty() else part


def area_of(parts: list[Part]) -> QRect:
    """The part of the window in which they are."""
    area = QRect()
    for part in parts:
        area |= part.place
    return area.adjusted(-_MARGIN, -_MARGIN, _MARGIN, _MARGIN) if parts else area


def within(parts: list[Part], area: QRect) -> list[Part]:
    """Those that lie in an area of the window, cut to it; but one that is scaled is whole."""
    met = [(part, part.place & area) for part in parts if part.place.intersects(area)]
    return [
        replace(part, seen=place.translated(part.seen.topLeft() - part.place.topLeft()), place=place)
        if part.scale == 1
        else part
        for part, place in met
    ]


def draw(painter: QPainter, parts: list[Part]) -> None:
    """Paint them where they stand in the window; the painter may be scaled."""
    for part in parts:
        painter.save()
        painter.translate(part.place.topLeft())
        painter.scale(part.scale, part.scale)
        part.widget.render(painter, QPoint(), QRegion(part.seen), QWidget.RenderFlag.DrawChildren)
        painter.restore()
