"""Keeps what a person does: no more than two seconds of it are lost, however the program ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from attention_explorer import autosaves
from attention_explorer.session import session_check
from attention_explorer.session.kept import Screen, SessionFile
from attention_explorer.window.contents import Contents
from attention_explorer.window.recovery import Recovery
from attention_explorer.window.screen import screen_of
from attention_explorer.window.sessions import Sessions
from attention_models.files.fingerprint import title_of_reference

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
