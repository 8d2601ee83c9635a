"""A field for one of the model's answers: the likeliest are listed, another can be typed."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox

from attention_explorer.session.effects_choices import LONGEST, Answer
from attention_explorer.widgets.whole_list_box import WholeListBox


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
