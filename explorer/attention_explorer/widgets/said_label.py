"""A label for a sentence that may hold a token or a name."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from attention_explorer.widgets.token_text import isolated


class SaidLabel(QLabel):
    """Shows plain text, for a token may look like mark-up, and keeps what is quoted in its own direction."""

    def __init__(self, text: str = "") -> None:
        super().__init__(isolated(text))
        self.setTextFormat(Qt.TextFormat.PlainText)

    def setText(self, text: str) -> None:
        super().setText(isolated(text))
