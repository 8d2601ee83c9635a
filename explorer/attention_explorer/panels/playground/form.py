"""What is to be trained: a task, how hard it is, how long, which model, and every switch of it."""

from __future__ import annotations

import random

from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from attention_explorer.panels.playground.fields import SwitchField
from attention_explorer.panels.playground.switches import GROUPS, Model
from attention_explorer.panels.playground.training_form import TrainingForm
from attention_explorer.widgets.choices_kept import Choice, data_choice
from attention_explorer.widgets.number_field import WholeBox
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.rows import below, flowing, named
from attention_explorer.widgets.segments import Segments
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_models.protocol.training_messages import Asked
from attention_models.textbook.tasks import TASKS, Row, Task

TEXT = "text"
_FIRST = "reverse"
TRANSFORMER, RECURRENT = range(2)
_MODELS: tuple[Model, Model] = ("transformer", "recurrent")


class Form(TrainingForm):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(1000, 10_000_000, parent)
        self._build_task()
        self.model = Segments(
            (
                ("Transformer", "Attention alone: Vaswani et al. 2017"),
                ("Recurrent", "GRU or LSTM, an encoder and a decoder: Bahdanau's or Luong's attention, or none"),
            ),
            "Model",
        )
        self.seed.setToolTip("Decides the first weights, the rows and the dropout: the same seed, the same model")
        self._groups = [(title, [SwitchField(switch) for switch in group]) for title, group in GROUPS]
        self.fields = [field for _, group in self._groups for field in group]
        self.set_back = QPushButton("Reset")
        self.set_back.setToolTip("All switches of the model as they are at first")
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
        self.text.setPlaceholderText("Paste a text here, of a thousand characters or more. Its last tenth is held out.")
        self.text.setMinimumHeight(90)
        self.text.setMaximumHeight(140)

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 2, 6, 4)
        column.setSpacing(8)
        column.addWidget(flowing(named("Task", self.task), named(self.counts, self.difficulty)))
        column.addWidget(self.example)
        column.addWidget(self.text)
        column.addWidget(named("Model", self.model))
        column.addWidget(flowing(self.limit, self.seconds, self.steps, named("Seed", self.seed), self.set_back))
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
        self.difficulty.valueChanged.connect(self._settle)
        self.model.chosen.connect(lambda _: self._on_switch())
        for field in self.fields:
            field.changed.connect(self._on_switch)
        self.set_back.clicked.connect(self._set_back)

    # what is asked

    def asked(self) -> Asked:
        name, (seconds, steps) = self.task.currentData(), self._seconds_and_steps
        kind = (("model", self._model),) if self.model.current != TRANSFORMER else ()
        switches = tuple((field.switch.name, field.asked) for field in self.fields if field.asked)
        return Asked(
            task=f"{name}:{self.difficulty.value()}",
            switches=(*kind, *switches),
            seed=self.seed.value(),
            text=self.text.text() if name == TEXT else "",
            seconds=seconds,
            steps=steps,
        )

    def kept(self) -> dict[str, Choice | QWidget]:
        """What a session file keeps, by name."""
        return {
            "task": data_choice(self.task),
            "difficulty": self.difficulty,
            "model": self.model,
            **{_kept_name(field): field.choice for field in self.fields},
            **self._kept_of_all(),
        }

    # what a person does

    def _on_task(self) -> None:
        self._show_task()
        self._settle()

    def _on_switch(self) -> None:
        self._show_switches()
        self._settle()

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
