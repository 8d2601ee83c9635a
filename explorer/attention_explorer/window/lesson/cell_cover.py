"""Over cells of a head's map that are guessed: one is chosen by mouse or arrow keys, and said to the class."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QPoint, QRect, Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from attention_explorer.window.lesson.cover import Cover

_KEYS = (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Home, Qt.Key.Key_End)


class CellCover(Cover):
    """Knows the cells of a row: one of them is where the keyboard is. Enter guesses."""

    entered = Signal()
    """Enter was pressed: what is chosen is the guess."""

    def __init__(self, over: QWidget, where: Callable[[], QRect], cells: Callable[[], Sequence[QRect]]) -> None:
        """`cells` are those of the row, in the coordinates of `over`."""
        self._cells = cells
        self.at = -1
        """The key whose cell the keyboard is at; -1 before one is."""
        super().__init__(over, where)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def move_to(self, key: int) -> None:
        """Have the keyboard at a cell."""
        if key != self.at:
            self.at = key
            self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        key = self.key_at(event.position().toPoint())
        if key is not None:
            self.move_to(key)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        count, key = len(self._cells()), Qt.Key(event.key())
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.entered.emit()
        elif key in _KEYS and count:
            to = {_KEYS[0]: max(0, self.at - 1), _KEYS[1]: self.at + 1, _KEYS[2]: 0, _KEYS[3]: count - 1}
            self.move_to(min(to[key], count - 1))
        else:
            event.ignore()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    def key_at(self, where: QPoint) -> int | None:
        """The key whose cell is at a point of the cover."""
        found = (key for key, cell in enumerate(self.row()) if cell.contains(where))
        return next(found, None)

    def row(self) -> list[QRect]:
        """The cells of the row, in coordinates of the cover."""
        return [cell.translated(-self.pos()) for cell in self._cells()]

    def draw_focus(self, painter: QPainter) -> None:
        """The keyboard's cell in the accent of keys; all of the row before there is one."""
        row = self.row()
        if not row or not self.hasFocus():
            return
        area = row[self.at] if 0 <= self.at < len(row) else row[0] | row[-1]
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for colour, wide in ((self._theme.surface, 6), (self._theme.key, 3)):
            painter.setPen(QPen(QColor(colour), wide, j=Qt.PenJoinStyle.MiterJoin))
            painter.drawRect(area.adjusted(2, 2, -3, -3))


class KeyCover(CellCover):
    """Over one row of cells: that which is chosen is the guess."""

    chosen = Signal(int)
    """Its key."""

    def __init__(self, over: QWidget, where: Callable[[], QRect], cells: Callable[[], Sequence[QRect]]) -> None:
        super().__init__(over, where, cells)
        self.setAccessibleDescription("Left and Right choose a token, Enter guesses it.")

    def move_to(self, key: int) -> None:
        moved = key != self.at
        super().move_to(key)
        if moved:
            self.chosen.emit(key)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter, row = QPainter(self), self.row()
        if 0 <= self.at < len(row):
            painter.fillRect(row[self.at].adjusted(1, 1, -1, -1), QColor(self._theme.key))
        self.draw_focus(painter)


class RowCover(CellCover):
    """Over all cells. A click takes a cell of the row, or gives it back; a drag does it to all that it passes over.

    By keyboard Space takes the cell or gives it back, and Shift with an arrow does to the next what was done last.
    """

    changed = Signal(object)
    """The keys that are taken: a frozenset."""

    def __init__(self, over: QWidget, where: Callable[[], QRect], cells: Callable[[], Sequence[QRect]]) -> None:
        self.taken: frozenset[int] = frozenset()
        self._takes = True  # what a drag does
        super().__init__(over, where, cells)
        self.setAccessibleDescription(
            "Left and Right choose a cell, Space takes it or gives it back, with Shift the next too; Enter guesses."
        )

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        key = self.key_at(event.position().toPoint())
        if key is not None:
            self._toggle(key)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        key = self.key_at(event.position().toPoint())
        if key is not None and event.buttons() & Qt.MouseButton.LeftButton:
            self._set(key)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Space:
            if self.at >= 0:
                self._toggle(self.at)
            return
        before = self.at
        super().keyPressEvent(event)
        if self.at != before and event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            for key in range(min(before + 1, self.at), max(before - 1, self.at) + 1):
                self._set(key)

    def _toggle(self, key: int) -> None:
        self._takes = key not in self.taken
        self._set(key)

    def _set(self, key: int) -> None:
        taken = self.taken | {key} if self._takes else self.taken - {key}
        if taken != self.taken:
            self.taken = taken
            self.update()
            self.changed.emit(taken)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self.draw_ground(painter)
        for key, cell in enumerate(self.row()):
            inner = cell.adjusted(1, 1, -1, -1)
            is_taken = key in self.taken
            painter.fillRect(inner, QColor(self._theme.query if is_taken else self._theme.surface))
            painter.setPen(QPen(QColor(self._theme.query), 1))
            painter.drawRect(inner)
        self.draw_focus(painter)
