"""Lessons: steps that each put something on screen, say what it is, ask, and check it on the live model. Pure.

A lesson is data: TOML, with text in Markdown. It can only set what a person could set in the window: it names no code,
and no place outside itself. Whatever it says in figures is computed when it is shown
(`attention_models.lessons.facts`).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from attention_explorer.session.figures import Because, Figure, Figures, check_reasons
from attention_explorer.session.goals import Goal
from attention_explorer.session.hidden import Hide
from attention_explorer.session.kept import KeptState
from attention_explorer.session.scenes import Scene, check_text_size
from attention_explorer.session.statements import NAME, Statement, Value, statement
from attention_explorer.session.tours import Part
from attention_models.protocol.facts import WORDS
from attention_models.protocol.mask_kinds import MASK_KINDS
from attention_models.protocol.roles import PATTERNS

# Answers to the questions of a lesson: the score, and a table to save. Pure.


_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet would compute."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered, and what the model said at that moment."""

    step: int  # from 0
    question: str
    given: str
    truth: str
    right: bool


def score(answers: Iterable[Answer]) -> tuple[int, int]:
    """How many are right, of how many."""
    listed = tuple(answers)
    return sum(answer.right for answer in listed), len(listed)


def as_csv(lesson: str, answers: Iterable[Answer]) -> str:
    """A table with a line for each answer, in their order."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(("lesson", "step", "question", "answer", "model", "right"))
    for answer in answers:
        cells = (lesson, answer.step + 1, answer.question, answer.given, answer.truth, int(answer.right))
        table.writerow([_harmless(cell) for cell in cells])
    return out.getvalue()


def _harmless(cell: str | int) -> str | int:
    """As text, also to a spreadsheet."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


MOST_STEPS = 60

Guess = Literal["weight", "row", "next", "mask", "role"]
"""Of these what can be guessed of any run."""

COMING = "…"
"""Stands for a figure that is being computed."""

OF_SCENES: tuple[Part, ...] = ("panel", "checkpoint")
"""What can be pointed at where a scene says which it is; the rest is what is selected."""

_Title = Annotated[str, Meta(min_length=1, max_length=60)]
_Prose = Annotated[str, Meta(max_length=6000)]
_Sentence = Annotated[str, Meta(min_length=1, max_length=600)]
_Name = Annotated[str, Meta(pattern=f"^{NAME}$")]
_Said = Annotated[str, Meta(min_length=3, max_length=300)]

_IN_BRACES = re.compile(r"\{([^{}\n]*)\}")


