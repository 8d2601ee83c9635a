"""A heat map to draw upon: a drag blocks cells, or allows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from PySide6.QtCore import QLineF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QCursor, QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QWidget

from explorer.theme import Theme
from explorer.widgets.heat_map.heat_map import HeatMap
from explorer.widgets.heat_map.paint import HeatMapPainter

Brush = Literal["off", "block", "allow"]

_NOWHERE = (-1, -1)
_SMALLEST_SIGN = 9.0  # pixels a cell needs before a sign in it can be told from noise
_SIGN = 9.0  # the largest sign
_HINTS: dict[Brush, str] = {"block": "drag blocks cells, Esc ends it", "allow": "drag allows cells, Esc ends it"}


class PaintableHeatMap(HeatMap):
    """A heat map with a brush. While the brush is on, a drag with the left button paints instead of panning.

    Space or Enter paints the selected cell, Escape drops an unfinished stroke, or else lays the brush down. Painted
    cells are marked at once, whatever the values say: blocked ones hatched with a cross, allowed ones with a plus.
    """

    stroke_painted = Signal(object)  # tuple of (query, key), when a stroke ends
    brush_dropped = Signal()  # Escape was pressed between strokes

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._brush: Brush = "off"
        self._stroke: dict[tuple[int, int], None] = {}  # in the order in which they were painted
        self._last = _NOWHERE
        self._painted: tuple[tuple[int, int, bool], ...] = ()  # query, key, allowed

    def set_brush(self, brush: Brush) -> None:
        """What a drag does from now on. An unfinished stroke is dropped."""
        if brush != self._brush:
            self._brush = brush
            self._drop_stroke()
            self._show_cursor()
            self.update()

    def set_painted(self, cells: Sequence[tuple[int, int, bool]]) -> None:
        """Mark cells, (query, key, allowed), as painted."""
        if tuple(cells) != self._painted:
            self._painted = tuple(cells)
            self.update()

    @property
    def stroke(self) -> tuple[tuple[int, int], ...]:
        """The cells of the unfinished stroke."""
        return tuple(self._stroke)

    def _draw_over(self, painter: QPainter, artist: HeatMapPainter) -> None:
        marks = {(query, key): allowed for query, key, allowed in self._painted}
        marks |= dict.fromkeys(self._stroke, self._brush == "allow")
        rows, columns, ratio = self.view.rows.visible(), self.view.columns.visible(), self.devicePixelRatioF()
        painter.save()
        painter.setClipRect(artist.map_rect)
        for (query, key), allowed in marks.items():
            if query in rows and key in columns:
                draw_mark(painter, artist.cell(query, key, ratio), allowed, artist.theme)
        painter.restore()

    def _hint(self) -> str:
        return _HINTS.get(self._brush) or super()._hint()

    # pointer

    def mousePressEvent(self, event: QMouseEvent) -> None:
        cell = self.view.cell_at(event.position().x(), event.position().y())
        if not self._paints() or event.button() != Qt.MouseButton.LeftButton:
            super().mousePressEvent(event)
        elif cell != _NOWHERE:
            self._extend(cell)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._stroke and event.buttons() & Qt.MouseButton.LeftButton:
            cell = self.view.cell_at(event.position().x(), event.position().y())
            if cell != _NOWHERE:
                self._extend(cell)
            self._point_at(cell)
            return
        super().mouseMoveEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._stroke and event.button() == Qt.MouseButton.LeftButton:
            self._finish()
            return
        super().mouseReleaseEvent(event)
        self._show_cursor()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if self._paints():
            self.mousePressEvent(event)  # two quick dabs
        else:
            super().mouseDoubleClickEvent(event)

    # keyboard

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, plain = event.key(), event.modifiers() == Qt.KeyboardModifier.NoModifier
        if self._brush == "off" or not plain:
            super().keyPressEvent(event)
        elif key == Qt.Key.Key_Escape and self._stroke:
            self._drop_stroke()
        elif key == Qt.Key.Key_Escape:
            self.brush_dropped.emit()
        elif key in (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.selection != _NOWHERE:
            self._extend(self.selection)
            self._finish()
        else:
            super().keyPressEvent(event)

    # the stroke

    def _paints(self) -> bool:
        return self._brush != "off" and self._shape is not None

    def _extend(self, cell: tuple[int, int]) -> None:
        """A pointer that moves fast skips cells: those on the way are painted too."""
        start = cell if self._last == _NOWHERE else self._last
        self._stroke.update(dict.fromkeys(cells_between(start, cell)))
        self._last = cell
        self.update()

    def _finish(self) -> None:
        cells = tuple(self._stroke)
        self._drop_stroke()
        self.stroke_painted.emit(cells)

    def _drop_stroke(self) -> None:
        self._stroke.clear()
        self._last = _NOWHERE
        self.update()

    def _show_cursor(self) -> None:
        if self._brush == "off":
            self.unsetCursor()
        else:
            self.setCursor(QCursor(Qt.CursorShape.CrossCursor))


def cells_between(start: tuple[int, int], end: tuple[int, int]) -> list[tuple[int, int]]:
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
