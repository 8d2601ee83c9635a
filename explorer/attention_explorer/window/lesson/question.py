"""The card of a question: ways to answer it, Reveal, and what the model says."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QSlider,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.session.lessons import Ask
from attention_explorer.session.statements import Value
from attention_explorer.widgets.number_field import RealBox
from attention_explorer.widgets.page import wrapped
from attention_explorer.window.lesson.option_button import AnswerList, OptionButton
from attention_models.protocol.facts import spans

_FINE = 200
"""Positions of the slider of a number card."""

_CLICK = "Click in the covered row, in the column of the token that you mean; or ← → there, and Enter."
_CELLS = "Click the cells of the row that can be seen, or drag over them; or ← → and Space there, and Enter."


class QuestionCard(QFrame):
    """One question. Nothing of what is right is known to it until `show_verdict`."""

    answered = Signal(object)
    """Reveal was pressed with this answer: an option's number, a number, or a word."""

    def __init__(self) -> None:
        super().__init__()
        self.question = wrapped("", "title")
        self.question.setTextFormat(Qt.TextFormat.PlainText)
        self.options = AnswerList()
        self._group = self.options.group
        self._group.idClicked.connect(lambda _: self._enable())
        self.number, self.slider = RealBox(), QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, _FINE)
        self.slider.setAccessibleName("Your guess")
        self.number.setAccessibleName("Your guess, as a number")
        self.numbers = QWidget()
        row = QHBoxLayout(self.numbers)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.slider, 1)
        row.addWidget(self.number)
        self.slider.valueChanged.connect(self._on_slider)
        self.number.valueChanged.connect(self._on_number)
        self.word = QLineEdit()
        self.word.setMaxLength(60)
        self.word.setPlaceholderText("Your word")
        self.word.textChanged.connect(lambda _: self._enable())
        self.clicked = wrapped(_CLICK)
        self.clicked.setTextFormat(Qt.TextFormat.PlainText)
        self.reveal = QPushButton("Reveal")
        self.reveal.setProperty("role", "primary")
        self.reveal.setAutoDefault(True)  # Enter presses it, also outside of a dialog
        self.reveal.clicked.connect(self.answer)
        self.verdict = wrapped("", "title")
        self.said = QLabel()
        self.said.setTextFormat(Qt.TextFormat.MarkdownText)
        self.said.setWordWrap(True)
        self.said.setOpenExternalLinks(False)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 8, 10, 10)
        column.setSpacing(6)
        for part in (self.question, self.options, self.numbers, self.word, self.clicked):
            column.addWidget(part)
        column.addWidget(self.reveal, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self.verdict)
        column.addWidget(self.said)
        self._ask: Ask | None = None
        self._token = ""
        """The word of the token that was clicked, or the places of the keys that were."""
        self._scale = 1
        """What a number is shown times: a share in per cent."""
        self._is_touched = False
        self._is_ready = False

    def say(self, question: str) -> None:
        """The question's words, with those of its figures that are there."""
        self.question.setText(question)

    def show_question(self, ask: Ask, is_share: bool, masks: Mapping[int, str] | None = None) -> None:
        """Begin anew. A number that `is_share` is guessed in per cent; `masks` are drawn beside options, by place."""
        self._ask, self._token, self._scale, self._is_touched = ask, "", 100 if is_share else 1, False
        self.options.set_answers([(o.say, (masks or {}).get(i, "")) for i, o in enumerate(ask.options)])
        self.options.setVisible(bool(ask.options))
        self.numbers.setVisible(ask.number is not None)
        self.word.setVisible(ask.word is not None)
        self.clicked.setVisible(ask.click is not None or ask.cells is not None)
        self.clicked.setText(_CLICK if ask.cells is None else _CELLS)
        self.word.clear()
        scale = self._scale
        width = (ask.high - ask.low) * scale
        self.number.blockSignals(True)
        self.number.setDecimals(0 if width >= 50 else 2)
        self.number.setRange(ask.low * scale, ask.high * scale)
        self.number.setSuffix(" %" if is_share else "")
        self.number.setValue((ask.low + ask.high) / 2 * scale)
        self.number.blockSignals(False)
        self.slider.blockSignals(True)
        self.slider.setValue(_FINE // 2)
        self.slider.blockSignals(False)
        self._set_open(True)
        self.reveal.show()
        self.verdict.hide()
        self.said.hide()
        self._enable()

    def set_ready(self, ready: bool) -> None:
        """Whether the model's own answer has been computed."""
        if ready != self._is_ready:
            self._is_ready = ready
            self._enable()

    def take_token(self, word: str) -> None:
        """A token was clicked."""
        if self._ask is not None and self._ask.click is not None and not self.reveal.isHidden():
            self._token = word
            self.clicked.setText(f"Your guess: “{word}”. Click another one to change it.")
            self._enable()

    def take_keys(self, keys: frozenset[int]) -> None:
        """Cells of the covered row were clicked."""
        if self._ask is not None and self._ask.cells is not None and not self.reveal.isHidden():
            self._token = spans(keys)
            tokens = "1 token" if len(keys) == 1 else f"{len(keys):,} tokens"
            self.clicked.setText(f"Your guess: {tokens}, {self._token}." if keys else _CELLS)
            self._enable()

    @property
    def given(self) -> Value | None:
        """What is answered so far; None where nothing is."""
        ask = self._ask
        if ask is None:
            return None
        if ask.options:
            return None if self._group.checkedId() < 0 else float(self._group.checkedId())
        if ask.number is not None:
            return self.number.value() / self._scale if self._is_touched else None
        return (self.word.text().strip() if ask.word is not None else self._token) or None

    @property
    def given_text(self) -> str:
        ask, given = self._ask, self.given
        if ask is None or given is None:
            return ""
        if ask.options:
            return ask.options[int(given)].say
        return self.number.text() if ask.number is not None else str(given)

    def show_verdict(self, right: bool, right_options: tuple[int, ...], said: str) -> None:
        """Say whether it was right, and what the model says."""
        self._set_open(False)
        self.reveal.hide()
        self.verdict.setText("✓  Right." if right else "✗  Not quite.")
        self.verdict.show()
        for index in right_options:
            button = self._group.button(index)
            if isinstance(button, OptionButton):
                button.mark_right()
        self.said.setText(said)
        self.said.setVisible(bool(said))

    def _set_open(self, on: bool) -> None:
        for part in (self.options, self.numbers, self.word):
            part.setEnabled(on)

    @property
    def first_answer(self) -> QWidget:
        """What the keyboard answers with."""
        ask = self._ask
        if ask is None or not (ask.options or ask.number or ask.word):
            return self.reveal
        if ask.options:
            return self._group.checkedButton() or self.options
        return self.slider if ask.number is not None else self.word

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter, in any part of the card that has no use for it, guesses what is chosen or written."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.answer()
        else:
            super().keyPressEvent(event)

    def answer(self) -> None:
        """Guess what is chosen so far, where something is and the model's own answer is there."""
        if self.reveal.isEnabled() and not self.reveal.isHidden():
            self.answered.emit(self.given)

    def _enable(self) -> None:
        self.reveal.setEnabled(self._is_ready and self.given is not None)
        self.reveal.setText("Reveal" if self._is_ready else "Running…")

    def _on_slider(self, place: int) -> None:
        low, high = self.number.minimum(), self.number.maximum()
        self.number.blockSignals(True)
        self.number.setValue(low + (high - low) * place / _FINE)
        self.number.blockSignals(False)
        self._touch()

    def _on_number(self, value: float) -> None:
        low, high = self.number.minimum(), self.number.maximum()
        self.slider.blockSignals(True)
        self.slider.setValue(round(_FINE * (value - low) / (high - low)))
        self.slider.blockSignals(False)
        self._touch()

    def _touch(self) -> None:
        self._is_touched = True
        self._enable()
