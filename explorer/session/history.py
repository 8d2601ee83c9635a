"""What undo goes back to: the documents before each step, bounded in number and in text."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from explorer.session.state import Document

MERGE_SECONDS = 1.0
STEPS = 500
CHARACTERS = 8_000_000


class History:
    """Past and future of one document. The present one is the caller's.

    Steps with the same `merge` key, each within `MERGE_SECONDS` of the one before, are taken back together.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._past: deque[Document] = deque(maxlen=STEPS)
        self._future: list[Document] = []
        self._merge = ""
        self._recorded_at = 0.0

    @property
    def can_undo(self) -> bool:
        return bool(self._past)

    @property
    def can_redo(self) -> bool:
        return bool(self._future)

    def record(self, before: Document, merge: str = "") -> None:
        """A step was made from `before`; what had been undone is forgotten. An empty `merge` joins no other step."""
        now = self._clock()
        joins = bool(merge) and merge == self._merge and now - self._recorded_at <= MERGE_SECONDS
        self._merge, self._recorded_at = merge, now
        self._future.clear()
        if not joins:
            self._past.append(before)
            self._forget_beyond_limit()

    def settle(self, present: Document) -> None:
        """The present changed without a step, or a step led back: drop steps that would now lead nowhere."""
        while self._past and self._past[-1] == present:
            self._past.pop()
            self._merge = ""
        while self._future and self._future[-1] == present:
            self._future.pop()

    def undo(self, present: Document) -> Document | None:
        """The document before the last step, None where there is none."""
        return self._walk(self._past, self._future, present)

    def redo(self, present: Document) -> Document | None:
        """The document that the last undo left, None where there is none."""
        return self._walk(self._future, self._past, present)

    def _walk(
        self,
        source: deque[Document] | list[Document],
        target: deque[Document] | list[Document],
        present: Document,
    ) -> Document | None:
        if not source:
            return None
        self._merge = ""
        target.append(present)
        return source.pop()

    def _forget_beyond_limit(self) -> None:
        # Steps that leave the text alone share one string, which costs its memory once.
        while sum({id(d.text): len(d.text) for d in self._past}.values()) > CHARACTERS:
            self._past.popleft()
