"""What pointer and keys do on a map: choose, walk, zoom, pan, and paint while the brush is on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPen, QWheelEvent
from PySide6.QtWidgets import QApplication

from attention_explorer.look.theme import Theme
from attention_explorer.widgets.heat_map.painter import MapPainter
from attention_explorer.widgets.heat_map.view import NOWHERE, MapView

# The brush of a map: what was painted, the stroke that is being painted, and how both are marked.


BrushMode = Literal["off", "block", "allow", "ask"]

_SMALLEST_SIGN = 9.0  # pixels a cell needs before a sign in it can be told from noise
_SIGN = 9.0  # the largest sign
_HINTS: dict[BrushMode, str] = {
    "block": "drag blocks cells, Esc ends it",
    "allow": "drag allows cells, Esc ends it",
    "ask": "drag paints where a head may look, Esc ends it",
}


class Brush:
    """While it is on, a drag paints cells: a stroke is unfinished until the button is released."""

    def __init__(self) -> None:
        self.mode: BrushMode = "off"
        self.painted: tuple[tuple[int, int, bool], ...] = ()
        """Cells that are marked, (query, key, allowed)."""
        self._stroke: dict[tuple[int, int], None] = {}  # in the order in which they were painted
        self._last: tuple[int, int] | None = None

    @property
    def is_on(self) -> bool:
        return self.mode != "off"

    @property
    def stroke(self) -> tuple[tuple[int, int], ...]:
        """The cells of the unfinished stroke."""
        return tuple(self._stroke)

    @property
    def hint(self) -> str:
        """What a drag does; "" while the brush is off."""
        return _HINTS.get(self.mode, "")

    def set_mode(self, mode: BrushMode) -> None:
        """What a drag does from now on. An unfinished stroke is dropped."""
        self.mode = mode
        self.drop()

    def extend(self, cell: tuple[int, int]) -> None:
        """Paint a cell. A pointer that moves fast skips cells: those on the way are painted too."""
        self._stroke.update(dict.fromkeys(cells_between(self._last or cell, cell)))
        self._last = cell

    def drop(self) -> None:
        """Forget the unfinished stroke."""
        self._stroke.clear()
        self._last = None

    def draw(self, painter: QPainter, artist: MapPainter) -> None:
        """Mark what is painted: blocked cells hatched with a cross, allowed ones with a plus."""
        marks = {(query, key): allowed for query, key, allowed in self.painted}
        marks |= dict.fromkeys(self._stroke, self.mode == "allow")
        if not marks:
            return
        rows, columns = artist.view.rows.visible(), artist.view.columns.visible()
        painter.save()
        painter.setClipRect(artist.map_rect)
        for (query, key), allowed in marks.items():
            if query in rows and key in columns:
                draw_mark(painter, artist.cell(query, key), allowed, artist.theme)
        painter.restore()


def cells_between(start: tuple[int, int], end: tuple[int, int]) -> Sequence[tuple[int, int]]:
    """The cells on the straight way from `start` to `end`, both included, each touching the next."""
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]))
    if steps == 0:
        return [end]
    return [
        (round(start[0] + (end[0] - start[0]) * i / steps), round(start[1] + (end[1] - start[1]) * i / steps))
        for i in range(steps + 1)
    ]


def draw_mark(painter: QPainter, rect: QRectF, allowed: bool, theme: Theme) -> None:
    """A blocked cell loses its colour and gets a cross; an allowed one keeps it, in a frame with a plus."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    if not allowed:
        painter.fillRect(rect, QColor(theme.surface))
        painter.fillRect(rect, QColor(theme.hatch))
    shown = min(rect.width(), rect.height())
    if shown < _SMALLEST_SIGN:
        return
    middle, reach = rect.center(), min(_SIGN, shown * 0.5) / 2
    arms = (
        (QLineF(-reach, 0, reach, 0), QLineF(0, -reach, 0, reach))
        if allowed
        else (QLineF(-reach, -reach, reach, reach), QLineF(-reach, reach, reach, -reach))
    )
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    # on any colour of the map a pale sign needs a dark halo; on the blocked cell's own ground it does not
    pens = ((QColor(0, 0, 0, 150), 4.0), (QColor(255, 255, 255), 2.0)) if allowed else ((QColor(theme.text), 1.6),)
    for colour, width in pens:
        painter.setPen(QPen(colour, width, c=Qt.PenCapStyle.RoundCap))
        for arm in arms:
            painter.drawLine(arm.translated(middle))


HINT = "wheel zooms, drag pans, 0 shows all"
STILL_HINT = "+ and − zoom, 0 shows all"

_KEY_ZOOM = 1.4
_WHEEL_ZOOM = 1.2  # a notch of 120 units
_ARROWS = {
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
}
_PAINTING_KEYS = (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter)


class Surface(Protocol):
    """The map that is walked through."""

    wheel_zooms: bool

    @property
    def view(self) -> MapView: ...
    @property
    def selection(self) -> tuple[int, int]: ...
    def set_view(self, view: MapView) -> None: ...
    def point_at(self, cell: tuple[int, int]) -> None: ...
    def choose(self, cell: tuple[int, int]) -> None: ...
    def move_selection(self, down: int, right: int) -> None: ...
    def zoom_by(self, factor: float) -> None: ...
    def reset_view(self) -> None: ...
    def finish_stroke(self) -> None: ...
    def lay_down_brush(self) -> None: ...
    def tool_tip_at(self, position: QPointF) -> str: ...
    def setToolTip(self, text: str, /) -> None: ...
    def setCursor(self, cursor: Qt.CursorShape, /) -> None: ...
    def unsetCursor(self) -> None: ...
    def update(self) -> None: ...


