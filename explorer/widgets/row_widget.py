"""What lists of painted rows share: the row under the pointer, its tooltip, a click, and walking with the keyboard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QWidget

from explorer.widgets.themed import ThemedWidget


class Row(Protocol):
    @property
    def tooltip(self) -> str: ...


class RowWidget(ThemedWidget):
    """Subclasses keep `_rows`, say where each lies, and what choosing one does."""

    def __init__(self, accessible_name: str, parent: QWidget | None = None) -> None:
        super().__init__(accessible_name, parent)
        self.setMouseTracking(True)
        self._rows: Sequence[Row] = ()
        self._hover = -1
        self._current = -1  # the row that the keyboard is on

    # for subclasses

    def row_rect(self, row: int) -> QRectF:
        """Where a row lies."""
        raise NotImplementedError

    def _choose(self, row: int) -> None:
        """A row was clicked, or Enter pressed on it."""
        raise NotImplementedError

    # pointer and keyboard

    def _row_at(self, position: QPointF) -> int:
        return next((i for i in range(len(self._rows)) if self.row_rect(i).contains(position)), -1)

    def _highlight(self, row: int) -> None:
        if row != self._hover:
            self._hover = row
            self.setToolTip(self._rows[row].tooltip if row >= 0 else "")
            self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._highlight(self._row_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._highlight(-1)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        row = self._row_at(event.position())
        if row < 0 or event.button() != Qt.MouseButton.LeftButton:
            event.ignore()
            return
        self._current = row
        self.update()
        self._choose(row)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if self._rows and key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            step = 1 if key == Qt.Key.Key_Down else -1
            self._current = min(max(self._current + step, 0), len(self._rows) - 1)
            self._keep_visible(self.row_rect(self._current))
            self.update()
        elif self._rows and key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and self._current >= 0:
            self._choose(self._current)
        else:
            event.ignore()
