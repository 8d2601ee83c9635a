"""One of the answers that a question offers: it may be a sentence, which Qt's buttons do not break into lines."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtGui import QFont, QFontMetrics, QResizeEvent
from PySide6.QtWidgets import QPushButton, QSizePolicy

_AROUND = 26  # pixels of its frame and padding
_INDENT = "     "  # of lines after the first, below the words and not the letter


class OptionButton(QPushButton):
    """As wide as it is given, its text in as many lines as that takes."""

    def __init__(self, letter: str, say: str) -> None:
        super().__init__()
        self.setCheckable(True)
        self.setProperty("role", "option")
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(say)
        self._words = f"{letter}   {say}"
        self._break()

    def mark_right(self) -> None:
        self._words += "   ✓"
        self._break()

    def minimumSizeHint(self) -> QSize:
        return QSize(60, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._break()

    def _break(self) -> None:
        bold = QFont(self.font())
        bold.setBold(True)  # as it is once chosen
        text = "\n".join(lines_of(self._words, QFontMetrics(bold), self.width() - _AROUND)).replace("&", "&&")
        if text != self.text():
            self.setText(text)


def lines_of(text: str, metrics: QFontMetrics, width: int) -> list[str]:
    """`text` broken between words; a word that is wider than `width` has a line of its own."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1].strip() and metrics.horizontalAdvance(longer) > width:
            lines.append(_INDENT + word)
        else:
            lines[-1] = longer
    return lines
