"""What a panel reads of the state while it draws, asks and prints, beside what it says that it reads.

`recorded` watches `State`, `Document` and `Results` themselves, so that panels work on the very objects that they are
given. What it cannot see is what a panel has read before and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import cached_property, wraps
from typing import Any

from attention_explorer.panels import base
from attention_explorer.panels.base import Panel
from attention_explorer.session.results import Results
from attention_explorer.session.session import Session
from attention_explorer.session.state import Document, State

Read = str | type
"""A name of the state, "selection" or "document.view", or a kind of answer."""


def _names(kind: type) -> frozenset[str]:
    """What of it is a value: fields and what is worked out of them."""
    derived = {name for name, value in vars(kind).items() if isinstance(value, property | cached_property)}
    return frozenset(derived | {field.name for field in fields(kind)})


_OF_STATE = _names(State) - {"results", "document", "live", "ran"}
_OF_DOCUMENT = _names(Document)


class Reading:
    """What was read by which panel since this was made."""

    def __init__(self) -> None:
        self.of: dict[type[Panel], set[Read]] = {}
        self._stack: list[type[Panel] | None] = []  # the panel that draws; None while something else is at work in it
        self._documents: set[int] = set()  # those of states: that of B is read as part of what is compared
        self._inside = False

    def note(self, read: Read) -> None:
        if self._stack and self._stack[-1] is not None and not self._inside:
            self.of.setdefault(self._stack[-1], set()).add(read)

    def undeclared(self) -> dict[str, set[Read]]:
        """Of each panel what it has read and does not name."""
        found = {
            kind.__name__: {read for read in reads if not _is_named(read, kind)}
            for kind, reads in self.of.items()
            if kind.reads is not None
        }
        return {name: reads for name, reads in found.items() if reads}


def _is_named(read: Read, panel: type[Panel]) -> bool:
    assert panel.reads is not None
    named: set[Read] = {*panel.reads, *base.READ_BY_ALL, *base.READ_BY_PATHS}
    if isinstance(read, type):
        return read in named
    parts = read.split(".")
    return any(".".join(parts[: count + 1]) in named for count in range(len(parts)))


@contextmanager
def recorded() -> Iterator[Reading]:
    """Note all that panels read meanwhile."""
    reading = Reading()
    stack = reading._stack

    def of_panel(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def noted(self: Panel, *args: Any, **kwargs: Any) -> Any:
            for state in args:
                if isinstance(state, State):
                    reading._documents.add(id(State_get(state, "document")))
            stack.append(type(self))
            try:
                return method(self, *args, **kwargs)
            finally:
                stack.pop()

        return noted

    def of_others(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def passed(*args: Any, **kwargs: Any) -> Any:
            stack.append(None)
            try:
                return method(*args, **kwargs)
            finally:
                stack.pop()

        return passed

    State_get, Document_get, of = State.__getattribute__, Document.__getattribute__, Results.of

    def get_of_state(self: State, name: str) -> Any:
        if not stack or stack[-1] is None or name not in _OF_STATE:
            return State_get(self, name)
        reading.note(name)
        inside, reading._inside = reading._inside, True  # what it is worked out of is named with it
        try:
            return State_get(self, name)
        finally:
            reading._inside = inside

    def get_of_document(self: Document, name: str) -> Any:
        if not stack or stack[-1] is None or name not in _OF_DOCUMENT or id(self) not in reading._documents:
            return Document_get(self, name)
        reading.note(f"document.{name}")
        inside, reading._inside = reading._inside, True
        try:
            return Document_get(self, name)
        finally:
            reading._inside = inside

    def get_result(self: Results, kind: type) -> Any:
        reading.note(kind)
        return of(self, kind)

    kinds: list[type[Panel]] = [Panel, *_below(Panel)]
    put_back: list[tuple[type, str, Any]] = []

    def put(owner: type, name: str, value: Any) -> None:
        put_back.append((owner, name, vars(owner).get(name)))
        setattr(owner, name, value)

    for kind in kinds:
        for name in ("render_state", "wants", "wants_along", "prints"):
            if name in vars(kind):
                put(kind, name, of_panel(vars(kind)[name]))
    for owner, name in ((Session, "_in_turn"), (Session, "request"), (Session, "call_off")):
        put(owner, name, of_others(vars(owner)[name]))
    put(State, "__getattribute__", get_of_state)
    put(Document, "__getattribute__", get_of_document)
    put(Results, "of", get_result)
    try:
        yield reading
    finally:
        for owner, name, value in reversed(put_back):
            if value is None:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


def _below(kind: type[Panel]) -> list[type[Panel]]:
    return [each for child in kind.__subclasses__() for each in (child, *_below(child))]
