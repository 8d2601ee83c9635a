"""How the model is to write: a strategy and its numbers, each checked as it is typed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from attention_explorer.session.writing import Decoding
from attention_explorer.widgets.layouts import FlowLayout
from attention_explorer.widgets.number_field import NumberField, read_real, read_whole
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.segments import Segments
from attention_explorer.widgets.themed import set_role
from attention_models.protocol.decoding import DecodeSettings, Strategy

# The numbers by which a model writes: the name of each, how it is read, and what is worth saying of it. Pure.


STRATEGIES: tuple[Strategy, ...] = ("greedy", "sample", "beam")


@dataclass(frozen=True)
class Field:
    name: str  # in DecodeSettings; "steps" and "samples" are the panel's own
    label: str
    tooltip: str
    step: float  # of the arrow keys
    strategies: tuple[Strategy, ...] = STRATEGIES
    whole: bool = False
    may_be_off: bool = False


_SAMPLE: tuple[Strategy, ...] = ("sample",)
_BEAM: tuple[Strategy, ...] = ("beam",)
FIELDS = (
    Field("temperature", "Temperature", "Logits are divided by it: below 1 surer, above 1 bolder", 0.1, _SAMPLE),
    Field("top_k", "Top-k", "Keep the k likeliest tokens; empty: off", 1, _SAMPLE, True, True),
    Field(
        "top_p",
        "Top-p",
        "Keep the likeliest that together reach this share; empty: off",
        0.05,
        _SAMPLE,
        False,
        True,
    ),
    Field(
        "min_p",
        "Min-p",
        "Keep those at least this many times as likely as the likeliest; empty: off",
        0.05,
        _SAMPLE,
        False,
        True,
    ),
    Field("seed", "Seed", "The same seed draws the same tokens", 1, _SAMPLE, True),
    Field("samples", "Samples", "How many texts are drawn at once, each with its own draws", 1, _SAMPLE, True),
    Field("beams", "Beams", "How many texts are kept at once", 1, _BEAM, True),
    Field(
        "length_penalty",
        "Length penalty",
        "A beam's log-probability is divided by its length to this power",
        0.5,
        _BEAM,
    ),
    Field("repetition_penalty", "Repetition penalty", "Divides positive logits of tokens seen before; 1 is off", 0.1),
    Field(
        "no_repeat_ngram",
        "No repeated n-gram",
        "Never write the same n tokens in a row twice; 0 is off",
        1,
        STRATEGIES,
        True,
    ),
    Field("steps", "Steps", "The most tokens to write", 1, STRATEGIES, True),
)


def remark(settings: DecodeSettings) -> str:
    """What is worth saying of settings that are sound but may not do what one thinks."""
    if settings.strategy == "sample" and settings.temperature == 0:
        return "At temperature 0 nothing is drawn: the likeliest token is taken, as in greedy."
    if settings.strategy == "sample" and settings.top_k == 1:
        return "Top-k 1 leaves one token: this is greedy."
    if settings.strategy == "beam" and settings.beams == 1:
        return "One beam looks at one text only: this is greedy."
    return ""


def number(field: Field, text: str) -> float | int | None:
    """What a person typed into the field; None where it is empty and may be. Raises ValueError with a sentence."""
    text = text.strip()
    if not text and field.may_be_off:
        return None
    read: Callable[[str], float | int] = read_whole if field.whole else read_real
    try:
        return read(text)
    except ValueError:
        kind = "a whole number" if field.whole else "a number"
        given = f"“{text}” is none" if text else "it is empty"
        raise ValueError(f"{field.label} needs {kind}; {given}.") from None


def value_of(decoding: Decoding, name: str) -> float | int | None:
    value: float | int | None = getattr(decoding if name in ("steps", "samples") else decoding.settings, name)
    return value


def as_typed(value: float | int | None) -> str:
    """As a person would type it."""
    if value is None:
        return ""
    return str(int(value)) if value == int(value) else repr(value)


def says(field: Field, text: str, value: float | int | None) -> bool:
    try:
        return number(field, text) == value
    except ValueError:
        return False


_BUTTONS = (
    ("Greedy", "Always take the likeliest token"),
    ("Sample", "Draw a token at random, each as often as it is likely"),
    ("Beam", "Keep several texts at once and end with the likeliest whole"),
)


class DecodeKnobs(QWidget):
    """The strategy and those fields that it uses. `problem` says in a sentence what is wrong, if anything is."""

    changed = Signal()  # by a person; `decoding` is what all of it says now, as far as it can be read

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.strategy_buttons = Segments(_BUTTONS, "Strategy", wraps=True)
        self.strategy_buttons.chosen.connect(self._on_strategy)
        self.more = QPushButton("Settings")
        self.more.setCheckable(True)
        self.more.setToolTip("Show or hide the numbers that this strategy uses")
        self.more.toggled.connect(lambda _: self._update())
        self.fields: dict[str, NumberField] = {}
        self._groups: dict[str, QWidget] = {}
        self._area = QWidget()
        self.decoding, self.problem = Decoding(), ""
        flow = FlowLayout(self._area, gap=12, line_gap=4)
        for field in FIELDS:
            edit = NumberField(as_typed(value_of(self.decoding, field.name)), field.step)
            edit.setToolTip(field.tooltip)
            edit.setAccessibleName(field.label)
            edit.textChanged.connect(lambda _: self._on_typed())
            self.fields[field.name] = edit
            self._groups[field.name] = _labelled(field.label, edit)
            flow.addWidget(self._groups[field.name])
        self.remark = wrapped(role="dim")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        line = QHBoxLayout()
        line.setSpacing(6)
        line.addWidget(self.strategy_buttons, 1)
        line.addWidget(self.more)
        column.addLayout(line)
        column.addWidget(self._area)
        column.addWidget(self.remark)
        self._update()

    @property
    def strategy(self) -> Strategy:
        return STRATEGIES[self.strategy_buttons.current]

    @property
    def settings(self) -> DecodeSettings:
        """What the strategy acts by."""
        return self.decoding.settings.of_strategy(self.strategy)

    @property
    def steps(self) -> int:
        return self.decoding.steps

    @property
    def samples(self) -> int:
        """How many texts are drawn at once."""
        return self.decoding.samples if self.strategy == "sample" else 1

    def choose(self, strategy: Strategy) -> None:
        """Press a strategy's button."""
        self.strategy_buttons.choose(STRATEGIES.index(strategy))
        self._on_strategy()

    def set_number(self, name: str, text: str) -> None:
        """Type into a field."""
        self.fields[name].setText(text)

    def show_decoding(self, decoding: Decoding, strategy: Strategy) -> None:
        """Say what the document says. A number stays as it was typed where it means the same."""
        if (decoding, strategy) == (self.decoding, self.strategy):
            return
        self.strategy_buttons.choose(STRATEGIES.index(strategy))
        changed, self.decoding = decoding != self.decoding, decoding
        for field in FIELDS if changed else ():
            edit, value = self.fields[field.name], value_of(decoding, field.name)
            if not says(field, edit.text(), value):
                with QSignalBlocker(edit):
                    edit.setText(as_typed(value))
        self._update()

    def _on_strategy(self, _index: int = 0) -> None:
        self.more.setChecked(self.more.isChecked() or self.strategy != "greedy")
        settings = replace(self.decoding.settings, strategy=self.strategy)
        self.decoding = replace(self.decoding, settings=settings, chosen=True)
        self._on_typed()

    def _on_typed(self) -> None:
        self._update()
        self.changed.emit()

    def _update(self) -> None:
        """Read what is typed, and say what is wrong with it."""
        self._area.setVisible(self.more.isChecked())
        for field in FIELDS:
            self._groups[field.name].setVisible(self.strategy in field.strategies)
        try:
            self.decoding, self.problem = self._read(), ""
        except ValueError as error:
            self.problem = str(error)
        text = self.problem or remark(self.settings)
        self.remark.setText(text)
        self.remark.setVisible(bool(text))
        set_role(self.remark, "mark" if self.problem else "dim")

    def _read(self) -> Decoding:
        """What the fields that show say; the others keep their numbers. Raises ValueError with a sentence."""
        numbers = {
            field.name: number(field, self.fields[field.name].text())
            for field in FIELDS
            if self.strategy in field.strategies
        }
        own = {name: numbers.pop(name) for name in ("steps", "samples") if name in numbers}
        settings = replace(self.decoding.settings, **numbers)  # type: ignore[arg-type]
        return replace(self.decoding, settings=settings, **own)  # type: ignore[arg-type]


def _labelled(label: str, edit: QLineEdit) -> QWidget:
    group = QWidget()
    row = QHBoxLayout(group)
    row.setContentsMargins(0, 0, 0, 0)
    row.setSpacing(6)
    name = QLabel(label)
    name.setProperty("role", "dim")
    name.setBuddy(edit)
    row.addWidget(name)
    row.addWidget(edit)
    return group
