"""What the pointer is over, shared by all panels. Hover is not selection: it computes and remembers nothing."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_models.protocol.values import SiteRef


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
    ended = Signal()
    """What the pointer rests on is another thing now: nothing is pointed at until it moves."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pointed = NOTHING
        self._is_held = False

    @property
    def pointed(self) -> Pointed:
        return self._pointed

    def end_with(self, session: Session) -> None:
        """Let whatever is pointed at end with its checkpoint, run, selection and state B."""
        session.changed.connect(self._on_changed)

    def _on_changed(self, old: State, new: State) -> None:
        was, now = old.results, new.results
        is_same = was.loaded is now.loaded and was.ran is now.ran and old.selection == new.selection
        if not is_same or old.document.compared is not new.document.compared:
            self.end()

    def end(self) -> None:
        """Point at nothing, also where something is held, until the pointer moves."""
        self.ended.emit()
        if self._pointed != NOTHING:
            self._pointed = NOTHING
            self.changed.emit(NOTHING)

    def hold(self, on: bool) -> None:
        """Keep what is pointed at, wherever the pointer goes, or follow it again."""
        self._is_held = on

    def point(self, pointed: Pointed) -> None:
        if pointed != self._pointed and not self._is_held:
            self._pointed = pointed
            self.changed.emit(pointed)
