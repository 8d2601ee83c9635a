"""What all forms of a training have: a text to learn from, how long it takes, a seed, and what is said of it."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QWidget

from attention_explorer.widgets.choices_kept import Choice, text_choice
from attention_explorer.widgets.notes_field import NotesField
from attention_explorer.widgets.number_field import WholeBox
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.segments import Segments
from attention_explorer.widgets.themed import set_role
from attention_models.protocol.training_messages import MOST_TEXT

SECONDS, STEPS = range(2)
_SETTLED = 250  # ms: what is typed has come to rest


class TrainingForm(QWidget):
    """A subclass lays these fields out beside its own, and calls `_settle` when something is chosen there."""

    changed = Signal()
    """What is asked for is something else, and has come to rest."""
    refused = Signal(str)
    """A sentence: what was pasted is too long."""

    def __init__(self, steps: int, most_steps: int, parent: QWidget | None = None) -> None:
        """`steps` are those that it takes at first, where it is told to count them."""
        super().__init__(parent)
        self.text = NotesField(MOST_TEXT)
        self.text.setAccessibleName("The text to learn from")
        self.limit = Segments(
            (("Seconds", "Train so long; pauses are not counted"), ("Steps", "Train so many batches")), "How long"
        )
        # Of this form from the first: one that is shown before it has a place would be a window.
        self.seconds, self.steps, self.seed = WholeBox(self), WholeBox(self), seed_box()
        for box, value, most in ((self.seconds, 60, 86_400), (self.steps, steps, most_steps)):
            box.setRange(1, most)
            box.setValue(value)
            box.setAccessibleName("How long")
        self.sentence = wrapped()
        self._settled = QTimer(self)
        self._settled.setSingleShot(True)
        self._settled.setInterval(_SETTLED)
        self._settled.timeout.connect(self.changed)
        for box in (self.seconds, self.steps, self.seed):
            box.valueChanged.connect(self._settle)
        self.text.edited.connect(self._settle)
        self.text.refused.connect(self.refused)
        self.limit.chosen.connect(self._on_limit)
        self._show_limit()

    def say(self, sentence: str, is_refusal: bool) -> None:
        """What is said of what is asked for: why it cannot be trained, or how much there is to learn."""
        self.sentence.setText(sentence)
        set_role(self.sentence, "warning" if is_refusal else "dim")

    # for subclasses

    @property
    def _seconds_and_steps(self) -> tuple[float | None, int | None]:
        """How long it is to take: one of the two."""
        by_steps = self.limit.current == STEPS
        return (None, self.steps.value()) if by_steps else (float(self.seconds.value()), None)

    def _kept_of_all(self, before: str = "") -> dict[str, Choice | QWidget]:
        """What a session file keeps of these fields, by name, with `before` before each."""
        fields: dict[str, Choice | QWidget] = {
            "limit": self.limit,
            "seconds": self.seconds,
            "steps": self.steps,
            "seed": self.seed,
            "text": text_choice(self.text.text, self._put_text),
        }
        return {f"{before}{name}": field for name, field in fields.items()}

    def _settle(self, *_chosen: object) -> None:
        self._settled.start()

    # what a person does

    def _put_text(self, text: str) -> None:
        self.text.set_text(text)
        self._settle()

    def _on_limit(self) -> None:
        self._show_limit()
        self._settle()

    def _show_limit(self) -> None:
        self.seconds.setVisible(self.limit.current == SECONDS)
        self.steps.setVisible(self.limit.current == STEPS)


def seed_box() -> WholeBox:
    box = WholeBox()
    box.setRange(0, 999_999)
    box.setAccessibleName("Seed")
    return box
