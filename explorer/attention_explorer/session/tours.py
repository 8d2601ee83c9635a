"""Tours: steps that point at a part of the window and wait until something is on screen, from `resources/tours/`."""

from __future__ import annotations

import string
from functools import cache
from typing import Annotated, Literal

import msgspec

from attention_explorer import json_files
from attention_explorer.paths import resource
from attention_explorer.session.figures import Because, Figures, check_reasons
from attention_explorer.session.goals import Goal
from attention_explorer.session.named_tokens import Word
from attention_models.files.toml_files import decode_toml

_BYTES = 64 * 1024
"""A file of a tour is not larger."""

Part = Literal["token", "head", "cell", "panel", "block", "checkpoint"]
"""What a step points at: a token of the strip, a thumbnail, a cell of the map, a panel's tab, a button, a menu."""

FIGURES = (
    *("heads", "layers", "query", "key", "wrote", "weight", "rests"),
    *("next", "next_share", "key_share", "key_before"),
)
"""What a sentence can have in braces: words and numbers of the run on screen."""

_Sentence = Annotated[str, msgspec.Meta(min_length=1, max_length=400)]


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step. `say` asks for an act; `done` is said once what it asked for is on screen."""

    title: Annotated[str, msgspec.Meta(min_length=1, max_length=60)]
    say: _Sentence
    done: _Sentence
    point: Part
    act: Goal  # what the person is to do; "Show me" does it
    needs: str = ""  # the name of the state that it begins from; "" for any
    figures: Figures = {}  # of `because` alone
    because: Annotated[tuple[Because, ...], msgspec.Meta(max_length=20)] = ()  # what shows the causes that it names

    def __post_init__(self) -> None:
        check_reasons(self.because, (self.say, self.done), self.figures, changed=self.act.blocked)


class Tour(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Steps in their order, and the states that they begin from."""

    title: Annotated[str, msgspec.Meta(min_length=1, max_length=60)]
    end: _Sentence
    states: dict[Word, Goal]
    step: Annotated[tuple[Step, ...], msgspec.Meta(min_length=1, max_length=50)]

    def needed(self, step: Step) -> Goal:
        """What must be on screen for `step` to make sense."""
        return self.states[step.needs] if step.needs else Goal()


def decode(content: bytes) -> Tour:
    """The tour that a file spells in TOML.

    Raises:
        ValueError: it spells none; what is wrong and where.
    """
    tour = msgspec.convert(decode_toml(content.decode()), type=Tour)
    for number, step in enumerate(tour.step, start=1):
        if step.needs and step.needs not in tour.states:
            raise ValueError(f"step {number} needs a state “{step.needs}” that there is not")
        for name in figures_in(step.say + step.done):
            if name not in FIGURES:
                raise ValueError(f"step {number} has no figure “{name}”: there are {', '.join(FIGURES)}")
    return tour


def figures_in(sentence: str) -> tuple[str, ...]:
    """The names in its braces. ValueError where they are not closed."""
    return tuple(name for _, name, _, _ in string.Formatter().parse(sentence) if name is not None)


@cache
def first_tour() -> Tour:
    """The tour that a first start offers."""
    return decode(json_files.read(resource("tours/first.toml"), _BYTES))
