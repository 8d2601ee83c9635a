"""Words that have no place to be broken, or take Qt seconds to find one: they are broken anywhere."""

from __future__ import annotations

import re

from PySide6.QtGui import QTextOption
from PySide6.QtWidgets import QPlainTextEdit

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
