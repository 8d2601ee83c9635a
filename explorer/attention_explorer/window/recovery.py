"""Keeps what a person does: no more than two seconds of it are lost, however the program ends."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

from PySide6.QtCore import QObject, Signal

from attention_explorer.compute.background import Background
from attention_explorer.recovery import autosaves
from attention_explorer.recovery.autosaves import Left
from attention_explorer.session import session_check
from attention_explorer.session.kept import Screen, SessionFile
from attention_explorer.widgets.notice_bar import NoticeBar
from attention_explorer.widgets.number_text import ago
from attention_explorer.window.contents import Contents
from attention_explorer.window.screen import screen_of
from attention_explorer.window.sessions import Sessions
from attention_models.files.fingerprint import title_of_reference
from attention_models.files.safe_files import keep_private, not_written, private_folder

# Keeps what is not saved, and offers at the next start to go on with what an ended window has left.


PAUSE_SECONDS = 0.4
"""Between a step and its being written; those that come meanwhile are written with it."""

T = TypeVar("T")

Write = Callable[[T, Path, Callable[[], bool]], None]
"""Writes content to a path, whole or not at all, and polls whether to stop. ValueError with a sentence."""


class RecoveryFile(Generic[T]):
    """Writes beside the window, and takes the file away once all is saved. Called in the GUI thread."""

    def __init__(
        self,
        parent: QObject,
        name: str,
        ending: str,
        write: Write[T],
        is_saved: Callable[[], bool],
        failed: Callable[[str], object],
    ) -> None:
        """`is_saved` says whether all is in a file of the person's; `failed` is called with a sentence."""
        self.work = Background(name, parent)
        self._name_ends, self._write, self._is_saved, self._failed = ending, write, is_saved, failed
        self._path: Path | None = None
        self._written: T | None = None
        self._latest: T | None = None
        self._is_writing = False
        self._turns = threading.Lock()  # over the four above
        self.ending = threading.Event()
        """Set once nothing is waited for any more."""

    @property
    def is_writing(self) -> bool:
        """Whether something waits to be written, or is."""
        return self._is_writing

    def hand_over(self, content: T) -> None:
        """Let the thread write `content`, or what is newer when it comes to it.

        It waits there and not here: this thread may be busy for longer than may be lost.
        """
        if self._path is None:
            self._path = autosaves.own_path(self._name_ends)
        with self._turns:
            self._latest = content
            if self._is_writing or content == self._written:
                return
            self._is_writing = True
        self.work.run(self._keep_up, self._on_kept_up)

    def adopt(self, path: Path, content: T) -> None:
        """Write to a file that was gone on with, which holds `content`."""
        with self._turns:
            self._path, self._written = path, content

    def leave(self) -> None:
        """What is kept stays, and is offered at the next start; what comes now has a file of its own."""
        with self._turns:
            self._path = self._written = self._latest = None

    def discard(self) -> None:
        """All is in a file of the person's."""
        with self._turns:
            self._latest = None
            if self._path is None or self._is_writing:
                return
            self._written = None
            with suppress(OSError):
                self._path.unlink()

    def stop(self, patience: float) -> bool:
        """Write what was handed over, and end the thread; whether it ended within `patience` seconds."""
        self.ending.set()
        ended = self.work.stop(patience, finish=True)
        if self._is_saved():
            self._is_writing = False
            self.discard()
        return ended

    def _keep_up(self) -> None:
        """Write the latest, again and again, until there is nothing newer. In the thread."""
        while True:
            self.ending.wait(PAUSE_SECONDS)
            with self._turns:
                content, path = self._latest, self._path
                if content is None or path is None or content == self._written:
                    self._is_writing = False
                    return
            try:
                _make_folder(path)
                self._write(content, path, self.work.should_stop)
            except BaseException:
                with self._turns:
                    self._is_writing = False
                raise
            with self._turns:
                self._written = content

    def _on_kept_up(self, outcome: Exception | None) -> None:
        if isinstance(outcome, Exception):
            self._failed(str(outcome))
        elif self._is_saved():
            self.discard()


def _make_folder(path: Path) -> None:
    try:
        private_folder(path.parent)
        keep_private(path.parent)
    except OSError as cause:
        raise ValueError(not_written("It", path, cause)) from cause


log = logging.getLogger(__name__)


