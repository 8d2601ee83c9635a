"""Whether the checkpoint of a session is where the session says, and is the same. Done beside the window; no Qt."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from attention_explorer.session.kept import Kept, KeptState, SessionFile, WhatWasRead
from attention_explorer.session.state import Document
from attention_models.files.catalogue import weights_place_of
from attention_models.files.fingerprint import (
    cheap_fingerprint,
    difference,
    fingerprint,
    hash_of_file,
    shown_hash,
    title_of_reference,
)
from attention_models.files.names import is_elsewhere
from attention_models.files.sample_pictures import MOST_BYTES, PREFIX, title_of_picture
from attention_models.protocol.errors import CheckpointError


@dataclass(frozen=True, slots=True)
class Checked:
    """A state with the checkpoint that was found for it.

    `found` is "same" too where the session does not say what its checkpoint contains. It is "elsewhere" where the state
    names a share or an address, none of which was touched: `why` lists them.
    """

    state: KeptState
    found: Literal["same", "missing", "changed", "elsewhere"] = "same"
    why: str = ""  # what is another about it, as a clause
    elsewhere: tuple[str, ...] = ()  # the shares and addresses that it names and nobody has agreed to
    picture: str = ""  # that its picture is another by now, as a sentence; "" where it is not
    of_b: str = ""  # what has gone or is another of its state B, as sentences; "" where nothing is

    @property
    def question(self) -> str:
        """What to ask the person, who can say where the checkpoint is."""
        if self.found == "elsewhere":
            return f"The session names a place on another computer: {self.why}. Nothing there has been touched."
        reference = self.state.document.checkpoint
        title, mark = title_of_reference(reference), shown_hash(self.state.files)
        named = f"{title} ({mark})" if mark else title
        if self.found == "missing":
            return f"The session was made with {named}, which is not at {reference}."
        return f"The session was made with {named}. What is at {reference} is another checkpoint: {self.why}."

    @property
    def warning(self) -> str:
        """What is said as long as the figures may be others than those that were saved; "" where nothing speaks for it.

        A picture that has gone is said where it is read.
        """
        if self.found != "changed":
            return " ".join(filter(None, (self.picture, self.of_b)))
        title = title_of_reference(self.state.document.checkpoint)
        checkpoint = (
            f"This is not the checkpoint of the session: {self.why}. "
            f"The figures are those of the {title} that is open, not those that were saved."
        )
        return " ".join(filter(None, (checkpoint, self.picture, self.of_b)))


def checked(
    state: KeptState, beside: Path | None, should_stop: Callable[[], bool], agreed: Collection[str] = ()
) -> Checked:
    """Look for the checkpoint and the picture of a state, also `beside` its file, and compare what they contain.

    Where it names a share or an address nothing is looked for: somebody else may have written it there.

    Args:
        agreed: shares and addresses that the person has named, or has agreed to.

    Raises:
        Cancelled: `should_stop` said so.
    """
    elsewhere = {place: what for place, what in _read_elsewhere(state.document).items() if place not in agreed}
    if elsewhere:
        listed = ", ".join(f"the {what} {place[:200]}" for place, what in elsewhere.items())
        return Checked(state, "elsewhere", listed, tuple(elsewhere))
    state, of_b = _with_b(state, beside, should_stop)
    state, picture = _with_picture(state, beside, should_stop)
    return replace(_checked(state, beside, should_stop), picture=picture, of_b=of_b)


def _read_elsewhere(document: Document) -> dict[str, str]:
    """The shares and addresses that a document would be read from, and what each is."""
    read = {
        document.probe: "file that roles are found on",
        document.corpus.path: "file of texts",
        document.picture: "picture",
        document.checkpoint: "checkpoint",
    }
    own = {place: what for place, what in reversed(read.items()) if is_elsewhere(place)}
    of_b = {} if document.compared is None else _read_elsewhere(document.compared.document)
    return {**{place: f"{what} of B" for place, what in of_b.items()}, **own}


def _with_b(state: KeptState, beside: Path | None, should_stop: Callable[[], bool]) -> tuple[KeptState, str]:
    """The state with what its B reads where that is now, and sentences where that has gone or is another."""
    b = state.document.compared
    if b is None or state.b is None:
        return state, ""
    own, picture = _with_picture(_kept_b(b.document, state.b), beside, should_stop)
    found = _checked(own, beside, should_stop)
    now = replace(state, document=replace(state.document, compared=replace(b, document=found.state.document)))
    title = title_of_reference(b.document.checkpoint)
    sentences = {
        "missing": f"The checkpoint of B, {title}, is not at {b.document.checkpoint}: {found.why}.",
        "changed": f"The checkpoint of B, {title}, is another than when the session was saved: {found.why}.",
    }
    return now, " ".join(filter(None, (sentences.get(found.found, ""), picture)))


def _kept_b(document: Document, read: WhatWasRead) -> KeptState:
    return KeptState(document, files=read.files, picture_hash=read.picture_hash)


def _checked(state: KeptState, beside: Path | None, should_stop: Callable[[], bool]) -> Checked:
    reference = state.document.checkpoint
    place = _place(reference)
    moved = beside / Path(reference).name if beside is not None and Path(reference).is_absolute() else None
    there = None if moved is None else _place(str(moved))
    if place is None and there is not None and state.files:
        try:
            if not difference(state.files, fingerprint(there, should_stop)):
                return Checked(with_checkpoint(state, str(moved)))  # it was moved together with the file
        except OSError:
            pass
    if place is None:
        return Checked(state, "missing", "it is not there") if state.files else Checked(state)
    if not state.files:
        return Checked(state)
    try:
        other = difference(state.files, fingerprint(place, should_stop))
    except OSError as error:
        return Checked(state, "missing", (error.strerror or str(error)).lower())
    return Checked(state, "changed", other) if other else Checked(state)


def _with_picture(state: KeptState, beside: Path | None, should_stop: Callable[[], bool]) -> tuple[KeptState, str]:
    """The state with its picture where that is now, and a sentence where it has other contents than it had."""
    picture, known = state.document.picture, state.picture_hash
    if not known:
        return state, ""
    place = Path(picture).expanduser()
    if not place.exists() and beside is not None:
        moved = beside / place.name  # together with the file
        if picture_hash(str(moved), should_stop) == known:
            return replace(state, document=replace(state.document, picture=str(moved))), ""
    found = picture_hash(picture, should_stop)
    if found in ("", known):
        return state, ""
    title = title_of_picture(picture)
    return state, (
        f"The picture {title} has other contents than when the session was saved (SHA-256 {found[:12]}…, and it was "
        f"{known[:12]}…). The figures are those of the picture that is there now."
    )


def picture_hash(reference: str, should_stop: Callable[[], bool]) -> str:
    """SHA-256 of the file of a picture; "" for one that comes with the program, or cannot be read.

    Raises:
        Cancelled: `should_stop` said so.
    """
    if not reference or reference.startswith(PREFIX):
        return ""
    try:
        place = Path(reference).expanduser()
        return hash_of_file(place, should_stop) if place.stat().st_size <= MOST_BYTES else ""
    except (OSError, ValueError, RuntimeError):
        return ""


def with_checkpoint(state: KeptState, reference: str) -> KeptState:
    """The state with its checkpoint at another place. Trees of what it wrote go along."""
    document, before = state.document, state.document.checkpoint
    writings = tuple(replace(w, checkpoint=reference) if w.checkpoint == before else w for w in document.writings)
    return replace(state, document=replace(document, checkpoint=reference, writings=writings))


def with_files(session: SessionFile, should_stop: Callable[[], bool], in_a_moment: bool = False) -> SessionFile:
    """The session, each of its states with what its checkpoint and its picture contain, where that is not known yet.

    With `in_a_moment` large files are not read for it. What is on a share or at an address is not read either: a state
    that was never put on screen may name it.

    Raises:
        Cancelled: `should_stop` said so.
    """
    known: dict[str, dict[str, str]] = {}

    def filled(state: KeptState) -> KeptState:
        compared = state.document.compared
        if compared is not None:
            b = filled(_kept_b(compared.document, state.b or WhatWasRead()))
            state = replace(state, b=WhatWasRead(b.files, b.picture_hash))
        reference = state.document.checkpoint
        if not state.picture_hash and not is_elsewhere(state.document.picture):
            state = replace(state, picture_hash=picture_hash(state.document.picture, should_stop))
        if state.files:
            return state
        if reference not in known:
            place = None if is_elsewhere(reference) else _place(reference)
            try:
                read = {} if place is None else cheap_fingerprint(place) if in_a_moment else None
                known[reference] = fingerprint(place, should_stop) if read is None and place is not None else read or {}
            except OSError:
                known[reference] = {}
        return replace(state, files=known[reference])

    states = tuple(filled(state) for state in session.kept.states)
    kept: Kept = replace(session.kept, states=states)
    return SessionFile(filled(session.present), kept)


def write(session: SessionFile, path: Path, should_stop: Callable[[], bool], in_a_moment: bool = False) -> SessionFile:
    """Write a session file with what its checkpoints contain; what was written. ValueError with a sentence."""
    from attention_explorer.session import attn

    whole = with_files(session, should_stop, in_a_moment)
    attn.save(whole, path)
    return whole


def _place(reference: str) -> Path | None:
    """The folder or file of a checkpoint, None where there is none."""
    try:
        place = weights_place_of(reference)
        return place if place.exists() else None
    except (CheckpointError, OSError, RuntimeError):
        return None
