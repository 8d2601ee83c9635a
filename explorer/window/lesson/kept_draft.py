"""Keeps the lesson that is made and not saved, and offers at the next start to go on with it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from explorer import autosaves
from explorer.autosaves import Left
from explorer.widgets.notice_bar import NoticeBar
from explorer.widgets.number_text import ago
from explorer.window.kept_file import KeptFile
from explorer.window.lesson.lessons import Lessons

if TYPE_CHECKING:  # needed with the first lesson that is made
    from explorer.session.kept_drafts import KeptDraft

log = logging.getLogger(__name__)


class DraftAutosave(QObject):
    """Writes it to a file of its own, beside the window. Saving it, or letting it go, takes the file away."""

    failed = Signal(str)
    """A sentence: what is written cannot be kept, or not be gone on with."""

    def __init__(self, lessons: Lessons, bar: NoticeBar) -> None:
        super().__init__(lessons)
        self._lessons, self._bar = lessons, bar
        self._file = KeptFile(
            self, "lesson autosave", autosaves.LESSON, _write, lambda: lessons.unsaved is None, self._on_not_kept
        )
        self._has_failed = False
        self._left: list[tuple[str, Left]] = []
        lessons.draft_changed.connect(self._on_changed)
        bar.action_triggered.connect(self.go_on)

    @property
    def left(self) -> list[tuple[str, Left]]:
        """What ended windows have left, with a title each; the newest first."""
        return list(self._left)

    def offer(self) -> None:
        """Say what an ended window has left, with a button to go on with it."""
        self._file.work.run(lambda: [_titled(left) for left in autosaves.left_behind(autosaves.LESSON)], self._on_found)

    def _on_found(self, found: list[tuple[str, Left]] | Exception) -> None:
        if isinstance(found, Exception):
            return
        self._left = [(title, left) for title, left in found if title]
        if not self._left:
            return
        more = len(self._left) - 1
        others = f" {more} more {'is' if more == 1 else 'are'} under File > Open recent." if more else ""
        text = f"A lesson that was not saved is kept: {self._left[0][0]}.{others}"
        self._bar.show_notice("info", text, "Go on with it")

    def go_on(self) -> None:
        """Go on with what was left last."""
        self._bar.hide()
        if self._left:
            self.open_left(self._left[0][1])

    def open_left(self, left: Left) -> None:
        """Go on with what an ended window has left, once another lesson that is made is let go."""
        self._lessons.making.once_let_go(lambda: self._take(left))

    def _take(self, left: Left) -> None:
        def take() -> tuple[Path, KeptDraft]:
            from explorer.session import kept_drafts

            kept = kept_drafts.load(left.path)  # first, so that one that cannot be read stays where it is
            path = autosaves.take(left)
            if path is None:
                raise ValueError("Another window has gone on with it.")
            return path, kept

        def taken(outcome: tuple[Path, KeptDraft] | Exception) -> None:
            if isinstance(outcome, Exception):
                self.failed.emit(str(outcome))
                return
            path, kept = outcome
            self._left = [(title, other) for title, other in self._left if other is not left]
            self._file.adopt(path, kept)
            self._lessons.resume(kept)

        self._file.work.run(take, taken)

    def _on_changed(self) -> None:
        unsaved = self._lessons.unsaved
        if unsaved is None:
            self._file.discard()
        else:
            self._file.hand_over(unsaved)

    def _on_not_kept(self, sentence: str) -> None:
        log.warning("not kept: %s", sentence)
        if not self._has_failed:
            self._has_failed = True
            self.failed.emit(f"The lesson is not kept for the case that the program is ended. {sentence}")

    def stop(self, patience: float) -> bool:
        """Keep what is not saved, and end the thread; whether it ended within `patience` seconds."""
        self._on_changed()
        return self._file.stop(patience)


def _write(kept: KeptDraft, path: Path, should_stop: Callable[[], bool]) -> None:
    from explorer.session import kept_drafts

    kept_drafts.save(kept, path)


def _titled(left: Left) -> tuple[str, Left]:
    """What a file is about, in a few words; "" where it cannot be read."""
    from explorer.session import kept_drafts

    try:
        draft = kept_drafts.load(left.path).draft
    except ValueError as error:
        log.warning("%s", error)
        return "", left
    count = len(draft.steps)
    title = " ".join(draft.title.split()) or "Without a title"
    return f"“{title[:60]}”, {count} {'step' if count == 1 else 'steps'}, {ago(time.time() - left.written)}", left
