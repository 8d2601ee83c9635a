"""A field for one of the model's answers: the likeliest are listed, another can be typed."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox

from explorer.widgets.whole_list_box import WholeListBox
from models.protocol.values import Candidate


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
        self.setMinimumContentsLength(10)
        self.addItem(first)
        field = self.lineEdit()
        assert field is not None  # it is editable
        field.setAccessibleName(name)
        field.editingFinished.connect(self.changed)
        self.textActivated.connect(self.changed)

    @property
    def answer(self) -> int | str | None:
        """The id of the answer that is chosen, what was typed, or None for the first entry."""
        text = self.currentText()
        if not text or text == self._first:
            return None
        place = self.findText(text, Qt.MatchFlag.MatchExactly | Qt.MatchFlag.MatchCaseSensitive)
        if place > 0:
            id_: int = self.itemData(place)
            return id_
        return text.replace("␣", " ")

    def offer(self, candidates: Sequence[Candidate]) -> None:
        """List these; what is chosen stays."""
        if [self.itemText(i) for i in range(1, self.count())] != [candidate.label for candidate in candidates]:
            self._fill(candidates, self.currentText())

    def type_answer(self, text: str) -> None:
        """Say this, of a model whose answers are not known yet."""
        self._fill((), text)

    def forget(self) -> None:
        """No answer in particular, of a model whose answers are not known yet."""
        self._fill((), self._first)

    def _fill(self, candidates: Sequence[Candidate], text: str) -> None:
        self.clear()
        self.addItem(self._first)
        for candidate in candidates:
            self.addItem(candidate.label, candidate.id)
        self.setEditText(text)
