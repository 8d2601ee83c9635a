"""A field for a text of any length up to what the window takes."""

from __future__ import annotations

from PySide6.QtCore import QMimeData, Signal
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from attention_explorer.widgets.long_words import wrap_for


class NotesField(QPlainTextEdit):
    edited = Signal(str)  # the whole text, after the person changed it
    refused = Signal(str)  # a sentence: what was pasted is too long

    def __init__(self, most: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._most = most
        self._setting = False
        self.setTabChangesFocus(True)
        self.textChanged.connect(self._on_changed)

    def text(self) -> str:
        """The text as it is; Qt's own `toPlainText` would make plain spaces of no-break spaces."""
        return self.document().toRawText().replace("\u2029", "\n")

    def set_text(self, text: str) -> None:
        """Show another text. Emits nothing."""
        if text == self.text():
            return
        self._setting = True
        try:
            self.clear()
            wrap_for(self, text)
            self.setPlainText(text)
        finally:
            self._setting = False

    def insertFromMimeData(self, source: QMimeData) -> None:
        text = source.text()
        if len(text) + self.document().characterCount() > self._most:
            self.refused.emit(
                f"What you pasted has {len(text):,} characters; notes take {self._most:,} in all. Nothing was pasted."
            )
            return
        wrap_for(self, text)
        self.insertPlainText(text)

    def _on_changed(self) -> None:
        if not self._setting:
            self.edited.emit(self.text())
