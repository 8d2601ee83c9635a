"""Keeps what is not saved, and offers at the next start to go on with what an ended window has left."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from PySide6.QtCore import QObject, Signal

from attention_explorer import autosaves
from attention_explorer.autosaves import Left
from attention_explorer.widgets.notice_bar import NoticeBar
from attention_explorer.widgets.number_text import ago
from attention_explorer.window.recovery_file import RecoveryFile

log = logging.getLogger(__name__)

T = TypeVar("T")


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
