"""Answers to the questions of a lesson: the score, and a table to save. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass

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
