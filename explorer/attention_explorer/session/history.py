"""What undo goes back to: the documents before each step, bounded in number and in text."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from attention_explorer.session.state import Document

MERGE_SECONDS = 1.0
STEPS = 500
CHARACTERS = 8_000_000
NODES = 2_000_000  # of trees of branches: references, since trees share their nodes


@dataclass(slots=True)
class _Step:
    document: Document  # before it
    passage: int = 0


class History:
    """Past and future of one document. The present one is the caller's.

    Steps with the same `merge` key, each within `MERGE_SECONDS` of the one before, are taken back together.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._past: deque[_Step] = deque(maxlen=STEPS)
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
            self._past.append(_Step(before))
            self._forget_beyond_limit()

    def record_passage(self, before: Document, passage: int, again: Callable[[Document], Document]) -> None:
        """A step was made that belongs to `passage`, all of which is taken back at once, however long it takes.

        What was done between two steps of a passage stays a step of its own: `again` does to the documents in between
        what was done to the present one, so that taking back what came between leaves the passage whole.
        """
        self._merge = ""
        self._future.clear()
        place = next((i for i, step in enumerate(self._past) if step.passage == passage), None)
        if place is None:
            self._past.append(_Step(before, passage))
            self._forget_beyond_limit()
            return
        for i in range(place + 1, len(self._past)):
            self._past[i].document = again(self._past[i].document)

    def amend(self, again: Callable[[Document], Document]) -> None:
        """Do to every document what was done to the present one, so that no step leads back to what was refused."""
        for step in self._past:
            step.document = again(step.document)
        self._future = [again(document) for document in self._future]

    def settle(self, present: Document, seen: Callable[[Document], Document] = lambda document: document) -> None:
        """The present changed without a step, or a step led back: drop steps that would now lead nowhere.

        `seen` leaves out of a document what is none of undo's business.
        """
        while self._past and seen(self._past[-1].document) == seen(present):
            self._past.pop()
            self._merge = ""
        while self._future and seen(self._future[-1]) == seen(present):
            self._future.pop()

    def undo(self, present: Document) -> Document | None:
        """The document before the last step, None where there is none."""
        if not self._past:
            return None
        self._merge = ""
        self._future.append(present)
        return self._past.pop().document

    def redo(self, present: Document) -> Document | None:
        """The document that the last undo left, None where there is none."""
        if not self._future:
            return None
        self._merge = ""
        self._past.append(_Step(present))
        return self._future.pop()

    def _forget_beyond_limit(self) -> None:
        # Steps that leave the text alone share one string, which costs its memory once.
        while self._past and (self._characters() > CHARACTERS or self._nodes() > NODES):
            self._past.popleft()

    def _characters(self) -> int:
        documents = (document for step in self._past for document in _with_b(step.document))
        texts = (text for document in documents for text in _texts(document))
        return sum({id(text): len(text) for text in texts}.values())

    def _nodes(self) -> int:
        documents = (document for step in self._past for document in _with_b(step.document))
        trees = (writing.branches.nodes for document in documents for writing in document.writings)
        return sum({id(nodes): len(nodes) for nodes in trees}.values())


def _with_b(document: Document) -> tuple[Document, ...]:
    return (document,) if document.compared is None else (document, document.compared.document)


def _texts(document: Document) -> Iterator[str]:
    yield document.text
    for turn in document.turns:
        yield turn.text
    for other in (*document.before, *document.after):
        yield from (text for text in (other.text, other.second, other.target) if text)
