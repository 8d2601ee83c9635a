"""The page Fine-tune: which checkpoint goes on learning, from what and how; and what it says before and after."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from explorer.panels.playground.before_after import BeforeAfter
from explorer.session.training import TrainingState
from explorer.widgets.beside import beside, flowing
from explorer.widgets.choices_kept import Choice, data_choice, text_choice
from explorer.widgets.file_button import FileButton
from explorer.widgets.notes_field import NotesField
from explorer.widgets.number_field import RealBox, WholeBox
from explorer.widgets.page import wrapped
from explorer.widgets.role import set_role
from explorer.widgets.segments import Segments
from explorer.widgets.token_text import isolated
from explorer.widgets.whole_list_box import WholeListBox
from models.files.catalogue import TUNABLE
from models.protocol.training_messages import MOST_PROMPT, MOST_TEXT, AskedTuning, Tuned

OPEN = ""
"""Stands in the list for the checkpoint that is open."""

PASTED, FILE = range(2)
TUNED: tuple[Tuned, ...] = ("all", "head", "lora")
SECONDS, STEPS = range(2)
_KINDS = "Texts and tables (*.txt *.tsv *.csv *.md);;All files (*)"
_SETTLED = 250  # ms: what is typed has come to rest


class FineTunePage(QWidget):
    changed = Signal()
    """What is asked for is something else, and has come to rest."""
    refused = Signal(str)
    """A sentence: what was pasted is too long."""
    prompted = Signal(str)
    """The model is to go on from this, as it was and as it is."""
    compared = Signal()
    """Both are to be shown in Compare."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.open_reference = self._path = self._usual_prompt = ""
        self._build()
        self.result = BeforeAfter()
        self.sentence = wrapped()
        self._settled = QTimer(self)
        self._settled.setSingleShot(True)
        self._settled.setInterval(_SETTLED)
        self._settled.timeout.connect(self.changed)
        self._lay_out()
        self._connect()
        self.show_open("", "", "")
        self._show_choices()

    def _build(self) -> None:
        self.checkpoint = WholeListBox()
        self.checkpoint.setMinimumContentsLength(18)
        self.checkpoint.setToolTip("What goes on learning. The checkpoint itself stays as it is: its copy learns")
        self.checkpoint.setAccessibleName("Checkpoint")
        for name in (OPEN, *TUNABLE):
            self.checkpoint.addItem(name, name)
        self.source = Segments(
            (
                ("Text", "A text that is pasted or typed here. Lines with one tab each are two columns"),
                ("File", "A text, or two columns, an input and an output in each line: tabs, or .csv"),
            ),
            "What it learns from",
        )
        self.text = NotesField(MOST_TEXT)
        self.text.setPlaceholderText("Paste what it is to learn. The last tenth of a text is held out.")
        self.text.setAccessibleName("The text to learn from")
        self.text.setMinimumHeight(70)
        self.text.setMaximumHeight(120)
        self.file = FileButton(
            "Choose a file", "A text, or two columns: an input and an output", "A file to learn from", _KINDS
        )
        self.file_name = QLabel()
        self.tuned = Segments(
            (
                ("All weights", "Every number of the model changes"),
                ("Head alone", "The matrix that gives the logits, parted from the embedding where the two are one"),
                ("LoRA", "The weights stay, and a small matrix product is added to each: Hu et al. 2022, by peft"),
            ),
            "What is trained",
        )
        self.rank, self.seed, self.seconds, self.steps = WholeBox(), WholeBox(), WholeBox(), WholeBox()
        self.rate = RealBox()
        self.rank.setRange(1, 256)
        self.rank.setValue(8)
        self.rank.setToolTip("Columns of the first of an adapter's two matrices, and rows of the second")
        self.seed.setRange(0, 999_999)
        self.seed.setToolTip("Decides the batches and the dropout: the same seed, the same model")
        self.rate.setDecimals(6)
        self.rate.setRange(0.0, 1.0)
        self.rate.setSingleStep(0.0001)
        self.rate.setSpecialValueText("usual")
        self.rate.setToolTip("AdamW's learning rate. Usual is 0.0002 for all weights, 0.001 for the head and for LoRA")
        self.limit = Segments(
            (("Seconds", "Train so long; pauses are not counted"), ("Steps", "Train so many batches")), "How long"
        )
        for box, value, most in ((self.seconds, 60, 86_400), (self.steps, 100, 1_000_000)):
            box.setRange(1, most)
            box.setValue(value)
            box.setAccessibleName("How long")
        self.prompt = QLineEdit()
        self.prompt.setAccessibleName("Prompt")
        self.prompt.setMaxLength(MOST_PROMPT)
        self.prompt.setToolTip("The model goes on from this twice: as it was, and as it is")
        self.write = QPushButton("Write")
        self.write.setToolTip("Let the model go on from this, as it was and as it is now")

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 2, 6, 4)
        column.setSpacing(8)
        prompt = QLabel("Prompt")
        prompt.setBuddy(self.prompt)
        self._rank = _named("Rank", self.rank)
        column.addWidget(self.result)
        column.addWidget(beside(prompt, self.prompt, self.write))
        column.addWidget(flowing(_named("Checkpoint", self.checkpoint), self.source, self.file, self.file_name))
        column.addWidget(self.text)
        column.addWidget(flowing(self.tuned, self._rank))
        column.addWidget(
            flowing(self.limit, self.seconds, self.steps, _named("Rate", self.rate), _named("Seed", self.seed))
        )
        column.addWidget(self.sentence)
        column.addStretch(1)

    def _connect(self) -> None:
        self.checkpoint.currentIndexChanged.connect(lambda _: self._settled.start())
        for segments in (self.source, self.tuned, self.limit):
            segments.chosen.connect(lambda _: self._on_choice())
        for box in (self.rank, self.seed, self.seconds, self.steps, self.rate):
            box.valueChanged.connect(lambda _: self._settled.start())
        self.text.edited.connect(lambda _: self._settled.start())
        self.text.refused.connect(self.refused)
        self.file.chosen.connect(self._on_file)
        self.write.clicked.connect(self._on_write)
        self.prompt.returnPressed.connect(self._on_write)
        self.result.compared.connect(self.compared)

    # what is asked

    def asked(self) -> AskedTuning:
        is_file, steps = self.source.current == FILE, self.limit.current == STEPS
        tuned = TUNED[self.tuned.current]
        return AskedTuning(
            checkpoint=self.checkpoint.currentData() or self.open_reference,
            text="" if is_file else self.text.text(),
            file=self._path if is_file else "",
            tuned=tuned,
            rank=self.rank.value() if tuned == "lora" else 0,
            rate=self.rate.value() or None,
            seed=self.seed.value(),
            prompt=self.prompt.text() or self._usual_prompt,
            seconds=None if steps else float(self.seconds.value()),
            steps=self.steps.value() if steps else None,
        )

    def kept(self) -> Mapping[str, Choice | QWidget]:
        """What a session file keeps, by name. A file is not: another computer has none there."""
        return {
            "tuned checkpoint": data_choice(self.checkpoint),
            "tuned from": self.source,
            "tuned": self.tuned,
            "tuned rank": self.rank,
            "tuned limit": self.limit,
            "tuned seconds": self.seconds,
            "tuned steps": self.steps,
            "tuned rate": self.rate,
            "tuned seed": self.seed,
            "tuned prompt": text_choice(self.prompt.text, self.prompt.setText),
            "tuned text": text_choice(self.text.text, self._put_text),
        }

    # what a person does

    def _put_text(self, text: str) -> None:
        self.text.set_text(text)
        self._settled.start()

    def _on_choice(self) -> None:
        self._show_choices()
        self._settled.start()

    def _on_file(self, path: str) -> None:
        self._path = path
        self.file.show_files(path, ())
        self._show_choices()
        self._settled.start()

    def _on_write(self) -> None:
        prompt = self.prompt.text() or self._usual_prompt
        if self.write.isEnabled() and prompt.strip():
            self.prompted.emit(prompt)

    # what is shown

    def show_open(self, reference: str, title: str, text: str) -> None:
        """Which checkpoint goes on learning where no other is chosen, and what is gone on from where nothing is."""
        self.open_reference = reference
        if self.checkpoint.itemText(0) != title:
            self.checkpoint.setItemText(0, isolated(title) or "the one that is open")
        self._usual_prompt = text if len(text) <= MOST_PROMPT else ""
        self.prompt.setPlaceholderText(self._usual_prompt or "A beginning, a sentence to translate, or one with masks")

    def say(self, sentence: str, is_refusal: bool) -> None:
        """What is said below the form: why it cannot be tuned, or how much there is to learn, and to learn from."""
        self.sentence.setText(sentence)
        set_role(self.sentence, "warning" if is_refusal else "dim")

    def show_training(self, training: TrainingState | None) -> None:
        """What became of it, where what is trained here is a checkpoint that goes on learning."""
        tuning = training if training is not None and isinstance(training.asked, AskedTuning) else None
        self.result.show_training(tuning)
        self.write.setEnabled(tuning is not None and bool(tuning.folder))

    def _show_choices(self) -> None:
        is_file = self.source.current == FILE
        self.text.setVisible(not is_file)
        self.file.setVisible(is_file)
        self.file_name.setVisible(is_file and bool(self._path))
        self.file_name.setText(Path(self._path).name)
        self._rank.setVisible(TUNED[self.tuned.current] == "lora")
        self.seconds.setVisible(self.limit.current == SECONDS)
        self.steps.setVisible(self.limit.current == STEPS)


def _named(label: str, widget: QWidget) -> QWidget:
    shown = QLabel(label)
    shown.setBuddy(widget)
    return flowing(shown, widget)
