"""The page Fine-tune: which checkpoint goes on learning, from what and how; and what it says before and after."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from explorer.panels.playground.before_after import BeforeAfter
from explorer.panels.playground.training_form import TrainingForm
from explorer.session.training import TrainingState
from explorer.widgets.beside import beside, flowing, named
from explorer.widgets.choices_kept import Choice, data_choice, text_choice
from explorer.widgets.file_button import FileButton
from explorer.widgets.number_field import RealBox, WholeBox
from explorer.widgets.segments import Segments
from explorer.widgets.token_text import isolated
from explorer.widgets.whole_list_box import WholeListBox
from models.files.catalogue import TUNABLE
from models.protocol.training_messages import MOST_PROMPT, AskedTuning, Tuned

OPEN = ""
"""Stands in the list for the checkpoint that is open."""

PASTED, FILE = range(2)
TUNED: tuple[Tuned, ...] = ("all", "head", "lora")
_KINDS = "Texts and tables (*.txt *.tsv *.csv *.md);;All files (*)"


class FineTunePage(TrainingForm):
    prompted = Signal(str)
    """The model is to go on from this, as it was and as it is."""
    compared = Signal()
    """Both are to be shown in Compare."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(100, 1_000_000, parent)
        self.open_reference = self._path = self._usual_prompt = ""
        self._build()
        self.result = BeforeAfter()
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
        self.text.setPlaceholderText("Paste what it is to learn. The last tenth of a text is held out.")
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
        self.rank, self.rate = WholeBox(), RealBox()
        self.rank.setRange(1, 256)
        self.rank.setValue(8)
        self.rank.setToolTip("Columns of the first of an adapter's two matrices, and rows of the second")
        self.seed.setToolTip("Decides the batches and the dropout: the same seed, the same model")
        self.rate.setDecimals(6)
        self.rate.setRange(0.0, 1.0)
        self.rate.setSingleStep(0.0001)
        self.rate.setSpecialValueText("usual")
        self.rate.setToolTip("AdamW's learning rate. Usual is 0.0002 for all weights, 0.001 for the head and for LoRA")
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
        self._rank = named("Rank", self.rank)
        column.addWidget(self.result)
        column.addWidget(beside(prompt, self.prompt, self.write))
        column.addWidget(flowing(named("Checkpoint", self.checkpoint), self.source, self.file, self.file_name))
        column.addWidget(self.text)
        column.addWidget(self.sentence)  # why the button waits: seen beside it also in a low window
        column.addWidget(flowing(self.tuned, self._rank))
        column.addWidget(
            flowing(self.limit, self.seconds, self.steps, named("Rate", self.rate), named("Seed", self.seed))
        )
        column.addStretch(1)

    def _connect(self) -> None:
        self.checkpoint.currentIndexChanged.connect(self._settle)
        for segments in (self.source, self.tuned):
            segments.chosen.connect(self._on_choice)
        for box in (self.rank, self.rate):
            box.valueChanged.connect(self._settle)
        self.file.chosen.connect(self._on_file)
        self.write.clicked.connect(self._on_write)
        self.prompt.returnPressed.connect(self._on_write)
        self.result.compared.connect(self.compared)

    # what is asked

    def asked(self) -> AskedTuning:
        is_file, (seconds, steps) = self.source.current == FILE, self._seconds_and_steps
        tuned = TUNED[self.tuned.current]
        return AskedTuning(
            checkpoint=self.checkpoint.currentData() or self.open_reference,
            text="" if is_file else self.text.text(),
            file=self._path if is_file else "",
            tuned=tuned,
            rank=self.rank.value() if tuned == "lora" else 0,
            rate=self.rate.value() or None,
            seed=self.seed.value(),
            prompt=self._prompt,
            seconds=seconds,
            steps=steps,
        )

    def kept(self) -> Mapping[str, Choice | QWidget]:
        """What a session file keeps, by name. A file is not: another computer has none there."""
        return {
            "tuned checkpoint": data_choice(self.checkpoint),
            "tuned from": self.source,
            "tuned": self.tuned,
            "tuned rank": self.rank,
            "tuned rate": self.rate,
            "tuned prompt": text_choice(self.prompt.text, self.prompt.setText),
            **self._kept_of_all("tuned "),
        }

    @property
    def _prompt(self) -> str:
        return self.prompt.text() or self._usual_prompt

    # what a person does

    def _on_choice(self) -> None:
        self._show_choices()
        self._settle()

    def _on_file(self, path: str) -> None:
        self._path = path
        self.file.show_files(path, ())
        self._on_choice()

    def _on_write(self) -> None:
        if self.write.isEnabled() and self._prompt.strip():
            self.prompted.emit(self._prompt)

    # what is shown

    def show_open(self, reference: str, title: str, text: str) -> None:
        """Which checkpoint goes on learning where no other is chosen, and what is gone on from where nothing is."""
        self.open_reference = reference
        if self.checkpoint.itemText(0) != title:
            self.checkpoint.setItemText(0, isolated(title) or "the one that is open")
        self._usual_prompt = text if len(text) <= MOST_PROMPT else ""
        self.prompt.setPlaceholderText(self._usual_prompt or "A beginning, a sentence to translate, or one with masks")

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
