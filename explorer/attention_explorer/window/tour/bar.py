"""The bar along the bottom of the window that says a step of a tour, or offers the tour."""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QFont, QFontMetrics, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy

from attention_explorer.look.theme import SMALLEST_FONT
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.screens import is_low
from attention_explorer.widgets.themed import set_role

Button = Literal["back", "show", "next", "later", "never"]

_TIPS: dict[Button, str] = {
    "back": "The step before (Alt+PgUp)",
    "show": "Let the program do it (Alt+PgDown)",
    "next": "Go on (Alt+PgDown)",
    "later": "Close it; Help has it, at this step (Esc)",
    "never": "Do not offer it again; Help still has it",
}


_WIDE = 64
"""Heights of a line that are wide enough for the title beside the sentence: it costs the panels no line."""

_AROUND = 6
_SMALLER = 0.72


class TourBar(QFrame):
    """A title, a sentence and buttons. It takes no keyboard focus by itself, and nothing is behind it."""

    pressed = Signal(str)  # a `Button`

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("role", "tour")
        self.setAccessibleName("Tour")
        self.step = QLabel()
        self.step.setProperty("role", "dim")
        self.title = QLabel()
        self.title.setProperty("role", "title")
        for label in (self.step, self.title):
            label.setTextFormat(Qt.TextFormat.PlainText)
        self.text = wrapped()
        self.text.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.buttons: dict[Button, QPushButton] = {}
        self._lines = 2
        self._head = QBoxLayout(QBoxLayout.Direction.LeftToRight)  # the title, and which step it is
        self._head.addStretch(0)
        self._head.addWidget(self.title)
        self._head.addWidget(self.step)
        self._head.addStretch(1)
        self._words = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        self._words.addLayout(self._head)
        self._words.addWidget(self.text, 1)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, _AROUND, 12, _AROUND)
        row.setSpacing(8)
        row.addLayout(self._words, 1)
        for name, tip in _TIPS.items():
            button = QPushButton()
            button.setToolTip(tip)
            button.clicked.connect(lambda _checked=False, name=name: self.pressed.emit(name))
            button.hide()
            self.buttons[name] = button
            row.addWidget(button, 0, Qt.AlignmentFlag.AlignVCenter)
        self._lay_out()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._lay_out()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()

    def _lay_out(self) -> None:
        """The title beside the sentence where that has room, else above it; smaller where large text leaves few lines,
        for what a step points at has to be seen too.
        """
        if not hasattr(self, "_words"):
            return
        font, size = QFont(self.font()), self.font().pointSizeF()
        font.setPointSizeF(size * _SMALLER if is_low(self) and size * _SMALLER >= SMALLEST_FONT else size)
        for widget in (self.step, self.text, *self.buttons.values()):
            widget.setFont(font)
        bold = QFont(font)
        bold.setWeight(QFont.Weight.DemiBold)  # a font that is set outweighs the style's
        self.title.setFont(bold)
        line = QFontMetrics(font).lineSpacing()
        is_wide = self.width() >= _WIDE * line
        across, down = QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.TopToBottom
        self._words.setDirection(across if is_wide else down)
        self._words.setSpacing(24 if is_wide else 2)
        self._head.setDirection(down if is_wide else across)
        self._head.setSpacing(0 if is_wide else 10)
        self._head.setStretch(0, 1 if is_wide else 0)
        self.text.setMinimumHeight(self._lines * line)  # whatever is said: panels stay where they are from step to step

    def say(self, step: str, title: str, text: str, buttons: dict[Button, str], primary: Button | None = None) -> None:
        """Say this, with these buttons and what stands on them; the `primary` one carries the accent.

        What is no step is short, and has the height of one line.
        """
        self._lines = 2 if step else 1
        self._lay_out()
        self.step.setVisible(bool(step))
        self.step.setText(step)
        self.title.setText(title)
        if text != self.text.text():
            self.text.setText(text)
            self.setAccessibleDescription(f"{step}: {title}. {text}")
        for name, button in self.buttons.items():
            had_focus = self.window().focusWidget() is button
            button.setVisible(name in buttons)
            button.setText(buttons.get(name, ""))
            set_role(button, "primary" if name == primary else None)
            if had_focus and name not in buttons and primary is not None:
                self.buttons[primary].setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.pressed.emit("later")
        else:
            super().keyPressEvent(event)
