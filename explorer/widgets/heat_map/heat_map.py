"""One head's weights as a map that a person walks through with pointer and keys."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget

from explorer.widgets.heat_map.paint import HINT, STILL_HINT, label_at
from explorer.widgets.heat_map.shown_map import NOWHERE, ShownMap
from explorer.widgets.heat_map.view import MapView

_KEY_ZOOM = 1.4
_ARROWS = {
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
}


class HeatMap(ShownMap):
    """A zoomable map of one value a (query, key) pair, with token labels on both axes.

    Click selects, arrows move the selection, the wheel or + and - zoom, dragging pans, 0 or a double click shows all.
    """

    cell_selected = Signal(int, int)  # query, key: chosen here, by pointer or keyboard
    hovered = Signal(int, int)  # query, key under the pointer; -1, -1 when it leaves the map

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setMouseTracking(True)
        self.setAccessibleDescription("Arrow keys move the selected cell, plus and minus zoom, 0 shows the whole map.")
        self.wheel_zooms = True
        """Off for a map in a scrolled panel, where the wheel is for the panel."""
        self._press: tuple[QPointF, MapView] | None = None
        self._dragging = False

    def _set_shape(
        self, shape: tuple[int, int] | None, row_labels: Sequence[str], column_labels: Sequence[str]
    ) -> None:
        if shape is None or shape != self._shape:
            self._press = None  # what was held is gone
        super()._set_shape(shape, row_labels, column_labels)

    def _hint(self) -> str:
        return HINT if self.wheel_zooms else STILL_HINT

    # pointer

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self._shape is None or event.button() not in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton):
            event.ignore()
            return
        self._press = (event.position(), self.view)
        self._dragging = event.button() == Qt.MouseButton.MiddleButton

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._shape is None:
            return
        if self._press is not None and event.buttons() != Qt.MouseButton.NoButton:
            start, view = self._press
            moved = event.position() - start
            if not self._dragging and view.zoom > 1:
                self._dragging = moved.manhattanLength() >= QApplication.startDragDistance()
            if self._dragging:
                self.setCursor(Qt.CursorShape.ClosedHandCursor)
                self._set_view(view.panned(moved.x(), moved.y()))
        else:
            self.setToolTip(self._tool_tip_at(event.position()))
        self._point_at(self.view.cell_at(event.position().x(), event.position().y()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        was_dragging, self._dragging = self._dragging, False
        self.unsetCursor()
        if self._press is None:
            return
        self._press = None
        if not was_dragging and event.button() == Qt.MouseButton.LeftButton:
            self._choose(self.view.cell_at(event.position().x(), event.position().y()))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.reset_view()

    def wheelEvent(self, event: QWheelEvent) -> None:
        turned = event.angleDelta().y()
        if self._shape is None or turned == 0 or not self.wheel_zooms:
            event.ignore()
            return
        where = event.position()
        self._set_view(self.view.zoomed(1.2 ** (turned / 120), where.x(), where.y()))
        self._point_at(self.view.cell_at(where.x(), where.y()))
        event.accept()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._point_at(NOWHERE)

    def _point_at(self, cell: tuple[int, int]) -> None:
        if cell != self._hover:
            self._hover = cell
            self.hovered.emit(*cell)
            self.update()

    def _choose(self, cell: tuple[int, int]) -> None:
        if cell != NOWHERE and cell != self._selection:
            self.set_selection(*cell)
            self.cell_selected.emit(*cell)

    # keyboard

    def reset_view(self) -> None:
        """Show the whole map again."""
        if self._shape is not None:
            self._set_view(self.view.zoomed(0.0, 0.0, 0.0))

    def zoom_by(self, factor: float) -> None:
        """Zoom about the selected cell, or about the middle when there is none or it is out of view."""
        if self._shape is None:
            return
        view = self.view
        query, key = self._selection
        x = view.columns.centre(key) if key in view.columns.visible() else view.columns.origin + view.columns.extent / 2
        y = view.rows.centre(query) if query in view.rows.visible() else view.rows.origin + view.rows.extent / 2
        self._set_view(view.zoomed(factor, x, y))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        modifiers = event.modifiers() & ~(Qt.KeyboardModifier.KeypadModifier | Qt.KeyboardModifier.ShiftModifier)
        key = Qt.Key(event.key())
        if self._shape is None or modifiers != Qt.KeyboardModifier.NoModifier:
            event.ignore()
        elif key in _ARROWS:
            self._move(*_ARROWS[key])
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom_by(_KEY_ZOOM)
        elif key in (Qt.Key.Key_Minus, Qt.Key.Key_Underscore):
            self.zoom_by(1 / _KEY_ZOOM)
        elif key in (Qt.Key.Key_0, Qt.Key.Key_Home):
            self.reset_view()
        else:
            event.ignore()

    def _move(self, down: int, right: int) -> None:
        assert self._shape is not None
        rows, columns = self._shape
        query, key = self._selection
        if self._selection == NOWHERE:
            cell = (0, 0)
        else:
            cell = (min(max(query + down, 0), rows - 1), min(max(key + right, 0), columns - 1))
        self._choose(cell)
        self.scroll_to_cell(*cell)

    def _tool_tip_at(self, position: QPointF) -> str:
        """The whole of a label, which its axis may elide, or what the pointer does; nothing over the map."""
        if self._frame.strip.contains(position):
            return f"Click selects, {self._hint()}"
        side, index = label_at(self._frame, self._view, position)
        if side == "row":
            return f"query {index}: {self._row_labels[index]}"
        return f"key {index}: {self._column_labels[index]}" if side == "column" else ""
