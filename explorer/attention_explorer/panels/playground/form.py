"""What is to be trained: a task, how hard it is, how long, which model, and every switch of it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from PySide6.QtCore import QSize, Signal, SignalInstance
from PySide6.QtWidgets import QCheckBox, QLabel, QPushButton, QVBoxLayout, QWidget

from attention_explorer.panels.playground.training_form import TrainingForm
from attention_explorer.widgets.choices_kept import Choice, choice_of, data_choice
from attention_explorer.widgets.layouts import below, flowing, named
from attention_explorer.widgets.number_field import RealBox, WholeBox
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.segments import Segments
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_models.protocol.training_messages import Asked
from attention_models.textbook.tasks import TASKS, Row, Task

# The switches of the textbook models and of their training, as the form shows them.


Model = Literal["transformer", "recurrent"]


@dataclass(frozen=True, slots=True)
class Choose:
    """One word of several, each with what it is called here; the first is the default."""

    words: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Flag:
    on: bool


@dataclass(frozen=True, slots=True)
class Whole:
    default: int
    least: int
    most: int
    zero: str = ""  # what 0 stands for


@dataclass(frozen=True, slots=True)
class Real:
    default: float
    least: float
    most: float
    decimals: int
    step: float


@dataclass(frozen=True, slots=True)
class Switch:
    """`name` is what `--set` calls it."""

    name: str
    label: str
    tip: str
    kind: Choose | Flag | Whole | Real
    model: Model | None = None  # the only one that has it; None: both have
    needs: tuple[tuple[str, tuple[str, ...]], ...] = ()  # other switches of that model, and words one of which each has

    def applies(self, model: Model, words: Mapping[str, str]) -> bool:
        """Whether it changes anything in `model`, whose lists are at `words`, by the name of their switch."""
        return self.model in (None, model) and all(words[name] in allowed for name, allowed in self.needs)


_TRANSFORMER: tuple[tuple[str, tuple[Switch, ...]], ...] = (
    (
        "Shape and size",
        (
            Switch(
                "shape",
                "Shape",
                "An encoder reads and a decoder writes, or either alone",
                Choose(
                    (
                        ("encoder-decoder", "Encoder and decoder"),
                        ("decoder", "Decoder alone"),
                        ("encoder", "Encoder alone"),
                    )
                ),
            ),
            Switch("width", "Width", "Dimensions of the residual stream, d_model", Whole(64, 2, 512)),
            Switch("layers", "Layers", "Blocks of each stack", Whole(2, 1, 24)),
            Switch(
                "inner",
                "Inner width",
                "Neurons of the feed-forward networks",
                Whole(0, 0, 2048, "4 × width"),
                needs=(("feed_forward", ("relu", "gelu", "swiglu")),),
            ),
            Switch("context", "Context", "The most tokens that it can read", Whole(0, 0, 2048, "twice the rows")),
        ),
    ),
    (
        "Positions",
        (
            Switch(
                "positions",
                "Positions",
                "How it is told where a token stands. Concatenated, embedding and position get half of the width each; "
                "mapped back to the width, they are added, each through a matrix of its own",
                Choose(
                    (
                        ("sinusoidal", "Sinusoids, added"),
                        ("appended", "Sinusoids, concatenated"),
                        ("concatenated", "Sinusoids, concatenated and mapped"),
                        ("learned", "Learned"),
                        ("rope", "RoPE"),
                        ("alibi", "ALiBi"),
                        ("t5", "T5 bias"),
                        ("none", "None"),
                    )
                ),
            ),
            Switch(
                "buckets",
                "T5 buckets",
                "How many distances T5's bias tells apart",
                Whole(32, 4, 512),
                needs=(("positions", ("t5",)),),
            ),
            Switch(
                "farthest",
                "T5 farthest",
                "The distance from which on all are alike to T5's bias",
                Whole(128, 4, 4096),
                needs=(("positions", ("t5",)),),
            ),
        ),
    ),
    (
        "Attention",
        (
            Switch("heads", "Heads", "Of each attention layer; each gets an equal part of the width", Whole(4, 1, 64)),
            Switch(
                "key_heads",
                "Key heads",
                "Heads of keys and values, shared by groups of heads",
                Whole(0, 0, 64, "as heads"),
            ),
            Switch(
                "score",
                "Score",
                "How a query and a key are compared",
                Choose((("scaled", "Dot product / √d"), ("dot", "Dot product"), ("additive", "Additive"))),
            ),
            Switch(
                "causal_mask",
                "Causal mask",
                "No token of a decoder attends to a later one",
                Flag(True),
                needs=(("shape", ("encoder-decoder", "decoder")),),
            ),
        ),
    ),
    (
        "Block",
        (
            Switch(
                "norm",
                "Norm",
                "LayerNorm, or RMSNorm, which does not subtract the mean",
                Choose((("layer", "LayerNorm"), ("rms", "RMSNorm"))),
            ),
            Switch(
                "norm_place",
                "Norm place",
                "After each part, as in the paper, or before it",
                Choose((("post", "After (post)"), ("pre", "Before (pre)"))),
            ),
            Switch("epsilon", "Norm ε", "Keeps a norm from dividing by 0", Real(1e-5, 1e-8, 0.1, 8, 1e-5)),
            Switch(
                "feed_forward",
                "Feed-forward",
                "What is between its two linear layers; none leaves it out",
                Choose((("relu", "ReLU"), ("gelu", "GELU"), ("swiglu", "SwiGLU"), ("none", "None"))),
            ),
            Switch("residual", "Residuals", "Each part adds to the stream, and does not replace it", Flag(True)),
            Switch(
                "tied",
                "Tied embeddings",
                "One matrix embeds both texts and gives the logits",
                Flag(True),
                needs=(("positions", ("sinusoidal", "concatenated", "learned", "rope", "alibi", "t5", "none")),),
            ),
            Switch("bias", "Biases", "Of the linear layers", Flag(True)),
            Switch("scaled_embedding", "Scaled embedding", "Embeddings are multiplied by √width", Flag(True)),
        ),
    ),
)

_RECURRENT: tuple[tuple[str, tuple[Switch, ...]], ...] = (
    (
        "Network",
        (
            Switch(
                "cell",
                "Cell",
                "What carries the state from token to token",
                Choose((("gru", "GRU"), ("lstm", "LSTM"))),
            ),
            Switch("hidden", "Hidden", "Dimensions of a state", Whole(64, 1, 512)),
            Switch("embedding", "Embedding", "Dimensions of a token's embedding", Whole(32, 1, 512)),
            Switch("bidirectional", "Both directions", "The encoder reads the text backwards too", Flag(True)),
        ),
    ),
    (
        "Attention",
        (
            Switch(
                "score",
                "Score",
                "How the decoder's state and each of the encoder's are compared. The bottleneck has no attention: the "
                "encoder's last state is all that the decoder gets",
                Choose(
                    (
                        ("bahdanau", "Bahdanau"),
                        ("dot", "Luong, dot"),
                        ("general", "Luong, general"),
                        ("concat", "Luong, concat"),
                        ("none", "None: bottleneck"),
                    )
                ),
            ),
            Switch(
                "scope",
                "Scope",
                "All of the text, or a window that moves with what is written, or to where the model predicts",
                Choose((("global", "Global"), ("monotonic", "Local, monotonic"), ("predictive", "Local, predictive"))),
                needs=(("score", ("dot", "general", "concat")),),
            ),
            Switch(
                "window",
                "Window",
                "Tokens to each side of the place that local attention attends to",
                Whole(3, 1, 128),
                needs=(("score", ("dot", "general", "concat")), ("scope", ("monotonic", "predictive"))),
            ),
        ),
    ),
)

_BOTH: tuple[tuple[str, tuple[Switch, ...]], ...] = (
    (
        "Training",
        (
            Switch("batch", "Rows a batch", "Rows that it learns from in one step", Whole(64, 1, 1024)),
            Switch("rate", "Rate", "What the paper's learning rate is multiplied by", Real(0.5, 0.001, 100.0, 3, 0.1)),
            Switch("warmup", "Warm-up", "Steps in which the learning rate climbs", Whole(200, 1, 100_000)),
            Switch("clip", "Clip", "The most that the gradient's length may be", Real(1.0, 0.001, 1000.0, 3, 0.1)),
            Switch(
                "dropout",
                "Dropout",
                "Part of the activations that are set to 0 at random",
                Real(0.1, 0.0, 0.95, 2, 0.05),
            ),
            Switch(
                "label_smoothing",
                "Label smoothing",
                "Part of the target that is spread over all tokens",
                Real(0.1, 0.0, 0.95, 2, 0.05),
                "transformer",
            ),
            Switch(
                "snapshot_every",
                "Snapshot every",
                "Steps between two snapshots, which the slider goes through",
                Whole(20, 1, 10_000),
            ),
        ),
    ),
)


def _of(model: Model, groups: tuple[tuple[str, tuple[Switch, ...]], ...]) -> tuple[tuple[str, tuple[Switch, ...]], ...]:
    return tuple((title, tuple(replace(switch, model=model) for switch in group)) for title, group in groups)


GROUPS = (*_of("transformer", _TRANSFORMER), *_of("recurrent", _RECURRENT), *_BOTH)
SWITCHES = tuple(switch for _, group in GROUPS for switch in group)


# One switch of the form: its label, and a list, a tick or a number.


_CHARACTERS = 16  # that a list shows
_WIDTH = 22  # characters


class SwitchField(QWidget):
    changed = Signal()

    def __init__(self, switch: Switch, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.switch = switch
        self.setToolTip(switch.tip)
        self.control, self._choice = _control(switch, self.changed)
        self.control.setToolTip(switch.tip)
        self.control.setAccessibleName(switch.label)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        if not isinstance(switch.kind, Flag):
            label = QLabel(switch.label)
            label.setProperty("role", "dim")
            label.setBuddy(self.control)
            column.addWidget(label)
        column.addWidget(self.control)
        column.addStretch(1)

    def sizeHint(self) -> QSize:
        """Each as wide as the others, so that they stand in columns."""
        width = self.fontMetrics().averageCharWidth() * _WIDTH
        return QSize(max(width, super().minimumSizeHint().width()), super().sizeHint().height())

    @property
    def choice(self) -> Choice:
        """For a session file."""
        return self._choice

    @property
    def word(self) -> str:
        """What is chosen in a list; "" of a tick or a number."""
        return str(self._choice.get()) if isinstance(self.switch.kind, Choose) else ""

    @property
    def asked(self) -> str:
        """What is set, as `--set` takes it; "" where that is the default, or where the switch changes nothing."""
        value, kind = self._choice.get(), self.switch.kind
        if self.isHidden() or value == default_of(self.switch):
            return ""
        if isinstance(kind, Flag):
            return "on" if value else "off"
        return f"{value:g}" if isinstance(kind, Real) else str(value)

    def set_back(self) -> None:
        self._choice.choose(default_of(self.switch))


def default_of(switch: Switch) -> bool | int | float | str:
    kind = switch.kind
    if isinstance(kind, Choose):
        return kind.words[0][0]
    return kind.on if isinstance(kind, Flag) else kind.default


def _control(switch: Switch, changed: SignalInstance) -> tuple[QWidget, Choice]:
    kind = switch.kind
    if isinstance(kind, Flag):
        box = QCheckBox(switch.label)
        box.setChecked(kind.on)
        box.toggled.connect(lambda _: changed.emit())
        return box, choice_of(box)
    if isinstance(kind, Choose):
        listed = WholeListBox()
        listed.setMinimumContentsLength(min(_CHARACTERS, max(len(label) for _, label in kind.words)))
        for word, label in kind.words:
            listed.addItem(label, word)
        listed.currentIndexChanged.connect(lambda _: changed.emit())
        return listed, data_choice(listed)
    field: WholeBox | RealBox
    if isinstance(kind, Whole):
        field = WholeBox()
        field.setRange(kind.least, kind.most)
        field.setSpecialValueText(kind.zero)
        field.setValue(kind.default)
    else:
        field = RealBox()
        field.setDecimals(kind.decimals)
        field.setRange(kind.least, kind.most)
        field.setSingleStep(kind.step)
        field.setValue(kind.default)
    field.valueChanged.connect(lambda _: changed.emit())
    return field, choice_of(field)


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
