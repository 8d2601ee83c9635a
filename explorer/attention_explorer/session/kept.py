"""States kept by name, with all that brings the same screen back: what a session file holds. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from attention_explorer.session.state import Document
from attention_models.protocol.values import DEFAULT_PLACEMENT, Placement

Value = bool | int | float | str
"""What a panel's own choice can be."""

ENDING = ".attn"
"""Of session files."""

SHORT_TEXT = "attn1."
"""What a state begins with that travels as a line of text."""
_ANY_SHORT_TEXT = re.compile(r"\s*attn\d{1,4}\.")

MOST_STATES = 100
LONGEST_NAME = 200

Extra = tuple[tuple[str, bytes], ...]
"""What a newer version of the program wrote and this one does not know: name and JSON. It is written again as it is."""


def is_short_text(text: str) -> bool:
    """Whether it says of itself that it is a state as a line of text, of whichever version."""
    return _ANY_SHORT_TEXT.match(text) is not None


@dataclass(frozen=True, slots=True)
class Screen:
    """Which panels are open, and what is chosen in them. Where they are stays the person's own."""

    open: tuple[str, ...] = ()
    front: tuple[str, ...] = ()  # of each group of tabs, the one that can be seen
    panels: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)  # of each panel its choices by name


@dataclass(frozen=True, slots=True)
class WhatWasRead:
    """What the checkpoint and the picture of a state contained: as the fields of `KeptState`."""

    files: Mapping[str, str] = field(default_factory=dict)
    picture_hash: str = ""


@dataclass(frozen=True, slots=True)
class KeptState:
    """What was on screen, to go back to."""

    document: Document
    name: str = ""
    screen: Screen = Screen()
    placement: Placement = DEFAULT_PLACEMENT
    files: Mapping[str, str] = field(default_factory=dict)  # its checkpoint's: `attention_models.files.fingerprint`
    picture_hash: str = ""  # SHA-256 of its picture's file, in hexadecimal; "" where it has none or that is not known
    b: WhatWasRead | None = None  # of its state B, where that is known
    extra: Extra = ()


@dataclass(frozen=True, slots=True)
class Kept:
    """All that a session file holds beside what is on screen."""

    states: tuple[KeptState, ...] = ()
    notes: str = ""
    extra: Extra = ()
    members: Extra = ()  # files within the file

    def with_state(self, state: KeptState) -> Kept:
        """With another state at the end. ValueError where there are too many, or its name is too long."""
        if len(self.states) >= MOST_STATES:
            raise ValueError(f"{MOST_STATES} states are kept at most. Delete one first.")
        return replace(self, states=(*self.states, named(state, state.name)))

    def without(self, index: int) -> Kept:
        return replace(self, states=(*self.states[:index], *self.states[index + 1 :]))

    def changed(self, index: int, state: KeptState) -> Kept:
        return replace(self, states=(*self.states[:index], state, *self.states[index + 1 :]))

    def moved(self, index: int, to: int) -> Kept:
        """With the state at `index` in another place."""
        rest = self.without(index).states
        return replace(self, states=(*rest[:to], self.states[index], *rest[to:]))


def named(state: KeptState, name: str) -> KeptState:
    """The state with another name, in one line. ValueError for an empty one or one that is too long."""
    name = " ".join(name.split())
    if not name:
        raise ValueError("A state needs a name.")
    if len(name) > LONGEST_NAME:
        raise ValueError(f"A state's name has {LONGEST_NAME} characters at most.")
    return replace(state, name=name)


@dataclass(frozen=True, slots=True)
class SessionFile:
    """What a session file holds."""

    present: KeptState
    kept: Kept = Kept()
