"""Texts with their classes, as a classifier is fine-tuned on: a table of a text and a label, or two texts and a label.

Columns are parted by tabs, or by commas where the first line has no tab; the label stands last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from attention_models.forward.classes import head_of
from attention_models.forward.model import Model
from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.values import ClassHead
from attention_models.training.pairs_file import Source, misshapen, quoted, rows_in

LEAST_TEXTS = 10
_HEADERS = ("label", "labels", "class", "category")
_MOST_NAMED = 8  # classes, in a sentence


class LabelledRow(NamedTuple):
    texts: tuple[str, ...]  # one, or the two of a pair
    label: int  # the number of its class
    line: int


@dataclass(frozen=True, slots=True)
class Labelled:
    """Rows of which all have as many texts."""

    rows: tuple[LabelledRow, ...]
    name: str  # of the file, as a sentence begins


def labelled_in(source: Source, model: Model) -> Labelled:
    """The rows of `source`, each of a class of `model`.

    Raises:
        ExplorerError: no such rows, a label that is no class, one class alone, or too few texts.
    """
    source.check_not_empty()
    head = head_of(model)
    by_commas = source.has_commas
    numbers, rows = _numbers(head), list(rows_in(source, by_commas))
    what = "a text and its class"
    if model.info.pairs:
        what += ", or two texts and the class"
    found: list[LabelledRow] = []
    for place, (line, columns) in enumerate(rows):
        if not 2 <= len(columns) <= (3 if model.info.pairs else 2):
            raise ExplorerError(misshapen(source, line, columns, what, by_commas))
        if len(columns) != len(rows[0][1]):
            first = f"line {rows[0][0]:,} has {len(rows[0][1])}"
            raise ExplorerError(f"{misshapen(source, line, columns, what, by_commas)} But {first}.")
        label = _number_of(columns[-1], numbers)
        if label is None and place == 0 and columns[-1].lower() in _HEADERS:
            continue
        if label is None:
            raise ExplorerError(f"{source.name}, line {line:,}: {_unknown(columns, numbers, head, model.info.name)}")
        found.append(LabelledRow(tuple(columns[:-1]), label, line))
    _check_enough(found, source.name, head)
    return Labelled(tuple(found), source.name)


def _numbers(head: ClassHead) -> Mapping[str, int]:
    """The number of each class by what a file may call it: its name as it is or in small letters, or its number.

    A name that two classes have is left out. Where names are numbers themselves they alone count: a model of one to
    five stars calls its class 0 “1”.
    """
    found: dict[str, int] = {}
    if not any(name.strip().lstrip("+-").isdecimal() for name in head.labels):
        found = {str(number): number for number in range(len(head.labels))}
    for spell in (str.casefold, str):
        spelt = [spell(name.strip()) for name in head.labels]
        found |= {name: number for number, name in enumerate(spelt) if spelt.count(name) == 1}
    return found


def _number_of(label: str, numbers: Mapping[str, int]) -> int | None:
    return numbers.get(label, numbers.get(label.casefold()))


def _unknown(columns: Sequence[str], numbers: Mapping[str, int], head: ClassHead, name: str) -> str:
    label = columns[-1]
    if _number_of(columns[0], numbers) is not None or columns[0].lower() in _HEADERS:
        return f"the class comes last in each row, and here “{quoted(columns[0])}” comes first. Swap the columns."
    classes = [f"“{quoted(label)}” ({number})" for number, label in enumerate(head.labels[:_MOST_NAMED])]
    more = len(head.labels) - len(classes)
    listed = f"{', '.join(classes[:-1])} and {classes[-1]}" if not more else f"{', '.join(classes)} and {more:,} more"
    return f"“{quoted(label)}” is no class of {name}. Its classes are {listed}."


def _check_enough(rows: Sequence[LabelledRow], name: str, head: ClassHead) -> None:
    texts = len({row.texts for row in rows})
    if texts < LEAST_TEXTS:
        raise ExplorerError(
            f"{name} has {texts} different text{'s' if texts != 1 else ''}, too few to learn from some and hold others "
            f"out: give it at least {LEAST_TEXTS}."
        )
    if len({row.label for row in rows}) < 2:
        only = quoted(head.labels[rows[0].label])
        raise ExplorerError(
            f"All rows of {name} are of the class “{only}”: nothing tells it apart. Add rows of others."
        )
