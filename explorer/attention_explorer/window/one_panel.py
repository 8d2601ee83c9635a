"""Docks of which one can be shown alone, and all of them put back as they were."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from PySide6.QtCore import QByteArray, Signal
from PySide6.QtGui import QResizeEvent

from attention_explorer.settings import LAYOUT_VERSION
from attention_explorer.window.docks import DockHost, grip_of


@dataclass
class _Before:
    """What the docks were when one was first shown alone, with what a session or a model has changed of them since."""

    layout: bytes
    last_raised: str
    open: tuple[str, ...]
    front: tuple[str, ...]
    has_changed: bool = False


class OnePanelHost(DockHost):
    """While one panel is shown alone, the others are told and saved as if they still stood where they were."""

    alone_changed = Signal(str)
    """The panel that is shown alone; "" once all are back."""

    alone = ""
    _before: _Before | None = None

    def show_alone(self, name: str) -> None:
        """Hide every dock but that of `name`."""
        if self._before is None:
            self._before = _Before(
                super().remembered(), self.last_raised, super().open_panels(), super().front_panels()
            )
        self.alone = name
        for other, dock in self.docks.items():
            if other != name:
                dock.hide()
        dock = self.docks[name]
        if dock.isFloating():
            dock.setFloating(False)
        for each in self.docks.values():
            grip_of(each).put_away(True)
        dock.show()
        dock.raise_()
        self.alone_changed.emit(name)

    def show_all(self) -> None:
        """Put every dock back. What a session that was opened meanwhile wants open and in front is so."""
        before, self._before, self.alone = self._before, None, ""
        if before is None:
            return
        for dock in self.docks.values():
            grip_of(dock).put_away(False)
        self.restoreState(QByteArray(before.layout), LAYOUT_VERSION)
        self.last_raised = before.last_raised
        if before.has_changed:
            super().show_panels(self.docks, before.open, before.front)
        self._name_tabs()
        self.alone_changed.emit("")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.alone:
            self._resized.stop()  # there is one column

    def set_text_scale(self, scale: float, shares_out: bool = True) -> None:
        super().set_text_scale(scale, shares_out and not self.alone)

    def raise_panel(self, name: str) -> None:
        if self._before is None:
            super().raise_panel(name)
            return
        self.last_raised = name
        if name not in self._before.open:
            self.set_open(name, True)
        self.show_alone(name)

    def open_panels(self) -> tuple[str, ...]:
        return super().open_panels() if self._before is None else self._before.open

    def front_panels(self) -> tuple[str, ...]:
        return super().front_panels() if self._before is None else self._before.front

    def remembered(self) -> bytes:
        return super().remembered() if self._before is None else self._before.layout

    def set_open(self, name: str, is_open: bool) -> None:
        if self._before is None:
            super().set_open(name, is_open)
            return
        others = tuple(other for other in self._before.open if other != name)
        self._before.open = tuple(n for n in self.docks if n in others or (n == name and is_open))
        self._before.has_changed = True
        if not is_open and name == self.alone and others:
            self.show_alone(next((front for front in self._before.front if front in others), others[0]))

    def show_panels(self, known: Container[str], opened: Container[str], front: Iterable[str]) -> None:
        if self._before is None:
            super().show_panels(known, opened, front)
            return
        was, front = self._before.open, tuple(name for name in front if name in self.docks)
        self._before.open = tuple(name for name in self.docks if name in (opened if name in known else was))
        self._before.front, self._before.has_changed = front or self._before.front, True
        if front:
            self.show_alone(front[-1])

    def remove(self, name: str) -> None:
        if self._before is not None:
            self.set_open(name, False)
        super().remove(name)
