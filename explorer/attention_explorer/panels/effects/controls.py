"""What is chosen above the cells of Effects: answers, the other text, what is copied, whose rank is followed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QLabel, QLineEdit, QPushButton

from attention_explorer.panels.effects.pages import readings
from attention_explorer.panels.effects.questions import HEADS, LENS, PATCH, View, aim_of, has_loss
from attention_explorer.session.effects_choices import LONGEST, Answer
from attention_explorer.session.state import State
from attention_explorer.widgets.labels import SaidLabel
from attention_explorer.widgets.layouts import below, flowing, in_row
from attention_explorer.widgets.token_text import shortened
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_models.protocol.effects import Align, LensView, Patched, PatchView


class AnswerBox(WholeListBox):
    """Its first entry stands for no answer in particular."""

    changed = Signal()
    """A person chose another answer, or typed one."""

    def __init__(self, name: str, first: str) -> None:
        super().__init__()
        self._first = first
        self.setEditable(True)
        self.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.setAccessibleName(name)
        self.setToolTip(f"{name}: choose one, or type a token as it stands in a text")
        self.setMinimumContentsLength(max(10, len(first)))
        self.addItem(first)
        field = self.lineEdit()
        assert field is not None  # it is editable
        field.setAccessibleName(name)
        field.setMaxLength(LONGEST)
        field.editingFinished.connect(self._settle)
        self.textActivated.connect(self._settle)

    @property
    def answer(self) -> Answer | None:
        """The answer that is chosen or was typed; None for the first entry."""
        text = self.currentText()
        if not text or text == self._first:
            return None
        place = self.findText(text, Qt.MatchFlag.MatchExactly | Qt.MatchFlag.MatchCaseSensitive)
        return Answer(text, self.itemData(place) if place > 0 else None)

    def _settle(self) -> None:
        field = self.lineEdit()
        assert field is not None
        field.setModified(False)
        self.changed.emit()

    def show_answer(self, answer: Answer | None) -> None:
        """Say what was chosen elsewhere; emits nothing."""
        field = self.lineEdit()
        if answer != self.answer and field is not None and not field.isModified():  # nobody is typing
            self._say(self._first if answer is None else answer.label)

    def offer(self, answers: Sequence[Answer]) -> None:
        """List these; what is chosen stays."""
        if [self.itemText(i) for i in range(1, self.count())] == [answer.label for answer in answers]:
            return
        text = self.currentText()
        self.clear()
        self.addItem(self._first)
        for answer in answers:
            self.addItem(answer.label, answer.id)
        self._say(text)

    def _say(self, text: str) -> None:
        self.setEditText(text)
        field = self.lineEdit()
        if field is not None and not field.hasFocus():
            field.setCursorPosition(0)  # its beginning shows


_KINDS: tuple[tuple[Patched, str], ...] = (
    ("residual", "the stream at a token"),
    ("attention", "what attention adds at a token"),
    ("mlp", "what the network adds at a token"),
    ("head", "the output of a head"),
    ("pattern", "the weights of a head"),
)
_ALIGNS: tuple[tuple[Align, str], ...] = (
    ("same", "same length"),
    ("start", "from the start"),
    ("end", "from the end"),
    ("tokens", "equal tokens"),
)
_OFFERS: tuple[tuple[Align, str, str], ...] = (
    ("tokens", "Align equal tokens", "Equal tokens stand for each other, in order"),
    ("start", "Pad at the end", "Tokens are counted from the start, as if the shorter text were padded at its end"),
    ("end", "Count from the end", "The last tokens stand for each other, and so on backwards"),
)


class EffectsControls(QObject):
    """Rows of widgets; the panel puts them in their places."""

    asked = Signal(object)
    """Fields of `EffectsChoices` that a person changed, with their values."""

    def __init__(self) -> None:
        super().__init__()
        self.target = AnswerBox("Which answer is measured", "the likeliest")
        self.against = AnswerBox("Less which other answer", "nothing")
        self.followed = AnswerBox("Whose rank is followed", "the final answer")
        self._boxes = {"target": self.target, "against": self.against, "followed": self.followed}
        for field, box in self._boxes.items():
            box.changed.connect(partial(self._on_answer, field))
        self.at = SaidLabel()
        self.at.setProperty("role", "dim")
        self.loss = QCheckBox("Loss")
        self.loss.setToolTip("The mean loss over the text's own next tokens, in the place of one logit")
        self.loss.clicked.connect(lambda on: self.asked.emit({"loss": on}))
        self.other = QLineEdit()
        self.other.setAccessibleName("The other text")
        self.other.setPlaceholderText("The other text, as long as this one")
        self.other.setMaxLength(LONGEST)
        self.other.editingFinished.connect(self._on_other)
        self.kind = _choice_box("What is copied", _KINDS)
        self.kind.activated.connect(lambda place: self.asked.emit({"copied": self.kind.itemData(place)}))
        self.align = _choice_box("Which token stands for which", _ALIGNS)
        self.align.activated.connect(lambda place: self.asked.emit({"aligned": self.align.itemData(place)}))
        self.offers = {align: QPushButton(label) for align, label, _ in _OFFERS}
        for align, _, tip in _OFFERS:
            self.offers[align].setToolTip(tip)
            self.offers[align].clicked.connect(partial(self._on_offer, align))
        self.strongest = QPushButton("Strongest")
        self.strongest.setToolTip("Select the head without which most changes")
        self.without = QPushButton("Without this head")
        self.without.setCheckable(True)
        self.without.setToolTip("Set the output of the selected head to 0; again to put it back")
        self.aim_row = flowing(QLabel("Of"), self.target, QLabel("less"), self.against, self.loss, self.at)
        self.patch_row = below(in_row(QLabel("From"), self.other), flowing(QLabel("copy"), self.kind, self.align))
        self.lens_row = flowing(QLabel("Rank of"), self.followed)
        self.align_row = flowing(*self.offers.values())
        self.head_row = flowing(self.strongest, self.without)
        self._asked: dict[str, Answer | None] = {}
        self._other = ""

    # ----------------------------------------------------------------- what it shows

    def show_state(self, state: State, page: int, why: str) -> None:
        """`why` a page has nothing to show of this model; then there is nothing to choose."""
        asked = state.document.effects
        self._asked = {"target": asked.target, "against": asked.against, "followed": asked.followed}
        for field, box in self._boxes.items():
            box.show_answer(self._asked[field])
        self.loss.setChecked(asked.loss)
        self._other = asked.other
        if self.other.text() != asked.other and not self.other.isModified():  # nobody is typing
            self.other.setText(asked.other)
            self.other.setCursorPosition(0)
        for choice, value in ((self.kind, asked.copied), (self.align, asked.aligned)):
            choice.setCurrentIndex(choice.findData(value))
        self.aim_row.setVisible(page != LENS and not why)
        self.patch_row.setVisible(page == PATCH and not why)
        self.lens_row.setVisible(page == LENS and not why)
        self.head_row.setVisible(page == HEADS and not why)
        self.loss.setVisible(page in (HEADS, PATCH) and has_loss(state))
        if page != PATCH:
            self.align_row.hide()
        self._say_where(state, page)

    def _say_where(self, state: State, page: int) -> None:
        """At which token the answer is read: what Next lists is of the same."""
        ran, label = state.ran, ""
        if ran is not None and page != LENS and ran.seen is None:
            aim = aim_of(page, state)
            if aim.measure != "loss" and aim.position is not None and aim.position < len(ran.tokens):
                label = f"at “{shortened(ran.tokens[aim.position].word)}” ({aim.position})"
        self.at.setText(label)
        self.at.setVisible(bool(label))

    def show_view(self, view: View, position: int) -> None:
        """What can be chosen from, now that there is an answer."""
        if isinstance(view, LensView):
            self.followed.offer(readings(view, position))
            self.lens_row.setVisible(not view.why)
            return
        answers = [Answer(candidate.label, candidate.id) for candidate in view.aim.candidates]
        self.target.offer(answers)
        self.against.offer(answers)
        self.align_row.setVisible(isinstance(view, PatchView) and bool(view.why))

    # ----------------------------------------------------------------- what is pressed

    def _on_answer(self, field: str) -> None:
        answer, before = self._boxes[field].answer, self._asked.get(field)
        if answer is not None and before is not None and answer == Answer(before.label):
            return  # it is not in the list any more, and is the same
        if answer != before:
            self.asked.emit({field: answer})

    def _on_other(self) -> None:
        self.other.setModified(False)
        self.other.setCursorPosition(0)
        if self.other.text() != self._other:
            self.asked.emit({"other": self.other.text()})

    def _on_offer(self, align: Align) -> None:
        self.asked.emit({"aligned": align})


def _choice_box(name: str, choices: Sequence[tuple[Any, str]]) -> QComboBox:
    """Of (value, what it is called)."""
    box = WholeListBox()
    for value, text in choices:
        box.addItem(text, value)
    box.setMinimumContentsLength(14)
    box.setAccessibleName(name)
    box.setToolTip(name)
    return box
