"""What widgets of painted items along one axis share: hovering, tooltips, clicks, and keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QWidget

from attention_explorer.widgets.themed import ThemedWidget

_STEPS = {
    Qt.Orientation.Vertical: {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1},
    Qt.Orientation.Horizontal: {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1},
}
_CHOOSING = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)


class ItemsWidget(ThemedWidget):
    """Items are counted from 0; -1 stands for none.

    A subclass says how many there are, where each lies and what choosing one does. A click chooses. The arrow keys
    along `axis`, Home and End choose too; without `keys_choose` they only move, and Enter or Space chooses.
    """

    axis: ClassVar[Qt.Orientation] = Qt.Orientation.Vertical
    keys_choose: ClassVar[bool] = True

    hovered = Signal(int)
    """The item that the pointer is on now."""

    def __init__(self, accessible_name: str, parent: QWidget | None = None) -> None:
        super().__init__(accessible_name, parent)
        self.setMouseTracking(True)
        self._hover = -1
        self._current = -1  # the chosen item, or the one that the keyboard is on

    # for subclasses

    def item_count(self) -> int:
        raise NotImplementedError

    def item_rect(self, item: int) -> QRectF:
        """Where an item lies."""
        raise NotImplementedError

    def tooltip_of(self, item: int) -> str:
        return ""

    def acts(self, item: int) -> bool:
        """Whether choosing an item does anything. One that does not is not lit where the pointer is."""
        return True

    def _choose(self, item: int) -> None:
        """An item was chosen by a person. `_current` is still what it was."""
        raise NotImplementedError

    def _item_at(self, position: QPointF) -> int:
        return next((i for i in range(self.item_count()) if self.item_rect(i).contains(position)), -1)

    def _target(self, key: Qt.Key) -> int | None:
        """The item that a key leads to; None for a key that leads nowhere."""
        last = self.item_count() - 1
        step = _STEPS[self.axis].get(key)
        wanted = {Qt.Key.Key_Home: 0, Qt.Key.Key_End: last}.get(key) if step is None else self._current + step
        return None if wanted is None or last < 0 else min(max(wanted, 0), last)

    def _keep_items(self) -> None:
        """There are other items now: forget those that are gone."""
        count = self.item_count()
        self._hover = self._hover if self._hover < count else -1
        self.setToolTip(self.tooltip_of(self._hover) if self._hover >= 0 else "")
        self._current = self._current if self._current < count else -1

    # pointer and keyboard

    def set_hover(self, item: int) -> None:
        """Highlight an item that is pointed at elsewhere; emits nothing."""
        item = item if 0 <= item < self.item_count() else -1
        if item != self._hover:
            self._hover = item
            self.update()

    def _highlight(self, item: int) -> None:
        if item != self._hover:
            self._hover = item
            self.setToolTip(self.tooltip_of(item) if item >= 0 else "")
            self.update()
            self.hovered.emit(item)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._highlight(self._item_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._highlight(-1)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        item = self._item_at(event.position())
        if item < 0 or event.button() != Qt.MouseButton.LeftButton or not self.acts(item):
            event.ignore()
            return
        if not self.keys_choose:
            self._move(item)
        self._choose(item)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        target = self._target(key)
        if target is not None and self.keys_choose:
            if target != self._current and self.acts(target):
                self._choose(target)
            self._keep_visible(self.item_rect(target))
        elif target is not None:
            self._move(target)
            self._keep_visible(self.item_rect(target))
        elif not self.keys_choose and key in _CHOOSING and self._current >= 0 and self.acts(self._current):
            self._choose(self._current)
        else:
            event.ignore()

    def _move(self, item: int) -> None:
        self._current = item
        self.update()


class Row(Protocol):
    @property
    def tooltip(self) -> str: ...


class RowsWidget(ItemsWidget):
    """Items that are frozen rows with a tooltip. A subclass keeps them in `_rows` and says where each lies."""

    def __init__(self, accessible_name: str, parent: QWidget | None = None) -> None:
        super().__init__(accessible_name, parent)
        self._rows: Sequence[Row] = ()

    def row_rect(self, row: int) -> QRectF:
        """Where a row lies."""
        raise NotImplementedError

    def item_count(self) -> int:
        return len(self._rows)

    def item_rect(self, item: int) -> QRectF:
        return self.row_rect(item)

    def tooltip_of(self, item: int) -> str:
        return self._rows[item].tooltip
