"""Which file of texts, and what is looked for in it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QLabel, QLineEdit, QMenu, QPushButton, QWidget

from explorer.widgets import asking
from explorer.widgets.flow_layout import FlowLayout
from explorer.widgets.token_text import apart
from explorer.widgets.whole_list_box import WholeListBox
from models.files.text_stream import SUFFIXES
from models.protocol.corpus import WORD, CorpusQuestion
from models.protocol.roles import PATTERNS

_KINDS = f"Texts ({' '.join(f'*{suffix}' for suffix in SUFFIXES)});;All files (*)"
_FIELD_LETTERS = 14


class FileButton(QPushButton):
    """A menu: a file is chosen in a dialog, or among those chosen lately."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__("File")
        self.setToolTip("Choose a file of texts: .txt, .csv, .tsv or .jsonl")
        self.setMenu(QMenu(self))
        self.menu().setToolTipsVisible(True)
        self._path = ""
        self.show_files("", ())

    def show_files(self, path: str, recent: Sequence[str]) -> None:
        """`path` is the one that is open, `recent` those chosen lately."""
        self._path = path
        menu = self.menu()
        menu.clear()
        menu.addAction("Choose a file…", self.ask)
        others = [other for other in recent if other != path]
        if others:
            menu.addSeparator()
        for other in others:
            action = menu.addAction(apart(Path(other).name).replace("&", "&&"))
            action.setToolTip(other)
            action.triggered.connect(partial(self.chosen.emit, other))

    def ask(self) -> None:
        """Let the person choose a file in a dialog."""
        path = asking.file_to_open(self, "Read a file of texts", self._path, _KINDS)
        if path:
            self.chosen.emit(path)


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
        self.heads_row = _in_a_line(QLabel("Attends to"), self.pattern, self.word, self.even)
        self.rows_row = _in_a_line(QLabel("Rows of"), self.rows_of)
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


def _in_a_line(*widgets: QWidget) -> QWidget:
    row = QWidget()
    flow = FlowLayout(row, gap=6)
    for widget in widgets:
        flow.addWidget(widget)
    return row


def _field(hint: str, tooltip: str) -> QLineEdit:
    field = QLineEdit()
    field.setPlaceholderText(hint)
    field.setAccessibleName(tooltip)
    field.setToolTip(tooltip)
    field.setMaxLength(200)
    field.setFixedWidth(_FIELD_LETTERS * field.fontMetrics().averageCharWidth())
    return field
