"""What lies over a panel, or a part of one, until an answer is revealed: nothing of it can be read or pointed at."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QFont, QFontInfo, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from explorer.panels.base import Place
from explorer.session.lessons import Hide
from explorer.text_size import is_read_from_afar
from explorer.theme import LIGHT, Theme
from explorer.widgets.hatching import draw_hatching
from explorer.window.contents import Contents

_FOLLOW = 100
"""ms between two looks at where a covered part is: a map may be zoomed, a panel made smaller."""

_READABLE: dict[Hide, frozenset[str]] = {
    "weight": frozenset({"map"}),
    "row": frozenset({"map"}),
    "next": frozenset({"heads", "map", "lookup", "positions", "masks", "variance"}),
    "map": frozenset(),
    "role": frozenset({"map"}),
}
"""Panels that do not say what is hidden, or of which a part is covered."""


class Cover(QWidget):
    """Over all of a widget, or a rectangle of it. A click says where it was, in the widget's coordinates."""

    pressed = Signal(QPoint)

    def __init__(self, over: QWidget, where: Callable[[], QRect] | None = None) -> None:
        super().__init__(over)
        self._over, self._where = over, where
        self._theme = LIGHT
        self.setAccessibleName("Covered until Reveal")
        self.setCursor(Qt.CursorShape.PointingHandCursor if where is not None else Qt.CursorShape.ArrowCursor)
        over.installEventFilter(self)
        self.follow()
        self.show()
        self.raise_()

    def follow(self) -> None:
        """Lie where it is to lie now."""
        area = self._over.rect() if self._where is None else self._where() & self._over.rect()
        if area != self.geometry():
            self.setGeometry(area)
        self.raise_()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.LayoutRequest):
            self.follow()
        return False

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.pressed.emit(self.mapToParent(event.position().toPoint()))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(self.rect(), QColor(self._theme.surface))
        draw_hatching(painter, self._theme, self.rect().toRectF(), 9.0)
        painter.setPen(QPen(QColor(self._theme.query), 2))
        painter.drawRect(self.rect().adjusted(1, 1, -1, -1))
        font = QFont(self.font())
        pixels = max(9, min(64, int(min(self.height(), self.width()) * 0.7)))
        if is_read_from_afar() and pixels < QFontInfo(font).pixelSize():
            return  # the hatching says it
        font.setPixelSize(pixels)
        font.setBold(True)
        painter.setFont(font)
        painter.setPen(QColor(self._theme.text))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, "?")


class Covers(QObject):
    """All that is covered in one window."""

    clicked = Signal(int)
    """The key of the column that was clicked in a covered row or map."""

    def __init__(self, contents: Contents) -> None:
        super().__init__(contents)
        self._contents = contents
        self._covers: list[Cover] = []
        self._timer = QTimer(self)
        self._timer.setInterval(_FOLLOW)
        self._timer.timeout.connect(self._follow)

    @property
    def is_on(self) -> bool:
        return bool(self._covers)

    def hide(self, what: Hide) -> None:
        """Cover it, in whichever panel it would be read."""
        self.lift()
        if not what:
            return
        for panel in self._contents.panels:
            if panel.name not in _READABLE[what]:
                self._covers.append(Cover(panel))
        if what in ("weight", "row", "map", "role"):
            self._covers.append(Cover(self._contents.input.strip))
        found = self._map_place(what) if what in ("weight", "row") else None
        if found is not None:
            cover = Cover(found[0], lambda: (self._map_place(what) or found)[1])
            cover.pressed.connect(self._on_pressed)
            self._covers.append(cover)
        for cover in self._covers:
            cover.set_theme(self._contents.theme)
        self._timer.start()

    def lift(self) -> None:
        """Uncover all."""
        self._timer.stop()
        for cover in self._covers:
            cover.hide()
            cover.deleteLater()
        self._covers = []

    def set_theme(self, theme: Theme) -> None:
        for cover in self._covers:
            cover.set_theme(theme)

    def _follow(self) -> None:
        for cover in self._covers:
            cover.follow()

    def _map_place(self, what: Hide) -> Place | None:
        """The selected cell of the map, or its row."""
        state = self._contents.session.state
        if what == "weight":
            return self._cell(state.selection.key)
        first, last = self._cell(0), None if state.site is None else self._cell(state.site.keys - 1)
        return None if first is None or last is None else (first[0], first[1] | last[1])

    def _cell(self, key: int) -> Place | None:
        """Where the map has that key of the selected row."""
        panel, state = self._contents.made_panels.get("map"), self._contents.session.state
        if panel is None or state.site is None:
            return None
        return panel.place_of("cell", state.site.ref, state.selection.head, state.selection.query, key)

    def _on_pressed(self, where: QPoint) -> None:
        site = self._contents.session.state.site
        for key in () if site is None else range(site.keys):
            place = self._cell(key)
            if place is not None and place[1].left() <= where.x() <= place[1].right() + 1:
                self.clicked.emit(key)
                return
