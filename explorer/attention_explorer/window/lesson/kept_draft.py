"""Keeps the lesson that is made and not saved, and offers at the next start to go on with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from attention_explorer.recovery import autosaves
from attention_explorer.recovery.autosaves import Left
from attention_explorer.widgets.notice_bar import NoticeBar
from attention_explorer.widgets.number_text import counted
from attention_explorer.window.lesson.lessons import Lessons
from attention_explorer.window.recovery import Recovery

if TYPE_CHECKING:  # needed with the first lesson that is made
    from attention_explorer.session.kept_drafts import KeptDraft


class DraftAutosave(Recovery["KeptDraft"]):
    """Writes it to a file of its own, beside the window. Saving it, or letting it go, takes the file away."""

    def __init__(self, lessons: Lessons, bar: NoticeBar) -> None:
        words = "A lesson", "The lesson"
        super().__init__(lessons, bar, "lesson autosave", autosaves.LESSON, lambda: lessons.unsaved is None, words)
        self._lessons = lessons
        lessons.draft_changed.connect(self._on_changed)

    def open_left(self, left: Left) -> None:
        """Go on with what an ended window has left, once another lesson that is made is let go."""
        resume = super().open_left
        self._lessons.making.once_let_go(lambda: resume(left))

    def _load(self, path: Path) -> KeptDraft:
        from attention_explorer.session import kept_drafts

        return kept_drafts.load(path)

    def _write(self, content: KeptDraft, path: Path, should_stop: Callable[[], bool]) -> None:
        from attention_explorer.session import kept_drafts

        kept_drafts.save(content, path)

    def _about(self, content: KeptDraft) -> str:
        title = " ".join(content.draft.title.split()) or "Without a title"
        return f"“{title[:60]}”, {counted(len(content.draft.steps), 'step')}"

    def _open(self, path: Path, content: KeptDraft) -> None:
        self._file.adopt(path, content)
        self._lessons.resume(content)

    def _on_changed(self) -> None:
        unsaved = self._lessons.unsaved
        if unsaved is None:
            self._file.discard()
        else:
            self._file.hand_over(unsaved)
