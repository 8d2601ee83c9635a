"""The steps of a lesson that is being made, as a list: one is chosen, and dragged to another place."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDrag, QDropEvent, QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QListWidget

_SHOWN = 6, 3
"""Rows that it is high at most, and at least."""


class StepList(QListWidget):
    """Says what is done to it; what it lists is given by `show_titles`."""

    chosen = Signal(int)
    moved = Signal(int, int)
    """A step was put in another place: from where, and where it is then."""
    deleted = Signal()
    """The chosen one is to go."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Steps of the lesson that is being made")
        self.setToolTip("Drag a step, or press Ctrl+Up or Ctrl+Down, to put it elsewhere; double-click shows it")
        self.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.currentRowChanged.connect(self._on_row)
        self._is_filling = False

    def show_titles(self, titles: Sequence[str], at: int) -> None:
        """List these, the one at `at` chosen; -1 for none. Emits nothing."""
        self._is_filling = True
        try:
            if list(titles) != [self.item(row).text() for row in range(self.count())]:
                self.clear()
                self.addItems(list(titles))
            self.setCurrentRow(at)
        finally:
            self._is_filling = False
        row = max(self.sizeHintForRow(0), self.fontMetrics().height() + 10)
        most, least = _SHOWN
        self.setFixedHeight(row * min(max(self.count(), least), most) + 2 * self.frameWidth() + 14)

    def startDrag(self, actions: Qt.DropAction) -> None:
        """As Qt does, but that after a move it takes away the row which is chosen then."""
        indexes = self.selectedIndexes()
        if indexes:
            drag = QDrag(self)
            drag.setMimeData(self.model().mimeData(indexes))
            drag.setPixmap(self.viewport().grab(self.visualRect(indexes[0])))
            drag.exec(Qt.DropAction.MoveAction)

    def dropEvent(self, event: QDropEvent) -> None:
        """Say where it was let go; whoever fills the list moves it."""
        row, at = self.currentRow(), event.position().toPoint()
        under = self.indexAt(at)
        to = under.row() if under.isValid() else self.count()
        if under.isValid() and at.y() > self.visualRect(under).center().y():
            to += 1
        event.acceptProposedAction()
        self._move(row, to - 1 if to > row else to)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        keys, row = event.modifiers(), self.currentRow()
        if event.key() == Qt.Key.Key_Delete and row >= 0:
            self.deleted.emit()
        elif keys == Qt.KeyboardModifier.ControlModifier and event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self._move(row, row + (-1 if event.key() == Qt.Key.Key_Up else 1))
        else:
            super().keyPressEvent(event)

    def _move(self, row: int, to: int) -> None:
        if 0 <= row < self.count() and 0 <= to < self.count() and to != row:
            self.moved.emit(row, to)

    def _on_row(self, row: int) -> None:
        if not self._is_filling and row >= 0:
            self.chosen.emit(row)
