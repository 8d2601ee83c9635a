"""What the pointer is over, shared by all panels. Hover is not selection: it computes and remembers nothing."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from models.protocol.values import SiteRef


@dataclass(frozen=True, slots=True)
class Pointed:
    """A cell, a token (query or key alone) or a head; -1 and None where the pointer is over no such thing."""

    query: int = -1
    key: int = -1
    site: SiteRef | None = None
    head: int = -1


NOTHING = Pointed()


class Hover(QObject):
    """Says where the pointer is, at frame rate."""

    changed = Signal(object)  # Pointed

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pointed = NOTHING
        self._is_held = False

    @property
    def pointed(self) -> Pointed:
        return self._pointed

    def hold(self, on: bool) -> None:
        """Keep what is pointed at, wherever the pointer goes, or follow it again."""
        self._is_held = on

    def point(self, pointed: Pointed) -> None:
        if pointed != self._pointed and not self._is_held:
            self._pointed = pointed
            self.changed.emit(pointed)
