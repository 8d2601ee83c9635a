"""One of the answers that a question offers: it may be a sentence, which Qt's buttons do not break into lines."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import QPushButton, QSizePolicy

from explorer.window.lesson.mask_picture import draw_mask

_ARROWS = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Right)
_AROUND = 26  # pixels of its frame and padding
_INDENT = "     "  # of lines after the first, below the words and not the letter


class OptionButton(QPushButton):
    """As wide as it is given, its text in as many lines as that takes."""

    def __init__(self, letter: str, say: str, mask: str = "") -> None:
        """`mask` is a kind of mask, whose picture stands at the right; "" for none."""
        super().__init__()
        self.drawn = mask
        self.setCheckable(True)
        self.setProperty("role", "option")
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(say)
        self._words = f"{letter}   {say}"
        self._break()

    def mark_right(self) -> None:
        self._words += "   ✓"
        self._break()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrow keys choose: Qt moves a choice of a group by them, but does not begin one."""
        if event.key() in _ARROWS and self.group().checkedId() < 0:
            self.click()
        super().keyPressEvent(event)

    def minimumSizeHint(self) -> QSize:
        return QSize(60, self.sizeHint().height())

    def sizeHint(self) -> QSize:
        hint = super().sizeHint()
        return QSize(hint.width(), max(hint.height(), self._side + 10)) if self.drawn else hint

    @property
    def _side(self) -> int:
        """Of the picture, in pixels: about two lines of text."""
        return 2 * QFontMetrics(self.font()).height() + 4

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.drawn:
            side = self._side
            area = QRectF(self.width() - side - 10, (self.height() - side) / 2, side, side)
            draw_mask(QPainter(self), self.drawn, area, self.palette().color(QPalette.ColorRole.ButtonText))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._break()

    def _break(self) -> None:
        bold = QFont(self.font())
        bold.setBold(True)  # as it is once chosen
        width = self.width() - _AROUND - (self._side if self.drawn else 0)
        text = "\n".join(lines_of(self._words, QFontMetrics(bold), width)).replace("&", "&&")
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
