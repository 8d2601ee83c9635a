"""The answers that a question offers: each may be a sentence, which Qt's buttons do not break into lines."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import QButtonGroup, QFrame, QPushButton, QSizePolicy, QVBoxLayout

from attention_explorer.session.lesson_drafts import LETTERS
from attention_explorer.window.lesson.mask_picture import draw_mask

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
            return
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


class AnswerList(QFrame):
    """Around all answers: it has the keyboard until one is chosen, so that none looks as if it were."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("role", "answers")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Answers")
        self.setAccessibleDescription("An arrow key or a letter chooses an answer, Enter guesses it.")
        self.group = QButtonGroup(self)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(2, 2, 2, 2)
        self._column.setSpacing(4)

    def set_answers(self, answers: Sequence[tuple[str, str]]) -> None:
        """Offer these, none of them chosen: what each says, and the kind of mask that is drawn beside it or ""."""
        for button in self.group.buttons():
            self.group.removeButton(button)
            self._column.removeWidget(button)
            button.deleteLater()
        for index, (say, mask) in enumerate(answers):
            button = OptionButton(LETTERS[index], say, mask)
            self.group.addButton(button, index)
            self._column.addWidget(button)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        buttons, key = self.group.buttons(), Qt.Key(event.key())
        letter = LETTERS.find(event.text().upper()) if event.text() else -1
        at = {Qt.Key.Key_Down: 0, Qt.Key.Key_Right: 0, Qt.Key.Key_Up: -1, Qt.Key.Key_Left: -1}.get(key, letter)
        if not buttons or (key not in _ARROWS and not 0 <= letter < len(buttons)):
            super().keyPressEvent(event)
            return
        buttons[at].click()
        buttons[at].setFocus(Qt.FocusReason.OtherFocusReason)


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
