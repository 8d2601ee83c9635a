"""What is to be trained: a task, how hard it is, how long, which model, and every switch of it."""

from __future__ import annotations

import random

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from explorer.panels.playground.fields import SwitchField
from explorer.panels.playground.switches import GROUPS, Model
from explorer.widgets.beside import below, flowing
from explorer.widgets.choices_kept import Choice, data_choice, text_choice
from explorer.widgets.notes_field import NotesField
from explorer.widgets.number_field import WholeBox
from explorer.widgets.page import wrapped
from explorer.widgets.role import set_role
from explorer.widgets.segments import Segments
from explorer.widgets.whole_list_box import WholeListBox
from models.protocol.training_messages import MOST_TEXT, Asked
from models.textbook.tasks import TASKS, Row, Task

TEXT = "text"
_FIRST = "reverse"
_SETTLED = 250  # ms: what is typed has come to rest
SECONDS, STEPS = range(2)
TRANSFORMER, RECURRENT = range(2)
_MODELS: tuple[Model, Model] = ("transformer", "recurrent")


class Form(QWidget):
    changed = Signal()
    """What is asked for is something else, and has come to rest."""
    refused = Signal(str)
    """A sentence: what was pasted is too long."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._build_task()
        self.model = Segments(
            (
                ("Transformer", "Attention alone: Vaswani et al. 2017"),
                ("Recurrent", "GRU or LSTM, an encoder and a decoder: Bahdanau's or Luong's attention, or none"),
            ),
            "Model",
        )
        self.seed = WholeBox()
        self.seed.setRange(0, 999_999)
        self.seed.setToolTip("Decides the first weights, the rows and the dropout: the same seed, the same model")
        self.limit = Segments(
            (("Seconds", "Train so long; pauses are not counted"), ("Steps", "Train so many batches")), "How long"
        )
        self.seconds, self.steps = WholeBox(), WholeBox()
        for box, value, most in ((self.seconds, 60, 86_400), (self.steps, 1000, 10_000_000)):
            box.setRange(1, most)
            box.setValue(value)
            box.setAccessibleName("How long")
        self._groups = [(title, [SwitchField(switch) for switch in group]) for title, group in GROUPS]
        self.fields = [field for _, group in self._groups for field in group]
        self.set_back = QPushButton("Set back")
        self.set_back.setToolTip("All switches of the model as they are at first")
        self.sentence = wrapped()
        self._settled = QTimer(self)
        self._settled.setSingleShot(True)
        self._settled.setInterval(_SETTLED)
        self._settled.timeout.connect(self.changed)
        self._lay_out()
        self._connect()
        self._show_task()
        self._show_switches()

    def _build_task(self) -> None:
        self.task = WholeListBox()
        self.task.setMinimumContentsLength(26)
        self.task.setToolTip("What it learns. Rows are made up, and one in 16 is held out: it never learns from those")
        self.task.setAccessibleName("Task")
        for task in TASKS.values():
            row = example_of(task, task.difficulty)
            self.task.addItem(f"{task.name}:  {_short(row.prompt)} → {_short(row.answer)}", task.name)
        self.task.addItem("text:  each character of a text of yours", TEXT)
        self.task.setCurrentIndex(self.task.findData(_FIRST))
        self.difficulty = WholeBox()
        self.counts = QLabel()
        self.counts.setBuddy(self.difficulty)
        self.example = wrapped(role="dim")
        self.text = NotesField(MOST_TEXT)
        self.text.setPlaceholderText("Paste a text here, of a thousand characters or more. Its last tenth is held out.")
        self.text.setAccessibleName("The text to learn from")
        self.text.setMinimumHeight(90)
        self.text.setMaximumHeight(140)

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 2, 6, 4)
        column.setSpacing(8)
        column.addWidget(flowing(_named("Task", self.task), _named(self.counts, self.difficulty)))
        column.addWidget(self.example)
        column.addWidget(self.text)
        column.addWidget(_named("Model", self.model))
        column.addWidget(flowing(self.limit, self.seconds, self.steps, _named("Seed", self.seed), self.set_back))
        column.addWidget(self.sentence)
        self._shown_groups: list[tuple[list[SwitchField], QWidget]] = []
        for title, group in self._groups:
            heading = QLabel(title)
            heading.setProperty("role", "title")
            shown = below(heading, flowing(*group, gap=14))
            column.addWidget(shown)
            self._shown_groups.append((group, shown))
        column.addStretch(1)

    def _connect(self) -> None:
        self.task.currentIndexChanged.connect(self._on_task)
        self.difficulty.valueChanged.connect(lambda _: self._show_example())
        for box in (self.difficulty, self.seed, self.seconds, self.steps):
            box.valueChanged.connect(lambda _: self._settled.start())
        self.text.edited.connect(lambda _: self._settled.start())
        self.text.refused.connect(self.refused)
        self.limit.chosen.connect(self._on_limit)
        self.model.chosen.connect(lambda _: self._on_switch())
        for field in self.fields:
            field.changed.connect(self._on_switch)
        self.set_back.clicked.connect(self._set_back)

    # what is asked

    def asked(self) -> Asked:
        name, steps = self.task.currentData(), self.limit.current == STEPS
        kind = (("model", self._model),) if self.model.current != TRANSFORMER else ()
        switches = tuple((field.switch.name, field.asked) for field in self.fields if field.asked)
        return Asked(
            task=f"{name}:{self.difficulty.value()}",
            switches=(*kind, *switches),
            seed=self.seed.value(),
            text=self.text.text() if name == TEXT else "",
            seconds=None if steps else float(self.seconds.value()),
            steps=self.steps.value() if steps else None,
        )

    def kept(self) -> dict[str, Choice | QWidget]:
        """What a session file keeps, by name."""
        return {
            "task": data_choice(self.task),
            "difficulty": self.difficulty,
            "limit": self.limit,
            "seconds": self.seconds,
            "steps": self.steps,
            "seed": self.seed,
            "model": self.model,
            **{_kept_name(field): field.choice for field in self.fields},
            "text": text_choice(self.text.text, self._put_text),
        }

    def say(self, sentence: str, is_refusal: bool) -> None:
        """What is said beside the form: why it cannot be trained, or how large the model is."""
        self.sentence.setText(sentence)
        set_role(self.sentence, "warning" if is_refusal else "dim")

    # what a person does

    def _put_text(self, text: str) -> None:
        self.text.set_text(text)
        self._settled.start()

    def _on_task(self) -> None:
        self._show_task()
        self._settled.start()

    def _on_limit(self) -> None:
        self._show_limit()
        self._settled.start()

    def _on_switch(self) -> None:
        self._show_switches()
        self._settled.start()

    def _set_back(self) -> None:
        for field in self.fields:
            field.set_back()

    # what is shown

    @property
    def _model(self) -> Model:
        return _MODELS[self.model.current]

    def _show_switches(self) -> None:
        """Those that change something in the model as it is chosen."""
        model = self._model
        words = {field.switch.name: field.word for field in self.fields if field.switch.model in (None, model)}
        for field in self.fields:
            field.setVisible(field.switch.applies(model, words))
        for group, shown in self._shown_groups:
            shown.setVisible(not all(field.isHidden() for field in group))

    def _show_task(self) -> None:
        task = TASKS.get(self.task.currentData())
        least, most, default = (2, 1024, 64) if task is None else (task.least, task.most, task.difficulty)
        self.difficulty.setRange(least, most)
        self.difficulty.setValue(default)
        has_difficulty = least < most
        self.counts.setText("Characters together" if task is None else task.counts[:1].upper() + task.counts[1:])
        self.counts.setVisible(has_difficulty)
        self.difficulty.setVisible(has_difficulty)
        self.text.setVisible(task is None)
        self._show_example()
        self._show_limit()

    def _show_limit(self) -> None:
        self.seconds.setVisible(self.limit.current == SECONDS)
        self.steps.setVisible(self.limit.current == STEPS)

    def _show_example(self) -> None:
        task = TASKS.get(self.task.currentData())
        if task is None:
            self.example.setText("It says each character after those before it.")
            return
        row = example_of(task, self.difficulty.value())
        self.example.setText(f"It is to {task.title}: {_short(row.prompt, 40)} → {_short(row.answer, 40)}")


def _kept_name(field: SwitchField) -> str:
    """Both models have a score."""
    switch = field.switch
    return f"recurrent {switch.name}" if switch.model == "recurrent" else switch.name


def example_of(task: Task, difficulty: int) -> Row:
    """A row as it may be learned from; always the same."""
    return task.make(random.Random(0), difficulty)


def _short(text: str, most: int = 14) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _named(label: str | QLabel, widget: QWidget) -> QWidget:
    shown = QLabel(label) if isinstance(label, str) else label
    shown.setBuddy(widget)
    return flowing(shown, widget)
