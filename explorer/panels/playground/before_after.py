"""A checkpoint as it was and as it has become: the loss of held-out rows, and what each writes after one prompt."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from explorer.panels.playground.pairs import Pairs
from explorer.panels.playground.words import losses, standing
from explorer.session.training import TrainingState
from explorer.widgets.long_words import breakable
from explorer.widgets.page import wrapped

_TWO_COLUMNS = 380  # pixels
_GAP = 8


class BeforeAfter(QWidget):
    compared = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.losses, self.standing, self.sentence = wrapped(role="heading"), wrapped(role="dim"), wrapped()
        self.losses.setToolTip("The mean in nats a token, over rows that it never learns from")
        self.before, self.after = _Side("Before"), _Side("After")
        self.compare = QPushButton("Compare the two")
        self.compare.setToolTip("Show every head of the model before and after, in Compare")
        self.compare.clicked.connect(lambda: self.compared.emit())
        self._sides = Pairs((self.before, self.after), _TWO_COLUMNS, _GAP)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        for label in (self.losses, self.standing, self.sentence):
            column.addWidget(label)
        column.addWidget(self._sides)
        column.addWidget(self.compare, 0, Qt.AlignmentFlag.AlignLeft)
        self.show_training(None)

    def show_training(self, training: TrainingState | None) -> None:
        self.setVisible(training is not None)
        if training is None:
            return
        for label, text in (
            (self.losses, losses(training)),
            (self.standing, standing(training)),
            (self.sentence, training.sentence),
        ):
            label.setText(text)
            label.setVisible(bool(text))
        wrote = training.wrote
        self._sides.setVisible(wrote is not None)
        if wrote is not None:
            self.before.show_text("Before", wrote.prompt, wrote.before)
            self.after.show_text(f"After step {wrote.step:,}", wrote.prompt, wrote.after)
        self.compare.setVisible(training.step > 0)


class _Side(QWidget):
    """What one of the two writes."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.title = QLabel(title)
        self.title.setProperty("role", "title")
        self.prompt, self.text = wrapped(role="dim"), wrapped()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        for label in (self.title, self.prompt, self.text):
            column.addWidget(label)
        column.addStretch(1)

    def show_text(self, title: str, prompt: str, text: str) -> None:
        self.title.setText(title)
        self.prompt.setText(prompt)
        written = text.lstrip() or "It writes nothing: it ends at once."
        shown = breakable(written)
        self.text.setText(shown)
        flags = Qt.TextInteractionFlag
        self.text.setTextInteractionFlags(flags.TextSelectableByMouse if shown == written else flags.NoTextInteraction)
