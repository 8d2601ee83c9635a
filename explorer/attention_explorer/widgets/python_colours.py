"""Python in the colours of the theme: keywords, strings and remarks; numbers step back."""

from __future__ import annotations

import keyword
import re

from PySide6.QtGui import QColor, QFont, QSyntaxHighlighter, QTextCharFormat, QTextDocument

from attention_explorer.look.theme import LIGHT, Theme

_PARTS = re.compile(
    r"(?P<remark>#.*)"
    r"|(?P<string>[rf]?'(?:[^'\\]|\\.)*'|[rf]?\"(?:[^\"\\]|\\.)*\")"
    rf"|(?P<keyword>\b(?:{'|'.join(keyword.kwlist)})\b)"
    r"|(?P<number>(?<![\w.])-?\d[\d_.]*(?:e[+-]?\d+)?)"
)


class PythonColours(QSyntaxHighlighter):
    """Colours the lines of a document. A string of several lines is told by its quotation marks only."""

    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        self._formats: dict[str, QTextCharFormat] = {}
        self.set_theme(LIGHT)

    def set_theme(self, theme: Theme) -> None:
        colours = {"remark": theme.ok, "string": theme.second, "keyword": theme.key, "number": theme.text_dim}
        self._formats = {name: _format(colour) for name, colour in colours.items()}
        self._formats["keyword"].setFontWeight(QFont.Weight.DemiBold)
        self.rehighlight()

    def highlightBlock(self, text: str) -> None:
        inside = self.previousBlockState() == 1
        ends = [match.start() for match in re.finditer('"""', text)]
        if inside or ends:  # what a function says of itself
            first = 0 if inside else ends[0]
            closes = len(ends) % 2 == (1 if inside else 0)
            last = ends[-1] + 3 if closes and ends else len(text)
            self.setFormat(first, last - first, self._formats["string"])
            self.setCurrentBlockState(0 if closes else 1)
            return
        self.setCurrentBlockState(0)
        for match in _PARTS.finditer(text):
            self.setFormat(match.start(), match.end() - match.start(), self._formats[match.lastgroup or "number"])


def _format(colour: str) -> QTextCharFormat:
    made = QTextCharFormat()
    made.setForeground(QColor(colour))
    return made
