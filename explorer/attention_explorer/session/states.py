"""The states that a person keeps by name beside what is on screen, and the notes."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from attention_explorer.session.kept import Kept, KeptState, named


class States(QObject):
    """What a session file holds beside what is on screen. Lives in the GUI thread."""

    changed = Signal()
    """`kept` or `current` is another."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._kept = Kept()
        self._current = -1
        self.steps = 0
        """How often a person changed something of it."""

    @property
    def kept(self) -> Kept:
        return self._kept

    @property
    def current(self) -> int:
        """The state that was gone to or kept last; -1 for none."""
        return self._current

    def open(self, kept: Kept) -> None:
        """What a file holds, in the place of all that is here."""
        self._kept, self._current = kept, -1
        self.changed.emit()

    def keep(self, state: KeptState) -> None:
        """Keep a state at the end of the list. ValueError, with a sentence, where that cannot be."""
        self._set(self._kept.with_state(state), len(self._kept.states))

    def renew(self, index: int, state: KeptState) -> None:
        """Keep another state under the name of the one at `index`."""
        self._set(self._kept.changed(index, replace(state, name=self._kept.states[index].name)), index)

    def rename(self, index: int, name: str) -> None:
        """ValueError, with a sentence, for a name that is none."""
        self._set(self._kept.changed(index, named(self._kept.states[index], name)), self._current)

    def delete(self, index: int) -> None:
        at = self._current
        self._set(self._kept.without(index), -1 if at == index else at - 1 if at > index else at)

    def move(self, index: int, to: int) -> None:
        """Put the state at `index` in another place of the list."""
        if not 0 <= to < len(self._kept.states):
            return
        at = self._kept.states[self._current] if self._current >= 0 else None
        kept = self._kept.moved(index, to)
        self._set(kept, next((i for i, state in enumerate(kept.states) if state is at), -1))

    def go_to(self, index: int) -> None:
        """Say that the state at `index` is the one on screen now."""
        if index != self._current:
            self._current = index
            self.changed.emit()

    def set_notes(self, notes: str) -> None:
        if notes != self._kept.notes:
            self._set(replace(self._kept, notes=notes), self._current)

    def _set(self, kept: Kept, current: int) -> None:
        self._kept, self._current = kept, current
        self.steps += 1
        self.changed.emit()
