"""Where in the window a step points: to a widget and a rectangle of it, or nowhere while it is not on screen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from PySide6.QtCore import QEvent, QObject, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QRegion
from PySide6.QtWidgets import QWidget

from attention_explorer.look.theme import LIGHT, Theme
from attention_explorer.panels.base import Panel, Place
from attention_explorer.panels.input.panel import InputPanel
from attention_explorer.session.goals import Goal
from attention_explorer.session.state import State
from attention_explorer.session.tours import Part
from attention_explorer.widgets.scroll_areas import area_around, scroll_to
from attention_explorer.window.docks import DockHost
from attention_explorer.window.top_bar import TopBar

_AROUND = 6  # pixels between what is pointed at and the ring's outer edge
_WIDTH = 3


class Ring(QWidget):
    """Drawn above all else, and only where it is drawn: what is inside it is neither covered nor painted anew."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._home = window
        self._theme = LIGHT
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setObjectName("ring")
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def point(self, widget: QWidget | None, where: QRect) -> None:
        """Surround `where`, in the coordinates of `widget`; None hides it. In whichever window the widget is."""
        if widget is None or where.isEmpty():
            self.hide()
            return
        window = widget.window()
        area = QRect(widget.mapTo(window, where.topLeft()), where.size()).adjusted(-_AROUND, -_AROUND, _AROUND, _AROUND)
        if window is not self.parentWidget():
            self._move_to(window)
        if area != self.geometry() or self.isHidden():
            self.setGeometry(area)
            inner = self.rect().adjusted(_AROUND, _AROUND, -_AROUND, -_AROUND)
            self.setMask(QRegion(self.rect()) - QRegion(inner))
            self.show()
            self.raise_()

    def _move_to(self, window: QWidget) -> None:
        if (parent := self.parentWidget()) is not self._home and parent is not None:
            parent.removeEventFilter(self)
        self.setParent(window)
        if window is not self._home:
            window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.DeferredDelete and watched is self.parent():
            self._move_to(self._home)  # a panel that floats and fails goes with its window, and all that is in that
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colour = QColor(self._theme.query)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        area = QRectF(self.rect())
        for width, strength in ((2.0 * _AROUND, 0.22), (float(_WIDTH), 1.0)):
            colour.setAlphaF(strength)
            painter.setPen(QPen(colour, width))
            half = width / 2 if width == _WIDTH else 0.0
            painter.drawRoundedRect(area.adjusted(half, half, -half, -half), 8, 8)


_PANELS: dict[Part, str] = {"head": "heads", "cell": "map", "block": "cell"}
"""The panel that shows a part."""


class Pointed(Protocol):
    """What is pointed into: a window's contents."""

    input: InputPanel
    top_bar: TopBar
    dock_host: DockHost

    @property
    def made_panels(self) -> Mapping[str, Panel]: ...


def place_of(contents: Pointed, point: Part, goal: Goal, state: State) -> Place | None:
    """What `point` is of the place that `goal` names, or the tab of the panel that it is in while that is behind."""
    if point == "checkpoint":
        if goal.checkpoint != state.document.checkpoint:
            return contents.top_bar.menu, contents.top_bar.menu.rect()
        return _tab(contents.dock_host, goal.panel or "")
    if point == "panel":
        return _tab(contents.dock_host, goal.panel or "")
    name = _PANELS.get(point)
    panel = contents.input if name is None else contents.made_panels.get(name)
    if panel is None or (name is not None and name not in contents.dock_host.front_panels()):
        return _tab(contents.dock_host, name or "")
    query, key = (-1 if place is None else place for place in goal.cell(state))
    return panel.place_of(point, goal.site, goal.head, query, key)


def reveal(widget: QWidget, where: QRect) -> None:
    """Scroll to it, where it is in something that scrolls."""
    area = area_around(widget)
    inner = None if area is None else area.widget()
    if area is not None and inner is not None:
        middle = where.center() if inner is widget else widget.mapTo(inner, where.center())
        line = widget.fontMetrics().height()  # labels may lie over the edges
        scroll_to(area, middle, where.width() // 2 + line, where.height() // 2 + 3 * line)


def in_sight(widget: QWidget, where: QRect) -> Place | None:
    """As much of it as shows; all that does of `widget` where it is scrolled away."""
    seen = widget.visibleRegion().boundingRect()
    shown = where & seen
    if shown.isEmpty():
        return None if seen.isEmpty() else (widget, seen)
    return widget, shown


def _tab(docks: DockHost, name: str) -> Place | None:
    """The tab of a panel, as much of it as shows."""
    dock = docks.docks.get(name)
    if dock is None:
        return None
    for bar in docks.tab_bars():
        for i in range(bar.count()):
            if bar.isVisible() and bar.tabText(i) == dock.windowTitle():
                shown = bar.tabRect(i) & bar.rect()
                return bar, shown if shown.width() > 8 else bar.rect()
    return None
