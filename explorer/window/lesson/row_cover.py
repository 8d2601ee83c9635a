"""Over a head's map: its cells are hidden, and those of one row are clicked to say which keys its token attends to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QPoint, QRect, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from explorer.window.lesson.cover import Cover


class RowCover(Cover):
    """A click takes a cell of the row, or gives it back; a drag does the same to all that it passes over."""

    changed = Signal(object)
    """The keys that are taken: a frozenset."""

    def __init__(self, over: QWidget, where: Callable[[], QRect], cells: Callable[[], Sequence[QRect]]) -> None:
        """`cells` are those of the row, in the coordinates of `over`."""
        self._cells = cells
        self.taken: frozenset[int] = frozenset()
        self._takes = True  # what a drag does
        super().__init__(over, where)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        key = self._key_at(event.position().toPoint())
        if key is not None:
            self._takes = key not in self.taken
            self._set(key)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        key = self._key_at(event.position().toPoint())
        if key is not None and event.buttons() & Qt.MouseButton.LeftButton:
            self._set(key)

    def _set(self, key: int) -> None:
        taken = self.taken | {key} if self._takes else self.taken - {key}
        if taken != self.taken:
            self.taken = taken
            self.update()
            self.changed.emit(taken)

    def _key_at(self, where: QPoint) -> int | None:
        found = (key for key, cell in enumerate(self._row()) if cell.contains(where))
        return next(found, None)

    def _row(self) -> list[QRect]:
        """The cells of the row, in coordinates of the cover."""
        return [cell.translated(-self.pos()) for cell in self._cells()]

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self.draw_ground(painter)
        for key, cell in enumerate(self._row()):
            inner = cell.adjusted(1, 1, -1, -1)
            is_taken = key in self.taken
            painter.fillRect(inner, QColor(self._theme.query if is_taken else self._theme.surface))
            painter.setPen(QPen(QColor(self._theme.query), 1))
            painter.drawRect(inner)
