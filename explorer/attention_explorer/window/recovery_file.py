"""A file of a window's own that holds the latest of what is not saved: no more than two seconds of it are lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

from PySide6.QtCore import QObject

from attention_explorer import autosaves
from attention_explorer.compute.background import Background
from attention_models.files.private_files import keep_private, private_folder
from attention_models.files.whole_files import not_written

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
