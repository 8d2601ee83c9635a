"""Keeps what a person does: no more than two seconds of it are lost, however the program ends."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from explorer import autosaves
from explorer.autosaves import Left
from explorer.session import session_check
from explorer.session.kept import Screen, SessionFile
from explorer.widgets.number_text import ago
from explorer.window.contents import Contents
from explorer.window.kept_file import KeptFile
from explorer.window.screen import screen_of
from explorer.window.sessions import Sessions
from models.files.fingerprint import title_of_reference

SCREEN_SECONDS = 0.5
"""How old what is known of panels may be when a step is written."""

log = logging.getLogger(__name__)


class Autosave(QObject):
    """Writes a window's unsaved work to a file of its own, beside the window, where something was done.

    Saving or closing without unsaved steps takes the file away.
    """

    failed = Signal(str)
    """A sentence: what is done cannot be kept. Said once."""

    def __init__(self, sessions: Sessions, contents: Contents) -> None:
        super().__init__(sessions)
        self._sessions = sessions
        self._contents, self._bar = contents, contents.offer_bar
        self._file = KeptFile(self, "autosave", autosaves.SESSION, _write, lambda: sessions.is_saved, self._on_not_kept)
        self._screen, self._seen_at = Screen(), -SCREEN_SECONDS
        self._has_failed = False
        self._left: list[tuple[str, Left]] = []
        sessions.changed.connect(self._on_changed)
        sessions.left.connect(self._file.leave)
        contents.dock_host.front_changed.connect(self._on_front_changed)
        self._bar.action_triggered.connect(self.go_on)

    @property
    def is_writing(self) -> bool:
        """Whether what was done waits to be written, or is."""
        return self._file.is_writing

    def offer(self) -> None:
        """Say what an ended window has left, with a button to go on with it."""
        self._file.work.run(lambda: [_titled(left) for left in autosaves.left_behind()], self._on_found)

    @property
    def left(self) -> list[tuple[str, Left]]:
        """What ended windows have left, with a title each; the newest first."""
        return list(self._left)

    def _on_found(self, found: list[tuple[str, Left]] | Exception) -> None:
        if isinstance(found, Exception):
            return
        self._left = [(title, left) for title, left in found if title]
        if not self._left:
            return
        more = len(self._left) - 1
        others = f" {more} more {'is' if more == 1 else 'are'} under File > Open recent." if more else ""
        text = f"Work that was not saved is kept: {self._left[0][0]}.{others}"
        self._bar.show_notice("info", text, "Go on with it")

    def go_on(self) -> None:
        """Open what was left last, in the place of what is on screen."""
        self._bar.hide()
        if self._left:
            self.open_left(self._left[0][1])

    def open_left(self, left: Left) -> None:
        """Open what an ended window has left. Its file is this window's then."""

        def take() -> tuple[Path, SessionFile]:
            from explorer.session import attn

            session = attn.load(left.path)  # first, so that one that cannot be read stays where it is
            path = autosaves.take(left)
            if path is None:
                raise ValueError("Another window has gone on with it.")
            return path, session

        def taken(outcome: tuple[Path, SessionFile] | Exception) -> None:
            if isinstance(outcome, Exception):
                self.failed.emit(str(outcome))
                return
            path, session = outcome
            self._left = [(title, other) for title, other in self._left if other is not left]
            self._sessions.open_content(session, lambda: self._file.adopt(path, session))

        self._file.work.run(take, taken)

    # writing

    def _on_front_changed(self) -> None:
        self._seen_at = -SCREEN_SECONDS
        self._on_changed()

    def _on_changed(self) -> None:
        if self._sessions.is_saved:
            self._file.discard()
            return
        now = time.monotonic()
        if now - self._seen_at > SCREEN_SECONDS:
            self._screen, self._seen_at = screen_of(self._contents), now
        self._file.hand_over(self._sessions.content(self._screen))

    def _on_not_kept(self, sentence: str) -> None:
        log.warning("not kept: %s", sentence)
        if not self._has_failed:
            self._has_failed = True
            self.failed.emit(f"What you do is not kept for the case that the program is ended. {sentence}")

    def stop(self, patience: float) -> bool:
        """Keep what is not saved, and end the thread; whether it ended within `patience` seconds."""
        if not self._sessions.is_saved:
            self._seen_at = -SCREEN_SECONDS
            self._on_changed()
        return self._file.stop(patience)


def _write(content: SessionFile, path: Path, should_stop: Callable[[], bool]) -> None:
    session_check.write(content, path, should_stop, in_a_moment=True)


def _titled(left: Left) -> tuple[str, Left]:
    """What a file is about, in a few words; "" where it cannot be read."""
    from explorer.session import attn

    try:
        document = attn.load(left.path).present.document
    except ValueError as error:
        log.warning("%s", error)
        return "", left
    words = " ".join((document.turns[-1].text if document.chat else document.text).split())
    short = words if len(words) <= 40 else f"{words[:39]}…"
    model = title_of_reference(document.checkpoint)
    return f"{f'“{short}” in ' if short else ''}{model}, {ago(time.time() - left.written)}", left
