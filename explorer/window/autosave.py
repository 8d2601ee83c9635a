"""Keeps what a person does: no more than two seconds of it are lost, however the program ends."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from explorer import autosaves
from explorer.autosaves import Left
from explorer.compute.background import Background
from explorer.session import session_check
from explorer.session.kept import Screen, SessionFile
from explorer.widgets.number_text import ago
from explorer.window.contents import Contents
from explorer.window.screen import screen_of
from explorer.window.sessions import Sessions
from models.files.fingerprint import title_of_reference
from models.files.whole_files import not_written

PAUSE_SECONDS = 0.4
"""Between a step and its being written; those that come meanwhile are written with it."""
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
        self._work = Background("autosave", self)
        self._path: Path | None = None
        self._written: SessionFile | None = None
        self._latest: SessionFile | None = None
        self._is_writing = False
        self._turns = threading.Lock()  # over the four above
        self._ending = threading.Event()  # nothing is waited for any more
        self._screen, self._seen_at = Screen(), -SCREEN_SECONDS
        self._has_failed = False
        self._left: list[tuple[str, Left]] = []
        sessions.changed.connect(self._on_changed)
        sessions.left.connect(self._leave)
        contents.dock_host.front_changed.connect(self._on_front_changed)
        self._bar.action_triggered.connect(self.go_on)

    def offer(self) -> None:
        """Say what an ended window has left, with a button to go on with it."""
        self._work.run(lambda: [_titled(left) for left in autosaves.left_behind()], self._on_found)

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
            self._sessions.open_content(session, lambda: self._adopt(path, session))

        self._work.run(take, taken)

    def _adopt(self, path: Path, session: SessionFile) -> None:
        """Write to the file that was gone on with."""
        with self._turns:
            self._path, self._written = path, session

    # writing

    def _on_front_changed(self) -> None:
        self._seen_at = -SCREEN_SECONDS
        self._on_changed()

    def _on_changed(self) -> None:
        if self._sessions.is_saved:
            self._discard()
            return
        if self._path is None:
            self._path = autosaves.own_path()
        now = time.monotonic()
        if now - self._seen_at > SCREEN_SECONDS:
            self._screen, self._seen_at = screen_of(self._contents), now
        self._hand_over(self._sessions.content(self._screen))

    def _hand_over(self, content: SessionFile) -> None:
        """Let the thread write `content`, or what is newer when it comes to it.

        It waits there and not here: this thread may be busy for longer than may be lost.
        """
        with self._turns:
            self._latest = content
            if self._is_writing or content == self._written:
                return
            self._is_writing = True
        self._work.run(self._keep_up, self._on_kept_up)

    def _keep_up(self) -> None:
        """Write the latest, again and again, until there is nothing newer. In the thread."""
        while True:
            self._ending.wait(PAUSE_SECONDS)
            with self._turns:
                content, path = self._latest, self._path
                if content is None or path is None or content == self._written:
                    self._is_writing = False
                    return
            try:
                _write(content, path, self._work)
            except BaseException:
                with self._turns:
                    self._is_writing = False
                raise
            with self._turns:
                self._written = content

    def _on_kept_up(self, outcome: Exception | None) -> None:
        if isinstance(outcome, Exception):
            log.warning("not kept: %s", outcome)
            if not self._has_failed:
                self._has_failed = True
                self.failed.emit(f"What you do is not kept for the case that the program is ended. {outcome}")
        elif self._sessions.is_saved:
            self._discard()

    def _leave(self) -> None:
        """Another session comes on screen: what is kept of this one stays, and is offered at the next start."""
        with self._turns:
            self._path = self._written = self._latest = None

    def _discard(self) -> None:
        """All is in a file of the person's."""
        with self._turns:
            self._latest = None
            if self._path is None or self._is_writing:
                return
            self._written = None
            with suppress(OSError):
                self._path.unlink()

    def stop(self, patience: float) -> bool:
        """Keep what is not saved, and end the thread; whether it ended within `patience` seconds."""
        if not self._sessions.is_saved:
            self._seen_at = -SCREEN_SECONDS
            self._on_changed()
        self._ending.set()
        ended = self._work.stop(patience, finish=True)
        if self._sessions.is_saved:
            self._is_writing = False
            self._discard()
        return ended


def _write(content: SessionFile, path: Path, work: Background) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise ValueError(not_written("It", path, cause)) from cause
    session_check.write(content, path, work.should_stop, in_a_moment=True)


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
