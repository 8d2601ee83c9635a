"""The bar along the bottom of the window that says a step of a tour, or offers the tour."""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout

from explorer.widgets.page import wrapped

Button = Literal["back", "show", "next", "later", "never"]

_TIPS: dict[Button, str] = {
    "back": "The step before (Alt+PgUp)",
    "show": "Let the program do it (Alt+PgDown)",
    "next": "Go on (Alt+PgDown)",
    "later": "Close it; Help has it, at this step (Esc)",
    "never": "Do not offer it again; Help still has it",
}


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
        head = QHBoxLayout()
        head.setSpacing(10)
        head.addWidget(self.title)
        head.addWidget(self.step)
        head.addStretch(1)
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addLayout(head)
        words.addWidget(self.text)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 8, 12, 8)
        row.setSpacing(8)
        row.addLayout(words, 1)
        self._keep_height()
        for name, tip in _TIPS.items():
            button = QPushButton()
            button.setToolTip(tip)
            button.clicked.connect(lambda _checked=False, name=name: self.pressed.emit(name))
            button.hide()
            self.buttons[name] = button
            row.addWidget(button, 0, Qt.AlignmentFlag.AlignVCenter)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._keep_height()

    def _keep_height(self) -> None:
        """Room for two lines, whatever is said: panels stay where they are from step to step."""
        if hasattr(self, "text"):
            self.text.setMinimumHeight(2 * self.fontMetrics().lineSpacing())

    def say(self, step: str, title: str, text: str, buttons: dict[Button, str], primary: Button | None = None) -> None:
        """Say this, with these buttons and what stands on them; the `primary` one carries the accent."""
        self.step.setText(step)
        self.title.setText(title)
        if text != self.text.text():
            self.text.setText(text)
            self.setAccessibleDescription(f"{step}: {title}. {text}")
        for name, button in self.buttons.items():
            had_focus = self.window().focusWidget() is button
            button.setVisible(name in buttons)
            button.setText(buttons.get(name, ""))
            role = "primary" if name == primary else None
            if button.property("role") != role:
                button.setProperty("role", role)
                button.style().unpolish(button)
                button.style().polish(button)
            if had_focus and name not in buttons and primary is not None:
                self.buttons[primary].setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.pressed.emit("later")
        else:
            super().keyPressEvent(event)
