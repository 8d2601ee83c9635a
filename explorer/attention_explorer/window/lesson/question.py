"""The card of a question: ways to answer it, Reveal, and what the model says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QPalette, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QSizePolicy,
    QSlider,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.session.lesson_drafts import LETTERS
from attention_explorer.session.lessons import Ask
from attention_explorer.session.statements import Value
from attention_explorer.widgets.number_field import RealBox
from attention_explorer.widgets.page import wrapped
from attention_models.protocol.facts import spans
from attention_models.protocol.mask_kinds import MASK_KINDS

# The answers that a question offers: each may be a sentence, which Qt's buttons do not break into lines.


# A mask in a few cells: which keys, across, each query, downwards, may attend to.


CELLS = 6
_NUMBERS = {"padding": 2, "window": 3, "blocks": 3, "prefix": 3}
"""Of kinds that have one: what shows in so few cells."""


def is_visible(kind: str, query: int, key: int) -> bool:
    """Whether the picture of a kind has this cell filled. A window is one that looks back, as a decoder's."""
    seen = bool(MASK_KINDS[kind].allows(query, key, _NUMBERS.get(kind, 1), CELLS))
    return seen and (kind != "window" or key <= query)


def draw_mask(painter: QPainter, kind: str, area: QRectF, ink: QColor) -> None:
    """Visible cells filled, masked ones empty. `area` is a square."""
    side = area.width() / CELLS
    faint = QColor(ink)
    faint.setAlpha(110)
    painter.save()
    painter.setPen(QPen(faint, 1))
    for query in range(CELLS):
        for key in range(CELLS):
            cell = QRectF(area.left() + key * side, area.top() + query * side, side, side).adjusted(0.5, 0.5, -1, -1)
            if is_visible(kind, query, key):
                painter.fillRect(cell, ink)
            else:
                painter.drawRect(cell)
    painter.restore()


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