class Recovery(QObject, Generic[T]):
    """Of one kind of work: a subclass hands over what is not saved, and says how it is read, written and opened."""

    failed = Signal(str)
    """A sentence: what is done cannot be kept, which is said once, or what was left cannot be gone on with."""

    def __init__(
        self,
        parent: QObject,
        bar: NoticeBar,
        name: str,
        ending: str,
        is_saved: Callable[[], bool],
        words: tuple[str, str],
    ) -> None:
        """`words` name what was left, and what a person is doing now; both begin a sentence."""
        super().__init__(parent)
        self._bar, self._name_ends = bar, ending
        self._left_word, self._done_word = words
        self._file = RecoveryFile[T](self, name, ending, self._write, is_saved, self._on_not_kept)
        self._has_failed = False
        self._left: list[tuple[str, Left]] = []
        bar.action_triggered.connect(self.go_on)

    @property
    def left(self) -> list[tuple[str, Left]]:
        """What ended windows have left, with a title each; the newest first."""
        return list(self._left)

    def offer(self) -> None:
        """Say what an ended window has left, with a button to go on with it."""
        self._file.work.run(
            lambda: [(self._title_of(left), left) for left in autosaves.left_behind(self._name_ends)], self._on_found
        )

    def _title_of(self, left: Left) -> str:
        """What a file is about, in a few words; "" where it cannot be read."""
        try:
            content = self._load(left.path)
        except ValueError as error:
            log.warning("%s", error)
            return ""
        return f"{self._about(content)}, {ago(time.time() - left.written)}"

    def _on_found(self, found: list[tuple[str, Left]] | Exception) -> None:
        if isinstance(found, Exception):
            return
        self._left = [(title, left) for title, left in found if title]
        if not self._left:
            return
        more = len(self._left) - 1
        others = f" {more} more {'is' if more == 1 else 'are'} under File > Open recent." if more else ""
        text = f"{self._left_word} that was not saved is kept: {self._left[0][0]}.{others}"
        self._bar.show_notice("info", text, "Go on with it")

    def go_on(self) -> None:
        """Open what was left last."""
        self._bar.hide()
        if self._left:
            self.open_left(self._left[0][1])

    def open_left(self, left: Left) -> None:
        """Open what an ended window has left. Its file is this window's then."""

        def take() -> tuple[Path, T]:
            content = self._load(left.path)  # first, so that one that cannot be read stays where it is
            path = autosaves.take(left)
            if path is None:
                raise ValueError("Another window has gone on with it.")
            return path, content

        def taken(outcome: tuple[Path, T] | Exception) -> None:
            if isinstance(outcome, Exception):
                self.failed.emit(str(outcome))
                return
            self._left = [(title, other) for title, other in self._left if other is not left]
            self._open(*outcome)

        self._file.work.run(take, taken)

    def _on_not_kept(self, sentence: str) -> None:
        log.warning("not kept: %s", sentence)
        if not self._has_failed:
            self._has_failed = True
            self.failed.emit(f"{self._done_word} is not kept for the case that the program is ended. {sentence}")

    def stop(self, patience: float) -> bool:
        """Keep what is not saved, and end the thread; whether it ended within `patience` seconds."""
        self._on_changed()
        return self._file.stop(patience)

    # of a subclass

    def _load(self, path: Path) -> T:
        """What a file holds. In the thread. ValueError with a sentence."""
        raise NotImplementedError

    def _write(self, content: T, path: Path, should_stop: Callable[[], bool]) -> None:
        """As `kept_file.Write`. In the thread."""
        raise NotImplementedError

    def _about(self, content: T) -> str:
        """What it is about, in a few words. In the thread."""
        raise NotImplementedError

    def _open(self, path: Path, content: T) -> None:
        """Have it on screen, and `path`, which holds it, adopted."""
        raise NotImplementedError

    def _on_changed(self) -> None:
        """Hand over what is not saved, or discard what all is saved of."""
        raise NotImplementedError


SCREEN_SECONDS = 0.5
"""How old what is known of panels may be when a step is written."""


class Autosave(Recovery[SessionFile]):
    """Writes a window's unsaved work to a file of its own, beside the window, where something was done.

    Saving or closing without unsaved steps takes the file away.
    """

    def __init__(self, sessions: Sessions, contents: Contents) -> None:
        words = "Work", "What you do"
        super().__init__(sessions, contents.offer_bar, "autosave", autosaves.SESSION, lambda: sessions.is_saved, words)
        self._sessions, self._contents = sessions, contents
        self._screen, self._seen_at = Screen(), -SCREEN_SECONDS
        sessions.changed.connect(self._on_changed)
        sessions.left.connect(self._file.leave)
        contents.dock_host.front_changed.connect(self._on_front_changed)

    @property
    def is_writing(self) -> bool:
        """Whether what was done waits to be written, or is."""
        return self._file.is_writing

    def _load(self, path: Path) -> SessionFile:
        from attention_explorer.session import attn

        return attn.load(path)

    def _write(self, content: SessionFile, path: Path, should_stop: Callable[[], bool]) -> None:
        session_check.write(content, path, should_stop, in_a_moment=True)

    def _about(self, content: SessionFile) -> str:
        document = content.present.document
        words = " ".join((document.turns[-1].text if document.chat else document.text).split())
        short = words if len(words) <= 40 else f"{words[:39]}…"
        model = title_of_reference(document.checkpoint)
        return f"{f'“{short}” in ' if short else ''}{model}"

    def _open(self, path: Path, content: SessionFile) -> None:
        self._sessions.open_content(content, lambda: self._file.adopt(path, content))

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

    def stop(self, patience: float) -> bool:
        self._seen_at = -SCREEN_SECONDS
        return super().stop(patience)
