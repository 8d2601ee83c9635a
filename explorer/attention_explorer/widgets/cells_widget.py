"""What widgets of painted cells in rows and columns share: choosing, pointing, the menu of a cell, and keys."""

from __future__ import annotations

from itertools import product

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QMouseEvent, QMoveEvent
from PySide6.QtWidgets import QWidget

from attention_explorer.widgets.themed import ThemedWidget

Cell = tuple[int, int]
"""Row and column, counted from 0."""
NOWHERE: Cell = (-1, -1)

_ARROWS = {
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
}


class CellsWidget(ThemedWidget):
    """A click or the arrow keys choose a cell.

    A subclass says which cells there are, where each lies, and what pointing at one tells. Inside a QScrollArea it may
    paint labels at the edges of what can be seen.
    """

    cell_selected = Signal(int, int)  # row, column, by a person
    hovered = Signal(int, int)  # row, column; -1, -1 off the cells
    menu_wanted = Signal(int, int, QPoint)  # row, column, where on the screen

    def __init__(self, accessible_name: str, parent: QWidget | None = None) -> None:
        super().__init__(accessible_name, parent)
        self.setMouseTracking(True)
        self._selection = NOWHERE
        self._hover = NOWHERE

    # for subclasses

    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        raise NotImplementedError

    def cell_rect(self, row: int, column: int) -> QRectF:
        """Where a cell lies."""
        raise NotImplementedError

    def _cell_at(self, position: QPointF) -> Cell:
        """What lies at a position, also where it cannot be chosen; (-1, -1) for nothing."""
        raise NotImplementedError

    def _holds(self, cell: Cell) -> bool:
        """Whether there is such a cell to choose."""
        rows, columns = self.shape()
        return 0 <= cell[0] < rows and 0 <= cell[1] < columns

    def _with_labels(self, rect: QRectF) -> QRectF:
        """A cell's rectangle, with the room at its sides that labels would cover."""
        return rect

    def tooltip_of(self, cell: Cell) -> str:
        """What pointing there tells."""
        return ""

    # what is framed

    @property
    def selection(self) -> Cell:
        """The selected (row, column), or (-1, -1)."""
        return self._selection

    def set_selection(self, row: int, column: int) -> None:
        """Frame a cell; -1, -1 for none. Emits nothing."""
        if self._held((row, column)) != self._selection:
            self._selection = self._held((row, column))
            self.update()

    def set_hover(self, row: int, column: int) -> None:
        """Frame a cell that is pointed at elsewhere; -1, -1 for none. Emits nothing."""
        if self._held((row, column)) != self._hover:
            self._hover = self._held((row, column))
            self.update()

    def _held(self, cell: Cell) -> Cell:
        return cell if self._holds(cell) else NOWHERE

    def _keep_cells(self) -> None:
        """There are other cells now: forget those that are gone."""
        self._selection, self._hover = self._held(self._selection), self._held(self._hover)
        self.setToolTip(self.tooltip_of(self._hover) if self._hover != NOWHERE else "")

    def moveEvent(self, event: QMoveEvent) -> None:
        super().moveEvent(event)
        self.update()  # scrolled: labels keep to what can be seen

    # pointer and keyboard

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        cell = self._cell_at(event.position())
        self.setToolTip(self.tooltip_of(cell))
        self._point_at(cell)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.setToolTip("")
        self._point_at(NOWHERE)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._choose(self._cell_at(event.position()))
        else:
            event.ignore()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        by_mouse = event.reason() == QContextMenuEvent.Reason.Mouse
        cell = self._held(self._cell_at(QPointF(event.pos()))) if by_mouse else self._selection
        if cell != NOWHERE:
            where = event.globalPos() if by_mouse else self.mapToGlobal(self.cell_rect(*cell).center().toPoint())
            self.menu_wanted.emit(*cell, where)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        step = _ARROWS.get(Qt.Key(event.key()))
        rows, columns = self.shape()
        if not rows or step is None or modifiers != Qt.KeyboardModifier.NoModifier:
            event.ignore()
            return
        row, column = self._selection
        if self._selection == NOWHERE:
            cell = next(filter(self._holds, product(range(rows), range(columns))), NOWHERE)
        else:
            cell = (min(max(row + step[0], 0), rows - 1), min(max(column + step[1], 0), columns - 1))
        if self._holds(cell):
            self._choose(cell)
            self._keep_visible(self._with_labels(self.cell_rect(*cell)))

    def _point_at(self, cell: Cell) -> None:
        if self._held(cell) != self._hover:
            self.set_hover(*cell)
            self.hovered.emit(*self._hover)

    def _choose(self, cell: Cell) -> None:
        if self._held(cell) not in (NOWHERE, self._selection):
            self.set_selection(*cell)
            self.cell_selected.emit(*cell)
