"""The page Fine-tune: which checkpoint goes on learning, from what and how; and what it says before and after."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from attention_explorer.panels.playground.plot_grid import Pairs
from attention_explorer.panels.playground.training_form import TrainingForm
from attention_explorer.panels.playground.training_sentences import losses, standing
from attention_explorer.session.training import TrainingState
from attention_explorer.widgets.bar_list import BarGroup, BarList, BarRow, groups_beside
from attention_explorer.widgets.choices_kept import Choice, data_choice, text_choice
from attention_explorer.widgets.file_button import FileButton
from attention_explorer.widgets.layouts import flowing, in_row, named
from attention_explorer.widgets.notes_field import breakable
from attention_explorer.widgets.number_field import RealBox, WholeBox
from attention_explorer.widgets.number_text import percent_text
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.segments import Segments
from attention_explorer.widgets.token_text import isolated
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_models.files.catalogue import CLASSIFIERS, TUNABLE, WEIGHTS, read_card
from attention_models.protocol.training_messages import MOST_PROMPT, AskedTuning, Classified, Tuned, Wrote

# A checkpoint as it was and as it has become: held-out rows, and what each writes after a prompt, or says of it.


_TWO_COLUMNS = 380  # pixels
_GAP = 8


class BeforeAfter(QWidget):
    compared = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.losses, self.standing, self.sentence = wrapped(role="heading"), wrapped(role="dim"), wrapped()
        self.before, self.after = _Side("Before"), _Side("After")
        self.compare = QPushButton("Compare the two")
        self.compare.setToolTip("Show every head of the model before and after, in Compare")
        self.compare.clicked.connect(lambda: self.compared.emit())
        self._sides = Pairs((self.before, self.after), _TWO_COLUMNS, _GAP)
        self.classified, self.classes = wrapped(role="dim"), BarList()
        self.classes.setAccessibleName("Classes before and after")
        self._found: Classified | None = None
        self._is_wide = False
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        for label in (self.losses, self.standing, self.sentence):
            column.addWidget(label)
        for widget in (self._sides, self.classified, self.classes):
            column.addWidget(widget)
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
        self.losses.setToolTip(f"The mean in nats a {training.curves.of}, over rows that it never learns from")
        wrote, self._found = training.wrote, None
        self._sides.setVisible(isinstance(wrote, Wrote))
        for widget in (self.classified, self.classes):
            widget.setVisible(isinstance(wrote, Classified))
        if isinstance(wrote, Classified):
            self._show_classes(wrote)
        elif wrote is not None:
            self.before.show_text("Before", wrote.prompt, wrote.before)
            self.after.show_text(f"After step {wrote.step:,}", wrote.prompt, wrote.after)
        self.compare.setVisible(training.step > 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._found is not None and self._is_wide != (groups_beside(self.width()) > 1):
            self._show_classes(self._found)

    def _show_classes(self, found: Classified) -> None:
        """Beside each other where there is room; else each class in one bar, with an outline of what it was."""
        self._found, self._is_wide = found, groups_beside(self.width()) > 1
        texts = " · ".join(text for text in (found.prompt, found.second) if text)
        others = f" · {found.others:,} less likely classes are left out" if found.others else ""
        self.classified.setText(breakable(f"{texts}{others}"))
        after = f"After step {found.step:,}"
        if self._is_wide:
            before = BarGroup("Before", tuple(_bar(one.label, one.before) for one in found.classes))
            groups = [before, BarGroup(after, tuple(_bar(one.label, one.after) for one in found.classes))]
        else:
            rows = tuple(_bar(one.label, one.after, one.before) for one in found.classes)
            groups = [BarGroup(f"{after}; before: the outline", rows)]
        self.classes.set_groups(groups)


def _bar(label: str, share: float, before: float | None = None) -> BarRow:
    was = "" if before is None else f", was {percent_text(before)}"
    tooltip = f"“{label}”: probability {share:.6g}" + ("" if before is None else f", was {before:.6g}")
    return BarRow(label, share, f"{percent_text(share)}{was}", before=before, tooltip=tooltip, acts=False)


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


OPEN = ""
"""Stands in the list for the checkpoint that is open."""

PASTED, FILE = range(2)
TUNED: tuple[Tuned, ...] = ("all", "head", "lora")
_KINDS = "Texts and tables (*.txt *.tsv *.csv *.md);;All files (*)"


class FineTunePage(TrainingForm):
    prompted = Signal(str, str)
    """The model is to go on from the first, or to tell the class of both, as it was and as it is."""
    compared = Signal()
    """Both are to be shown in Compare."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(100, 1_000_000, parent)
        self.open_reference = self._path = ""
        self._shown: tuple[str | bool, ...] | None = None
        self._usual_prompt = self._usual_second = ""
        self._open_classifies = self._open_pairs = False
        self._build()
        self.result = BeforeAfter()
        self._lay_out()
        self._connect()
        self.show_open("", "", "", "")
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
                ("File", "A text, or two columns: an input and an output in each line, or a text and its class"),
            ),
            "What it learns from",
        )
        self.text.setMinimumHeight(70)
        self.text.setMaximumHeight(120)
        self.file = FileButton(
            "Choose a file", "A text, or two columns, by tabs or .csv", "A file to learn from", _KINDS
        )
        self.file_name = QLabel()
        self.tuned = Segments(
            (
                ("All weights", "Every number of the model changes"),
                (
                    "Head alone",
                    "What gives the logits: a matrix, parted from the embedding where the two are one; of a classifier "
                    "all that comes after its body",
                ),
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
        self.second = QLineEdit()
        self.second.setMaxLength(MOST_PROMPT)
        self.second.setAccessibleName("Second text")
        self.second.setToolTip("A classifier of pairs reads it together with the first")
        self.write = QPushButton()

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 2, 6, 4)
        column.setSpacing(8)
        self._of_prompt, of_second = QLabel(), QLabel("Second text")
        self._of_prompt.setBuddy(self.prompt)
        of_second.setBuddy(self.second)
        self._second = in_row(of_second, self.second)
        self._rank = named("Rank", self.rank)
        column.addWidget(self.result)
        column.addWidget(in_row(self._of_prompt, self.prompt, self.write))
        column.addWidget(self._second)
        column.addWidget(flowing(named("Checkpoint", self.checkpoint), self.source, self.file, self.file_name))
        column.addWidget(self.text)
        column.addWidget(self.sentence)  # why the button waits: seen beside it also in a low window
        column.addWidget(flowing(self.tuned, self._rank))
        column.addWidget(
            flowing(self.limit, self.seconds, self.steps, named("Rate", self.rate), named("Seed", self.seed))
        )
        column.addStretch(1)

    def _connect(self) -> None:
        self.checkpoint.currentIndexChanged.connect(self._on_choice)
        for segments in (self.source, self.tuned):
            segments.chosen.connect(self._on_choice)
        for box in (self.rank, self.rate):
            box.valueChanged.connect(self._settle)
        self.file.chosen.connect(self._on_file)
        self.write.clicked.connect(self._on_write)
        for field in (self.prompt, self.second):
            field.returnPressed.connect(self._on_write)
            field.textChanged.connect(self._show_prompts)
        self.result.compared.connect(self.compared)

    # what is asked

    def asked(self) -> AskedTuning:
        is_file, (seconds, steps) = self.source.current == FILE, self._seconds_and_steps
        tuned = TUNED[self.tuned.current]
        prompt, second = self._prompts
        return AskedTuning(
            checkpoint=self.checkpoint.currentData() or self.open_reference,
            text="" if is_file else self.text.text(),
            file=self._path if is_file else "",
            tuned=tuned,
            rank=self.rank.value() if tuned == "lora" else 0,
            rate=self.rate.value() or None,
            seed=self.seed.value(),
            prompt=prompt,
            second=second,
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
            "tuned second": text_choice(self.second.text, self.second.setText),
            **self._kept_of_all("tuned "),
        }

    @property
    def _classifies(self) -> bool:
        chosen = self.checkpoint.currentData()
        return chosen in CLASSIFIERS if chosen else self._open_classifies

    @property
    def _reads_pairs(self) -> bool:
        return self._classifies and (bool(self.checkpoint.currentData()) or self._open_pairs)

    @property
    def _prompts(self) -> tuple[str, str]:
        """What is typed, and where nothing is, what the chosen checkpoint reads."""
        prompt, second = self.prompt.text(), self.second.text()
        if not prompt and not second:
            prompt, second = self._usual
        return prompt, second if self._reads_pairs else ""

    @property
    def _usual(self) -> tuple[str, str]:
        """The text that is open, of the checkpoint that is open; of another one its example."""
        chosen = self.checkpoint.currentData()
        if chosen and chosen != self.open_reference:
            card = read_card(WEIGHTS / chosen)
            return card.example, card.second
        return self._usual_prompt, self._usual_second

    # what a person does

    def _on_choice(self, *_chosen: object) -> None:
        self._show_choices()
        self._settle()

    def _on_file(self, path: str) -> None:
        self._path = path
        self.file.show_files(path, ())
        self._on_choice()

    def _on_write(self) -> None:
        prompt, second = self._prompts
        if self.write.isEnabled() and prompt.strip():
            self.prompted.emit(prompt, second)

    # what is shown

    def show_open(
        self, reference: str, title: str, text: str, second: str, classifies: bool = False, pairs: bool = False
    ) -> None:
        """Which checkpoint goes on learning where no other is chosen, and what is read where nothing is typed."""
        shown = (reference, title, text, second, classifies, pairs)
        if shown == self._shown:
            return
        self._shown = shown
        self.open_reference = reference
        self._open_classifies, self._open_pairs = classifies, pairs
        if self.checkpoint.itemText(0) != title:
            self.checkpoint.setItemText(0, isolated(title) or "the one that is open")
        fits = max(len(text), len(second)) <= MOST_PROMPT
        self._usual_prompt, self._usual_second = (text, second) if fits else ("", "")
        self._show_choices()

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
        self._second.setVisible(self._reads_pairs)
        classifies = self._classifies
        self._of_prompt.setText("Text" if classifies else "Prompt")
        self.write.setText("Classify" if classifies else "Write")
        of_both = "as it was, and as it is now"
        self.write.setToolTip(f"Let the model {'tell the class' if classifies else 'go on from this'}, {of_both}")
        self.prompt.setToolTip(f"The model {'tells its class' if classifies else 'goes on from this'} twice: {of_both}")
        rows = "a text, a tab or a comma, and its class" if classifies else ""
        if self._reads_pairs:
            rows = "two texts and their class, with tabs or commas between; or one text and its class"
        learns = "Paste what it is to learn. The last tenth of a text is held out."
        self.text.setPlaceholderText(f"Paste rows: {rows}." if classifies else learns)
        self._show_prompts()

    def _show_prompts(self) -> None:
        """What is read where nothing is typed."""
        is_typed = bool(self.prompt.text() or self.second.text())
        usual = ("", "") if is_typed else self._usual
        writes = "A beginning, a sentence to translate, or one with masks"
        self.prompt.setPlaceholderText(usual[0] or ("A text to tell the class of" if self._classifies else writes))
        self.second.setPlaceholderText(usual[1] or "Read together with the first; may be left out")
