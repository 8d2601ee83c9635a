"""What is looked for in a file of texts."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QLabel, QLineEdit

from attention_explorer.widgets.rows import flowing
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_models.files.text_stream import SUFFIXES
from attention_models.protocol.corpus import WORD, CorpusQuestion
from attention_models.protocol.roles import PATTERNS

KINDS = f"Texts ({' '.join(f'*{suffix}' for suffix in SUFFIXES)});;All files (*)"
_FIELD_LETTERS = 14


class QuestionFields(QObject):
    """What heads are asked about the texts, and whose rows are compared: two rows of fields, each for its page."""

    asked = Signal(object)
    """A `CorpusQuestion`, by a person."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._question = CorpusQuestion()
        self.pattern = WholeListBox()
        self.pattern.setAccessibleName("What heads are asked")
        self.pattern.setToolTip("Rank the heads by how much they attend to it, and list where the selected one does")
        self.pattern.setMinimumContentsLength(16)
        self.pattern.addItem("nothing asked", "")
        for role in PATTERNS:
            self.pattern.addItem(role.title, role.name)
        self.pattern.addItem("a token…", WORD)
        self.word = _field("the token", "The token that heads are asked about, as it is drawn: the, ball")
        self.rows_of = _field("a token", "Whose rows are compared across the texts, as it is drawn: the, ball")
        self.even = QLabel()
        self.even.setProperty("role", "dim")
        self.even.setToolTip("The score of a head that attends evenly to all that it sees")
        self.heads_row = flowing(QLabel("Attends to"), self.pattern, self.word, self.even)
        self.rows_row = flowing(QLabel("Rows of"), self.rows_of)
        self.pattern.activated.connect(lambda _: self._on_pattern())
        self.word.editingFinished.connect(self._ask)
        self.rows_of.editingFinished.connect(self._ask)
        self.show_question(self._question)

    def show_question(self, question: CorpusQuestion) -> None:
        """Show what is asked. Emits nothing."""
        self._question = question
        is_word = question.attends_to.startswith(WORD)
        self.pattern.setCurrentIndex(self.pattern.findData(WORD if is_word else question.attends_to))
        self.word.setText(question.attends_to.removeprefix(WORD) if is_word else "")
        self.word.setVisible(is_word)
        self.rows_of.setText(question.rows_of)

    def _on_pattern(self) -> None:
        is_word = self.pattern.currentData() == WORD
        self.word.setVisible(is_word)
        if is_word:
            self.word.setFocus()
        if not is_word or self.word.text():
            self._ask()

    def _ask(self) -> None:
        pattern, word = self.pattern.currentData(), self.word.text().strip()
        if pattern == WORD:
            pattern = f"{WORD}{word}" if word else ""
        question = CorpusQuestion(pattern or "", self.rows_of.text().strip())
        if question != self._question:
            self.asked.emit(question)


def _field(hint: str, tooltip: str) -> QLineEdit:
    field = QLineEdit()
    field.setPlaceholderText(hint)
    field.setAccessibleName(tooltip)
    field.setToolTip(tooltip)
    field.setMaxLength(200)
    field.setFixedWidth(_FIELD_LETTERS * field.fontMetrics().averageCharWidth())
    return field