class Option(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer of several. Whether it is right is computed: `when` holds of the figures on screen."""

    say: Annotated[str, Meta(min_length=1, max_length=200)]
    when: _Said

    @property
    def statement(self) -> Statement:
        return statement(self.when)


class Ask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question with one way to answer it: an option, a number, a token or cells that are clicked, a word typed."""

    question: _Sentence
    options: Annotated[tuple[Option, ...], Meta(max_length=10)] = ()
    number: _Name | None = None  # the figure that is guessed
    within: Annotated[float, Meta(gt=0, le=1e9)] = 0.1  # how near counts as right; of shares 0.1 is ten per cent
    low: float = 0.0
    high: float = 1.0
    click: _Name | None = None  # the figure that has the word of the token that is meant
    word: _Name | None = None  # the figure that has the word that is meant
    cells: _Name | None = None  # the figure that has the keys of the row that are meant, which are clicked one by one
    hide: Hide = ""
    reveal: _Prose = ""  # said once it is answered

    def __post_init__(self) -> None:
        ways = [bool(self.options), *(name is not None for name in (self.number, self.click, self.word, self.cells))]
        if sum(ways) != 1:
            raise ValueError("a question has one of options, number, click, word and cells")
        if self.cells is not None and self.hide != "mask":
            raise ValueError('cells are clicked in what is covered: that needs hide = "mask"')
        if len(self.options) == 1:
            raise ValueError("a question has two options or more")
        if not self.low < self.high:
            raise ValueError("a number is guessed between low and a larger high")
        for option in self.options:
            _ = option.statement

    @property
    def names(self) -> Iterator[str]:
        """The figures that it needs."""
        for option in self.options:
            yield from option.statement.names
        yield from (() if self.meant is None else (self.meant,))
        yield from (*figures_in(self.question), *figures_in(self.reveal))

    @property
    def deciding(self) -> frozenset[str]:
        """The figures that decide which answer is right."""
        meant = () if self.meant is None else (self.meant,)
        return frozenset((*meant, *(name for option in self.options for name in option.statement.names)))

    @property
    def meant(self) -> str | None:
        """The figure that is the right answer; None where it is an option."""
        return self.number or self.click or self.word or self.cells

    def is_right(self, given: Value, figures: Mapping[str, Value]) -> bool:
        """Whether an answer is right: the number of an option, a number that was guessed, or a token's word."""
        if self.options:
            return isinstance(given, int | float) and self.options[int(given)].statement.holds(figures)
        if self.number is not None:
            truth = figures[self.number]
            return not isinstance(truth, str) and not isinstance(given, str) and abs(given - truth) <= self.within
        truth = figures[self.meant or ""]
        return str(given).strip().casefold() == str(truth).strip().casefold()

    def right_options(self, figures: Mapping[str, Value]) -> tuple[int, ...]:
        return tuple(i for i, option in enumerate(self.options) if option.statement.holds(figures))


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step. It shows a scene, a state that its file holds, or what is there already."""

    title: _Title
    say: _Prose
    show: Scene | None = None
    state: Annotated[int, Meta(ge=1, le=100)] | None = None  # of the states in a .lesson file, from 1
    text_size: float | None = None  # of the window's text, where 1 is the person's own; a scene has one of its own
    point: Part | None = None  # what is ringed: a place of what it shows
    figures: Figures = {}
    check: Annotated[tuple[_Said, ...], Meta(max_length=20)] = ()
    because: Annotated[tuple[Because, ...], Meta(max_length=20)] = ()  # what shows that its sentences on causes are so
    ask: Ask | None = None
    notes: _Prose = ""  # for the teacher
    concepts: Annotated[tuple[_Title, ...], Meta(max_length=20)] = ()  # what it shows, in a word or two

    def __post_init__(self) -> None:
        """Raise ValueError for what does not fit together within the step."""
        if self.show is not None and self.state is not None:
            raise ValueError("it has a scene to show and a state: it takes one of them")
        if self.show is not None and self.text_size is not None:
            raise ValueError("its text size stands beside what it shows, and belongs into it")
        check_text_size(self.text_size)
        if self.point is not None and self.show is None and self.state is None:
            raise ValueError("it points at a place of what it shows, and shows nothing")
        if self.point in OF_SCENES and self.show is None:
            raise ValueError(f"it points at the {self.point} of a scene, and has none")
        used = [*figures_in(self.say), *(name for s in self.checks for name in s.names)]
        used += [] if self.ask is None else list(self.ask.names)
        for name in used:
            if name not in self.figures:
                raise ValueError(f"there is no figure “{name[:60]}” among its figures")
        check_reasons(self.because, self.texts, self.figures, changed=self.show is None or self.show.changes_the_model)
        if self.ask is not None and self.ask.number is not None and self.figures[self.ask.number].kind in WORDS:
            raise ValueError(f"the figure “{self.ask.number}” is a word, and a number is asked for")
        if self.ask is not None and self.ask.cells is not None and self.figures[self.ask.cells].kind != "visible keys":
            raise ValueError(f"the figure “{self.ask.cells}” is of no cells: its kind is to be “visible keys”")

    @property
    def texts(self) -> tuple[str, ...]:
        """All that it tells a person, its title apart."""
        asked = () if self.ask is None else (self.ask.question, self.ask.reveal)
        return (self.say, self.notes, *asked)

    @property
    def checks(self) -> tuple[Statement, ...]:
        return tuple(statement(text) for text in self.check)

    @property
    def size(self) -> float:
        """How many times as large as the person likes it text is."""
        size = self.text_size if self.show is None else self.show.text_size
        return 1.0 if size is None else size

    @property
    def hides(self) -> frozenset[Hide]:
        """What is covered while its question stands: what it names, and what shows the figures that decide it.

        A figure that its text says itself is given away already, and one of another input is not on screen.
        """
        ask = self.ask
        if ask is None:
            return frozenset()
        said = {*figures_in(self.say), *figures_in(ask.question)}
        asked = [self.figures[name] for name in ask.deciding - said]
        found = {each.hidden for each in asked}
        return frozenset({ask.hide, *found} - {""})

    def mask_of(self, option: Option) -> str:
        """The kind of mask that an answer names, which is drawn beside it; "" where it names none."""
        name, word = option.statement.word or ("", "")
        is_mask = name in self.figures and self.figures[name].kind == "mask"
        kind = MASK_KINDS.get(word) if is_mask else None
        return "" if kind is None or kind.takes_cells else word

    @property
    def goal(self) -> Goal | None:
        """Its place, as what is pointed at is named."""
        scene = self.show
        if scene is None:
            return None
        return Goal(
            panel=scene.panel,
            checkpoint=scene.checkpoint,
            stack=scene.stack,
            layer=scene.layer,
            head=scene.head,
            query=scene.query,
            query_place=scene.query_place,
            key=scene.key,
            key_place=scene.key_place,
        )

    def said(self, text: str, figures: Mapping[str, Value]) -> str:
        """`text` with its figures in it; "…" for those that are not there yet."""

        return said_with(text, self.figures, figures)

    def noted(self, figures: Mapping[str, Value]) -> str:
        """The notes with their figures; what else has braces stays as the teacher wrote it."""
        others = {name for name in figures_in(self.notes) if name not in self.figures}
        return _IN_BRACES.sub(lambda f: f[0] if f[1] in others else self.said(f[0], figures), self.notes)


class Lesson(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Steps in their order."""

    title: _Title
    about: _Sentence
    minutes: Annotated[int, Meta(ge=1, le=120)]
    step: Annotated[tuple[Step, ...], Meta(min_length=1, max_length=MOST_STEPS)]


@dataclass(frozen=True, slots=True)
class OpenLesson:
    """A lesson with the states that its file holds."""

    lesson: Lesson
    states: tuple[KeptState, ...] = ()

    @property
    def questions(self) -> tuple[int, ...]:
        """The places of its steps that ask something."""
        return tuple(i for i, step in enumerate(self.lesson.step) if step.ask is not None)


def prediction(hide: Guess, it: str = "it") -> OpenLesson:
    """A question about what is on screen: something of it is covered, and guessed. `it` names its figure."""
    kind, ask = {
        "weight": ("weight", Ask(question="How large is the weight of the selected cell?", number=it, hide="weight")),
        "row": ("peak", Ask(question="Which token gets the most of the selected row?", click=it, hide="row")),
        "next": ("next", Ask(question="What does the model say at the selected token?", word=it, hide="next")),
        "mask": ("visible keys", Ask(question="Which tokens can it attend to?", cells=it, hide="mask")),
        "role": ("role", Ask(question="What does this head do, over many texts?", options=_roles(it), hide="role")),
    }[hide]
    step = Step(title="Your guess", say="", figures={it: Figure(kind=kind)}, ask=ask)  # type: ignore[arg-type]
    about = "Guess first; Reveal shows what the model has."
    return OpenLesson(Lesson(title="Predict, then reveal", about=about, minutes=1, step=(step,)))


def said_with(text: str, figures: Mapping[str, Figure], values: Mapping[str, Value]) -> str:
    """`text` with its figures in it; "…" for those that have no value yet, and for names that are no figure's."""

    def said(found: re.Match[str]) -> str:
        name = found[1]
        return _plain(figures[name].text_of(values[name])) if name in values and name in figures else COMING

    return _IN_BRACES.sub(said, text)


def _roles(it: str) -> tuple[Option, ...]:
    """Answers of which one is right, whatever the role is that the figure `it` names."""
    return (
        *(Option(say=f"It attends to {role.title}", when=f"{it} = '{role.name}'") for role in PATTERNS),
        Option(
            say="It attends by grammar, or does none of these plainly",
            when=" and ".join(f"{it} != '{role.name}'" for role in PATTERNS),
        ),
    )


def figures_in(text: str) -> tuple[str, ...]:
    """The names in its braces. Text in Markdown has no braces of its own."""
    return tuple(_IN_BRACES.findall(text))


def _plain(text: str) -> str:
    """Without what Markdown would read as marks: a token may be an asterisk."""
    return re.sub(r"([\\`*_\[\]<>#|~])", r"\\\1", text)
