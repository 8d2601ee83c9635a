"""A lesson that is being made, in a file: as it is, however incomplete, for the case that the program ends. Pure.

It is a session file with one more member, as a lesson's file is. A file is untrusted: it is read up to a size, and
every value is checked before any is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from attention_explorer import json_files
from attention_explorer.session import attn
from attention_explorer.session.kept import Kept, KeptState, SessionFile, named
from attention_explorer.session.lesson_drafts import Draft, DraftAsk, DraftStep
from attention_explorer.session.lessons import MOST_STEPS, Step
from attention_explorer.session.scenes import check_state, check_text_size
from attention_explorer.session.state import Document
from attention_explorer.session.tours import Part
from attention_models.files.safe_files import not_written, write_whole

LARGEST = 2 << 20
"""Bytes of what is written beside the states."""

_MEMBER = "draft.json"
_Text = Annotated[str, Meta(max_length=20_000)]


@dataclass(frozen=True, slots=True)
class KeptDraft:
    """A lesson that is being made, which of its steps is chosen (-1: none), and the file that Save writes to."""

    draft: Draft
    at: int = -1
    path: str = ""


class _KeptStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    title: _Text
    say: _Text = ""
    notes: _Text = ""
    ask: DraftAsk | None = None
    state: Annotated[int, Meta(ge=1, le=MOST_STEPS)] | None = None  # the number of what it shows
    text_size: float | None = None
    point: Part | None = None
    was: Step | None = None


class _KeptDraft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    title: _Text
    about: _Text
    minutes: Annotated[int, Meta(ge=1, le=120)]
    steps: Annotated[tuple[_KeptStep, ...], Meta(max_length=MOST_STEPS)]
    at: int = -1
    path: Annotated[str, Meta(max_length=4096)] = ""


def encode(kept: KeptDraft) -> bytes:
    """The file's content. ValueError, with a sentence, where it would be too large."""
    draft, states, steps = kept.draft, list[KeptState](), list[_KeptStep]()
    for number, step in enumerate(draft.steps, start=1):
        if step.state is not None:
            states.append(named(step.state, str(number)))
        steps.append(
            _KeptStep(
                title=step.title,
                say=step.say,
                notes=step.notes,
                ask=step.ask,
                state=None if step.state is None else len(states),
                text_size=step.text_size,
                point=step.point,
                was=step.was,
            )
        )
    whole = _KeptDraft(
        title=draft.title,
        about=draft.about,
        minutes=draft.minutes,
        steps=tuple(steps),
        at=kept.at,
        path=kept.path,
    )
    content = json_files.encode(whole)
    if len(content) > LARGEST:
        raise ValueError(f"The lesson's text takes {len(content):,} bytes, and {LARGEST:,} are kept at most.")
    present = states[0] if states else KeptState(Document())
    return attn.encode(SessionFile(present, Kept(tuple(states), members=((_MEMBER, content),))))


def decode(content: bytes) -> KeptDraft:
    """What a file holds. ValueError, with a clause, where that is none."""
    session = attn.decode(content)
    member = next((data for name, data in session.kept.members if name == _MEMBER), None)
    if member is None:
        raise ValueError(f"it holds no {_MEMBER}")
    json_files.check_size(member, LARGEST)
    whole, states = json_files.decode(member, _KeptDraft), session.kept.states
    for state in states:
        check_state(state)
    steps = tuple(_step(step, number, states) for number, step in enumerate(whole.steps, start=1))
    at = min(max(whole.at, -1), len(steps) - 1)
    return KeptDraft(Draft(whole.title, whole.about, whole.minutes, steps), at, whole.path)


def _step(kept: _KeptStep, number: int, states: Sequence[KeptState]) -> DraftStep:
    if kept.state is not None and kept.state > len(states):
        raise ValueError(f"step {number} shows state {kept.state}, and there are {len(states)}")
    if kept.text_size is not None:
        check_text_size(kept.text_size)
    return DraftStep(
        title=kept.title,
        say=kept.say,
        notes=kept.notes,
        ask=kept.ask,
        state=None if kept.state is None else replace(states[kept.state - 1], name=""),
        text_size=kept.text_size,
        point=kept.point,
        was=kept.was,
    )


def load(path: Path) -> KeptDraft:
    """Read a file. ValueError with a sentence for the person."""
    try:
        return decode(json_files.read(path, attn.LARGEST))
    except OSError as cause:
        raise ValueError(f"The lesson in {path} could not be read ({cause.strerror}).") from cause
    except ValueError as error:
        raise ValueError(f"{path.name} holds no lesson that can be gone on with: {str(error).rstrip('.')}.") from error


def save(kept: KeptDraft, path: Path) -> None:
    """Write a file whole or not at all. ValueError with a sentence for the person."""
    content = encode(kept)
    try:
        write_whole(path, content, private=True)
    except OSError as cause:
        raise ValueError(not_written("The lesson", path, cause)) from cause
