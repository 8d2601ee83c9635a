"""A field for a text of any length up to what the window takes."""

from __future__ import annotations

import re

from PySide6.QtCore import QMimeData, Signal
from PySide6.QtGui import QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QWidget

# Words that have no place to be broken, or take Qt seconds to find one: they are broken anywhere.


LONG = 5000
"""Characters. Qt's time grows with the square: 0.25 s for a word of 50,000, 3.3 s for one of 200,000."""


_WORD = re.compile(r"\S{25,}")  # wider than a narrow column


def breakable(text: str) -> str:
    """`text` for a label, which breaks lines between words alone: with zero-width spaces in long words.

    It is for the eye: what may be copied has to be `text` itself.
    """
    return _WORD.sub(lambda word: "\N{ZERO WIDTH SPACE}".join(word[0]), text)


def wrap_for(field: QPlainTextEdit, text: str) -> None:
    """Prepare a field for a text that will be put into it."""
    if any(len(word) > LONG for word in text.split()):
        field.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
    elif field.wordWrapMode() == QTextOption.WrapMode.WrapAnywhere and not _holds_long_word(field):
        field.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)


def _holds_long_word(field: QPlainTextEdit) -> bool:
    return any(len(word) > LONG for word in field.toPlainText().split())


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
