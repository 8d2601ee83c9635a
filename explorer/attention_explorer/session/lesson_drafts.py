"""A lesson that is being made: steps that need not be complete yet, and what a file says once they are. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal, get_args

import msgspec

from attention_explorer.session import attn, lesson_files
from attention_explorer.session.figures import Figure
from attention_explorer.session.hidden import Hide
from attention_explorer.session.kept import KeptState, SessionFile, named
from attention_explorer.session.lesson_files import LessonError
from attention_explorer.session.lessons import (
    MOST_STEPS,
    OF_SCENES,
    Ask,
    Lesson,
    OpenLesson,
    Option,
    Step,
    figures_in,
)
from attention_explorer.session.scenes import check_state
from attention_explorer.session.state import CorpusChoice, Document, State
from attention_explorer.session.statements import statement
from attention_explorer.session.tours import Part
from attention_models.protocol.facts import FactKind, OfCell, OfCost, OfMap, OfModel, OfRow, OfValues

Way = Literal["options", "number", "click", "word", "cells"]
"""How a question is answered."""

STANDING: dict[str, FactKind] = {
    kind.replace(" ", "_"): kind
    for kind in (
        *(*get_args(OfCell), *get_args(OfRow), *get_args(OfMap)),
        *("next", "next probability", "moved", "tokens"),
        *(*get_args(OfModel), *get_args(OfValues), *get_args(OfCost)),
    )
}
"""Figures that need no more than their kind, by the name that a text or a statement can use without more ado."""

LETTERS = "ABCDEFGHIJ"
"""Of the options of a question; there are no more."""

MOST_UNDONE = 200

_OF_STANDING = {name: Figure(kind=kind) for name, kind in STANDING.items()}


@dataclass(frozen=True, slots=True)
class DraftAsk:
    """A question that need not be complete."""

    way: Way = "options"
    question: str = ""
    options: tuple[tuple[str, str], ...] = (("", ""), ("", ""))  # what each says, and the statement that makes it right
    figure: str = ""  # the name of what is meant, but where there are options
    within: float = 0.1
    low: float = 0.0
    high: float = 1.0
    hide: Hide = ""
    reveal: str = ""

    @classmethod
    def of(cls, ask: Ask) -> DraftAsk:
        ways: tuple[Way, ...] = ("number", "click", "word", "cells")
        way: Way = next((way for way in ways if getattr(ask, way) is not None), "options")
        return cls(
            way=way,
            question=ask.question,
            options=tuple((option.say, option.when) for option in ask.options),
            figure=ask.meant or "",
            within=ask.within,
            low=ask.low,
            high=ask.high,
            hide=ask.hide,
            reveal=ask.reveal,
        )

    @property
    def texts(self) -> tuple[str, ...]:
        """Those that can have figures in braces."""
        return self.question, self.reveal

    def ask(self) -> Ask:
        """ValueError, with a clause, where it is not complete."""
        options = self.options if self.way == "options" else ()
        for letter, (say, when) in zip(LETTERS, options, strict=False):
            if not say.strip() or not when.strip():
                lacks = "says nothing" if not say.strip() else "does not say when it is right"
                raise ValueError(f"answer {letter} of its question {lacks}")
        ask = Ask(
            question=self.question,
            options=tuple(Option(say=say, when=when) for say, when in options),
            within=self.within,
            low=self.low,
            high=self.high,
            hide=self.hide,
            reveal=self.reveal,
            **({} if self.way == "options" else {self.way: self.figure}),
        )
        if not self.question.strip():
            raise ValueError("its question asks nothing yet")
        return ask

    def statements(self) -> tuple[str, ...]:
        return tuple(when for _, when in self.options) if self.way == "options" else ()


@dataclass(frozen=True, slots=True)
class DraftStep:
    """A step that need not be complete. It shows `state`; without one what `was` shows, which a file had."""

    title: str
    say: str = ""
    notes: str = ""
    ask: DraftAsk | None = None
    state: KeptState | None = None
    text_size: float | None = None
    point: Part | None = None  # what is ringed
    was: Step | None = None

    @classmethod
    def of(cls, step: Step, state: KeptState | None) -> DraftStep:
        return cls(
            title=step.title,
            say=step.say,
            notes=step.notes,
            ask=None if step.ask is None else DraftAsk.of(step.ask),
            state=state,
            text_size=step.text_size if step.show is None else step.show.text_size,
            point=step.point,
            was=step,
        )

    @property
    def has_screen(self) -> bool:
        return self.state is not None or (self.was is not None and self.was.show is not None)

    def with_screen(self, state: KeptState, text_size: float | None) -> DraftStep:
        """Showing `state` in the place of what it showed."""
        was = None if self.was is None else msgspec.structs.replace(self.was, show=None, state=None, point=None)
        point = None if self.point in OF_SCENES else self.point
        return replace(self, state=state, text_size=text_size, was=was, point=point)

    @property
    def figures(self) -> dict[str, Figure]:
        """Those that its file had, and those that its texts and statements name."""
        found = {} if self.was is None else dict(self.was.figures)
        for name in self.names:
            if name in _OF_STANDING:
                found.setdefault(name, _OF_STANDING[name])
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """Of the figures that it needs, whether there are such or not."""
        ask = self.ask
        found = list(figures_in(self.say))
        if ask is not None:
            found += [name for text in ask.texts for name in figures_in(text)]
            found += [name for when in ask.statements() for name in names_in(when)]
            found += [ask.figure] if ask.way != "options" else []
        return tuple(dict.fromkeys(name for name in found if name))

    def step(self, state: int | None) -> Step:
        """As a file has it, showing the `state` of this number. ValueError, with a clause, where it is not complete."""
        if not self.title.strip():
            raise ValueError("it has no title")
        ask = None if self.ask is None else self.ask.ask()
        parts = {
            **{"title": self.title, "say": self.say, "notes": self.notes, "figures": self.figures},
            **{"ask": ask, "point": self.point},
        }
        if self.was is None:
            return Step(**parts, state=state, text_size=self.text_size)  # type: ignore[arg-type]
        show = self.was.show
        if show is not None:
            show = msgspec.structs.replace(show, text_size=self.text_size)
            return msgspec.structs.replace(self.was, **parts, show=show)
        return msgspec.structs.replace(self.was, **parts, state=state, text_size=self.text_size)


@dataclass(frozen=True, slots=True)
class Draft:
    """A lesson that is being made."""

    title: str = "My lesson"
    about: str = ""
    minutes: int = 10
    steps: tuple[DraftStep, ...] = ()

    @classmethod
    def of(cls, opened: OpenLesson) -> Draft:
        lesson, states = opened.lesson, opened.states
        steps = tuple(DraftStep.of(s, None if s.state is None else states[s.state - 1]) for s in lesson.step)
        return cls(lesson.title, lesson.about, lesson.minutes, steps)

    def with_step(self, at: int, step: DraftStep) -> Draft:
        """With another step at that place."""
        return replace(self, steps=(*self.steps[:at], step, *self.steps[at + 1 :]))

    def added(self, at: int, step: DraftStep) -> Draft:
        """With one step more, before that place. ValueError, with a sentence, where there are too many."""
        if len(self.steps) >= MOST_STEPS:
            raise ValueError(f"A lesson has {MOST_STEPS} steps at most. Delete one first.")
        return replace(self, steps=(*self.steps[:at], step, *self.steps[at:]))

    def without(self, at: int) -> Draft:
        return replace(self, steps=(*self.steps[:at], *self.steps[at + 1 :]))

    def moved(self, at: int, to: int) -> Draft:
        """With a step in another place: `to` is counted once it is taken out."""
        rest = self.without(at).steps
        return replace(self, steps=(*rest[:to], self.steps[at], *rest[to:]))

    def opened(self) -> OpenLesson:
        """The lesson, as its file gives it back.

        Raises:
            LessonError: it is not complete; what is wrong, and with which step.
        """
        if not self.steps:
            raise LessonError("it has no step yet")
        if not self.title.strip():
            raise LessonError("the lesson has no title")
        steps: list[Step] = []
        states: list[KeptState] = []
        for number, draft in enumerate(self.steps, start=1):
            try:
                steps.append(draft.step(None if draft.state is None else len(states) + 1))
                if draft.state is not None:
                    check_state(draft.state)
                    states.append(named(draft.state, draft.title))
            except ValueError as error:
                clause = str(error).rstrip(".")
                raise LessonError(f"step {number}: {clause}", step=number) from error
        about = self.about if self.about.strip() else self.title
        lesson = Lesson(title=self.title, about=about, minutes=self.minutes, step=tuple(steps))
        return lesson_files.decode_file(lesson_files.encode_file(OpenLesson(lesson, tuple(states))))


def captured(present: KeptState, family: str = "") -> KeptState:
    """What is on screen, as the file of a lesson gives it back: without what only the person's own session has.

    A model of this `family` reads a text or looks at a picture: the other, which stays in the window, is none of it.

    Raises:
        ValueError: a lesson cannot show it; what it names that it may not, as a clause.
    """
    document = present.document
    if "corpus" not in present.screen.front:
        document = replace(document, corpus=CorpusChoice())
    if "probe" not in present.screen.front:
        document = replace(document, probe="")
    document = replace(document, writings=tuple(w for w in document.writings if w.origin == document.origin))
    state = replace(present, document=_as_read(document, family), name="", extra=())
    check_state(state)
    return attn.decode(attn.encode(SessionFile(state))).present


def _as_read(document: Document, family: str) -> Document:
    """Without the text that a model does not read, or the picture that it does not look at."""
    if family == "vision":
        return replace(document, text="", second=None, target=None, before=(), after=(), chat=False, turns=())
    return replace(document, picture="") if family else document


def is_of_step(step: DraftStep, state: State, front: Collection[str]) -> bool:
    """Whether what is on screen, with the panels `front` in sight, is what the step shows."""
    document, selection = state.document, state.selection
    if step.state is not None:
        own = step.state.document
        there, here = own.selection, (selection.site, selection.head, selection.query, selection.key)
        is_same_cell = here == (there.site, there.head, there.query, there.key)
        family = "" if state.results.loaded is None else state.results.loaded.info.family
        is_read = _as_read(document, family).inputs == _as_read(own, family).inputs
        return document.checkpoint == own.checkpoint and is_read and is_same_cell
    if step.was is None or step.was.show is None or step.was.goal is None:
        return True
    return document.text == step.was.show.text and step.was.goal.holds(state, front)


def names_in(when: str) -> frozenset[str]:
    """The figures that a statement speaks of; none where it is no statement yet."""
    try:
        return statement(when).names
    except ValueError:
        return frozenset()


class Drafting:
    """A draft with what undo goes back to. Changes in a row with the same `merge` key are taken back together."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._past: list[Draft] = []
        self._future: list[Draft] = []
        self._merge = ""

    @property
    def draft(self) -> Draft:
        return self._draft

    def change(self, draft: Draft, merge: str = "") -> None:
        if draft == self._draft:
            return
        if not merge or merge != self._merge:
            self._past = [*self._past, self._draft][-MOST_UNDONE:]
        self._draft, self._merge = draft, merge
        self._future = []

    def undo(self) -> None:
        if self._past:
            self._future.append(self._draft)
            self._draft, self._merge = self._past.pop(), ""

    def redo(self) -> None:
        if self._future:
            self._past.append(self._draft)
            self._draft, self._merge = self._future.pop(), ""