class Gestures:
    """Takes the events of a map that shows something, and remembers what is held."""

    def __init__(self, surface: Surface, brush: Brush) -> None:
        self._map = surface
        self._brush = brush
        self._press: tuple[QPointF, MapView] | None = None
        self._dragging = False

    @property
    def hint(self) -> str:
        """What the pointer and the keys do, in a few words."""
        return self._brush.hint or (HINT if self._map.wheel_zooms else STILL_HINT)

    def let_go(self) -> None:
        """What was held is gone."""
        self._press = None

    def show_cursor(self) -> None:
        if self._brush.is_on:
            self._map.setCursor(Qt.CursorShape.CrossCursor)
        else:
            self._map.unsetCursor()

    def press(self, event: QMouseEvent) -> None:
        if self._brush.is_on and event.button() == Qt.MouseButton.LeftButton:
            self._paint(self._cell_at(event.position()))
        elif event.button() in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton):
            self._press = (event.position(), self._map.view)
            self._dragging = event.button() == Qt.MouseButton.MiddleButton
        else:
            event.ignore()

    def move(self, event: QMouseEvent) -> None:
        if self._brush.stroke and event.buttons() & Qt.MouseButton.LeftButton:
            self._paint(self._cell_at(event.position()))
        elif self._press is not None and event.buttons() != Qt.MouseButton.NoButton:
            self._drag(event.position(), *self._press)
        else:
            self._map.setToolTip(self._map.tool_tip_at(event.position()))
        self._map.point_at(self._cell_at(event.position()))

    def release(self, event: QMouseEvent) -> None:
        if self._brush.stroke and event.button() == Qt.MouseButton.LeftButton:
            self._map.finish_stroke()
            return
        was_dragging, self._dragging = self._dragging, False
        was_pressed, self._press = self._press is not None, None
        self.show_cursor()
        if was_pressed and not was_dragging and event.button() == Qt.MouseButton.LeftButton:
            self._map.choose(self._cell_at(event.position()))

    def double_click(self, event: QMouseEvent) -> None:
        if self._brush.is_on:
            self.press(event)  # two quick dabs
        elif event.button() == Qt.MouseButton.LeftButton:
            self._map.reset_view()

    def wheel(self, event: QWheelEvent) -> None:
        turned = event.angleDelta().y()
        if turned == 0 or not self._map.wheel_zooms:
            event.ignore()
            return
        where = event.position()
        self._map.set_view(self._map.view.zoomed(_WHEEL_ZOOM ** (turned / 120), where.x(), where.y()))
        self._map.point_at(self._cell_at(where))
        event.accept()

    def key(self, event: QKeyEvent) -> None:
        if not (self._takes_brush_key(event) or self._takes_map_key(event)):
            event.ignore()

    def _takes_brush_key(self, event: QKeyEvent) -> bool:
        key = Qt.Key(event.key())
        if not self._brush.is_on or event.modifiers() != Qt.KeyboardModifier.NoModifier:
            return False
        if key == Qt.Key.Key_Escape and self._brush.stroke:
            self._brush.drop()
            self._map.update()
        elif key == Qt.Key.Key_Escape:
            self._map.lay_down_brush()
        elif key in _PAINTING_KEYS and self._map.selection != NOWHERE:
            self._paint(self._map.selection)
            self._map.finish_stroke()
        else:
            return False
        return True

    def _takes_map_key(self, event: QKeyEvent) -> bool:
        modifiers = event.modifiers() & ~(Qt.KeyboardModifier.KeypadModifier | Qt.KeyboardModifier.ShiftModifier)
        key = Qt.Key(event.key())
        if modifiers != Qt.KeyboardModifier.NoModifier:
            return False
        if key in _ARROWS:
            self._map.move_selection(*_ARROWS[key])
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self._map.zoom_by(_KEY_ZOOM)
        elif key in (Qt.Key.Key_Minus, Qt.Key.Key_Underscore):
            self._map.zoom_by(1 / _KEY_ZOOM)
        elif key in (Qt.Key.Key_0, Qt.Key.Key_Home):
            self._map.reset_view()
        else:
            return False
        return True

    def _cell_at(self, position: QPointF) -> tuple[int, int]:
        return self._map.view.cell_at(position.x(), position.y())

    def _drag(self, position: QPointF, start: QPointF, view: MapView) -> None:
        moved = position - start
        if not self._dragging and view.zoom > 1:
            self._dragging = moved.manhattanLength() >= QApplication.startDragDistance()
        if self._dragging:
            self._map.setCursor(Qt.CursorShape.ClosedHandCursor)
            self._map.set_view(view.panned(moved.x(), moved.y()))

    def _paint(self, cell: tuple[int, int]) -> None:
        if cell != NOWHERE:
            self._brush.extend(cell)
            self._map.update()
