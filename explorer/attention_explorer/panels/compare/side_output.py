"""One of the two states in large type: a letter, what it is, and what it says."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy

from attention_explorer.colour_maps import diverging
from attention_explorer.widgets.themed import ThemedWidget
from attention_explorer.widgets.token_text import isolated

LARGE = 1.75
SMALL = 1.15
"""Times the size of other text, and where there is little room."""

_ENDS = {"A": 236, "B": 20, "A − B": -1}
"""Where each letter's colour stands in the palette of differences; -1 for none."""
_GAP = 8.0
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class SideOutput(ThemedWidget):
    """Three lines: the letter and a dim title, what is said and how likely it is, and what else is said."""

    def __init__(self, letter: str) -> None:
        super().__init__(letter)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # nothing to do here with a keyboard
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.letter = letter
        self._title = self._said = self._share = self._more = ""

    def show_output(self, title: str, said: str, share: str, more: str) -> None:
        """What is shown; all of it is in the tooltip, where there is no room for it."""
        if (title, said, share, more) == (self._title, self._said, self._share, self._more):
            return
        self._title, self._said, self._share, self._more = (isolated(text) for text in (title, said, share, more))
        told = "\n".join(filter(None, (title, f"{said}  {share}".strip(), more)))
        self.setAccessibleDescription(told)
        self.setToolTip(told)
        self.update()

    @property
    def said(self) -> tuple[str, str]:
        """What stands in large type: what is said, and how likely it is."""
        return self._said, self._share

    def sizeHint(self) -> QSize:
        return QSize(200, round(2 * self._line() + self._large_line() + 6))

    def minimumSizeHint(self) -> QSize:
        return QSize(80, self.sizeHint().height())

    def _line(self) -> float:
        return QFontMetricsF(self.font()).height()

    def _large_line(self) -> float:
        return QFontMetricsF(self._large()).height()

    def _large(self, times: float = LARGE) -> QFont:
        font = QFont(self.font())
        if font.pointSizeF() > 0:
            font.setPointSizeF(font.pointSizeF() * times)
        else:
            font.setPixelSize(round(font.pixelSize() * times))
        font.setBold(True)
        return font

    def _fitting(self) -> QFont:
        """As large as what is said has room for: a translation is longer than a word."""
        wanted = QFontMetricsF(self._large()).horizontalAdvance(f"{self._said}  {self._share}")
        return self._large(min(LARGE, max(SMALL, LARGE * self.width() / max(wanted, 1.0))))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme, line, large = self._theme, self._line(), self._large_line()
        left = self._draw_badge(painter, line) + _GAP
        self._draw(painter, QRectF(left, 0, self.width() - left, line), self._title, theme.text_dim, self.font())
        middle = QRectF(0, line + 2, self.width(), large)
        room = 0.0
        font = self._fitting()
        if self._share:
            metrics = QFontMetricsF(font)
            room = min(metrics.horizontalAdvance(self._share) + _GAP, middle.width() * 0.6)
        taken = self._draw(painter, middle.adjusted(0, 0, -room, 0), self._said, theme.text, font)
        if self._share:
            plain = QFont(font)
            plain.setBold(False)
            self._draw(painter, middle.adjusted(taken + _GAP, 0, 0, 0), self._share, theme.text, plain)
        below = QRectF(0, middle.bottom() + 1, self.width(), line)
        self._draw(painter, below, self._more, theme.text_dim, self.font())

    def _draw_badge(self, painter: QPainter, line: float) -> float:
        """The letter in its colour of the palette of differences; how wide it is."""
        painter.setFont(self.bold_font())
        width = max(line, QFontMetricsF(self.bold_font()).horizontalAdvance(self.letter) + 10)
        badge, place = QRectF(0, 0, width, line), _ENDS[self.letter]
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(*diverging()[place].tolist()) if place >= 0 else QColor(self._theme.surface_hover))
        painter.drawRoundedRect(badge, 5, 5)
        painter.setPen(QColor("#ffffff") if place >= 0 else QColor(self._theme.text))
        painter.drawText(badge, Qt.AlignmentFlag.AlignCenter, self.letter)
        return width

    def _draw(self, painter: QPainter, rect: QRectF, text: str, colour: str, font: QFont) -> float:
        """One line, cut where it does not fit; how wide it is."""
        metrics = QFontMetricsF(font)
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
        painter.setFont(font)
        painter.setPen(QColor(colour))
        painter.drawText(rect, _LEFT, shown)
        return metrics.horizontalAdvance(shown)
