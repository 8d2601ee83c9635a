"""What is on screen as a line of text: copied, opened, or shown as a QR code."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication, QMainWindow

from attention_explorer.session.intents import Show
from attention_explorer.session.state import Notice
from attention_explorer.widgets import asking
from attention_explorer.window.code_sheet import CodeSheet
from attention_explorer.window.contents import Contents
from attention_explorer.window.sessions import Sessions


class ShortTexts(QObject):
    """Lives in the GUI thread."""

    def __init__(self, window: QMainWindow, contents: Contents, sessions: Sessions) -> None:
        super().__init__(window)
        self._window, self._contents, self._sessions = window, contents, sessions
        self.sheet = CodeSheet(contents)

    def copy(self) -> None:
        """Put the state on the clipboard."""
        text = self._text()
        if text:
            QApplication.clipboard().setText(text)
            self._say(
                Notice("info", f"Copied: {len(text)} characters that “File > Open a short text” takes on any computer.")
            )

    def ask(self) -> None:
        """Let the person type or paste one; what is on the clipboard stands there already."""
        from attention_explorer.session.kept import is_short_text

        there = QApplication.clipboard().text()
        label = "A state that somebody copied as a short text: it begins with “attn1.”"
        text = asking.line(self._window, "Open a short text", label, there.strip() if is_short_text(there) else "")
        if text:
            self.open(text)

    def open(self, text: str, failed: Callable[[], object] | None = None) -> None:
        """Put the state of a short text on screen. One that is none changes nothing, and a sentence says why."""
        from attention_explorer.session import short_texts

        try:
            state = short_texts.decode(text)
        except ValueError as error:
            if failed is not None:
                failed()
            self._say(Notice("error", str(error)))
            return
        state = short_texts.for_this_window(state, self._sessions.session.state.document.view)
        self._sessions.show(state, None, lambda: None)

    def show_code(self) -> None:
        """Show the state as a QR code over all panels, or put it away."""
        if self.sheet.isVisible():
            self.sheet.close()
            return
        text = self._text()
        if text:
            self.sheet.show_code(text, self._contents.theme)

    def _text(self) -> str:
        """The state on screen; "" where it cannot be one, which is said."""
        from attention_explorer.session import short_texts

        try:
            return short_texts.encode(self._sessions.present())
        except ValueError as error:
            self._say(Notice("error", str(error)))
            return ""

    def _say(self, notice: Notice) -> None:
        self._sessions.session.dispatch(Show(notice))
