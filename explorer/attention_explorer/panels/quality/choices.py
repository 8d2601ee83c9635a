"""What to measure: the task, the sentences, and whether the transformer joins in."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QLabel, QWidget

from attention_explorer.paths import resource
from attention_explorer.widgets import asking
from attention_explorer.widgets.flow_layout import FlowLayout
from attention_explorer.widgets.segments import Segments
from attention_explorer.widgets.token_text import shortened
from attention_models.files.catalogue import DATE_MODELS, RECURRENT_TRANSLATORS, TRANSFORMER_TRANSLATOR
from attention_models.protocol.quality import QualityRequest

TRANSLATION, DATES = range(2)
OURS, FILE = range(2)
_FILTER = "Sentence pairs (*.tsv *.txt *.xz *.zip);;All files (*)"
_FORMATS = (
    "Lines of English, a tab and Spanish, plain or packed by xz; or the zip of manythings.org/anki. "
    "Sentences that were trained on say nothing about new ones."
)


class QualityChoices(QWidget):
    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._file = ""
        self.task = Segments(
            (
                ("English to Spanish", "Whole sentences: where the bottleneck shows"),
                ("Dates", "Short texts, character by character"),
            ),
            "What the models do",
        )
        self.sentences = Segments(
            (
                ("Our sentences", "Written for this program, and among no training data"),
                ("A file…", "Measure on a file of sentence pairs of your own"),
            ),
            "Which sentences",
        )
        self.file_name = QLabel()
        self.file_name.setProperty("role", "dim")
        self.file_name.setTextFormat(Qt.TextFormat.PlainText)
        self.file_name.setToolTip(_FORMATS)
        self.held_out = QCheckBox("Only sentences that training held out")
        self.held_out.setToolTip(
            "The English sentences that the recipe of the included models holds out: 1,500 of the whole "
            "English-Spanish list of Tatoeba. Of another list the rule holds out others."
        )
        self.transformer = QCheckBox("With the transformer en\N{NON-BREAKING HYPHEN}es")
        self.transformer.setToolTip("A third line: the included translator, which was trained on longer sentences too")
        self._flow = FlowLayout(self, gap=14, line_gap=6)
        for widget in (self.task, self.sentences, self.file_name, self.held_out, self.transformer):
            self._flow.addWidget(widget)
        self.task.chosen.connect(lambda _: self._on_changed())
        self.sentences.chosen.connect(self._on_sentences)
        self.held_out.toggled.connect(lambda _: self.changed.emit())
        self.transformer.toggled.connect(lambda _: self.changed.emit())
        self._show()

    def add(self, widget: QWidget) -> None:
        """Put one more choice behind the others."""
        self._flow.addWidget(widget)

    def choose_task(self, task: int) -> None:
        """Without emitting anything."""
        self.task.choose(task)
        self._show()

    @property
    def sentences_asked(self) -> tuple[str, bool]:
        """The file of pairs that is chosen ("" for dates), and whether only those held out of training are measured."""
        if self.task.current == DATES:
            return "", False
        return self._file or str(resource("quality/en-es.tsv")), bool(self._file) and self.held_out.isChecked()

    def leave_file(self) -> None:
        """A file that could not be read names nothing. Without emitting anything."""
        self._file = ""
        self.sentences.choose(OURS)
        self._show()

    def request(self, own: str | None) -> QualityRequest:
        """What is chosen; `own` is a recurrent checkpoint of the person's, which joins in."""
        references: tuple[str, ...]
        if self.task.current == DATES:
            references = DATE_MODELS
        else:
            references = RECURRENT_TRANSLATORS
            if self.transformer.isChecked():
                references = (*references, TRANSFORMER_TRANSLATOR)
        pairs, held_out = self.sentences_asked
        return QualityRequest(
            references=references if own is None else (*references, own), pairs=pairs, held_out=held_out
        )

    def _on_sentences(self, choice: int) -> None:
        if choice == FILE:
            path = asking.file_to_open(self, "Open a file of sentence pairs", self._file, _FILTER)
            self._file = path or self._file
        else:
            self._file = ""
        self.sentences.choose(FILE if self._file else OURS)
        self._on_changed()

    def _on_changed(self) -> None:
        self._show()
        self.changed.emit()

    def _show(self) -> None:
        translation = self.task.current == TRANSLATION
        self.sentences.setVisible(translation)
        self.transformer.setVisible(translation)
        self.file_name.setVisible(translation and bool(self._file))
        self.held_out.setVisible(translation and bool(self._file))
        self.file_name.setText(shortened(Path(self._file).name))
