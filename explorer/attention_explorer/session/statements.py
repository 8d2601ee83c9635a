"""Statements about named figures, as a lesson checks them: `tom > 0.5`, `now < before / 2`, `says = 'Tom'`. Pure.

They are read, not run: a name, a number or a word on either side, a factor at most, and what holds between the two.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

Value = float | str

NAME = r"[a-z][a-z0-9_]{0,30}"
LONGEST = 300

_NUMBER = r"-?\d{1,12}(?:\.\d{1,12})?(?:e-?\d{1,2})?"
_SIDE = re.compile(
    rf"(?:(?P<name>{NAME})(?: ?(?P<sign>[*/]) ?(?P<factor>{_NUMBER}))?|(?P<number>{_NUMBER})|'(?P<word>[^']*)')"
)
_BETWEEN = re.compile(r" (<=|>=|!=|=|<|>) ")

_CLOSE = 1e-9
"""Relative: numbers that differ by less are equal."""


@dataclass(frozen=True, slots=True)
class _Side:
    name: str = ""
    factor: float = 1.0
    value: Value = 0.0

    def of(self, figures: Mapping[str, Value]) -> Value:
        if not self.name:
            return self.value
        value = figures[self.name]
        return value if isinstance(value, str) else value * self.factor


@dataclass(frozen=True, slots=True)
class _Clause:
    left: _Side
    relation: str
    right: _Side

    def holds(self, figures: Mapping[str, Value]) -> bool:
        a, b = self.left.of(figures), self.right.of(figures)
        if isinstance(a, str) or isinstance(b, str):
            if self.relation not in ("=", "!="):
                return False
            return (str(a) == str(b)) == (self.relation == "=")
        equal = math.isclose(a, b, rel_tol=_CLOSE, abs_tol=_CLOSE)
        match self.relation:
            case "=":
                return equal
            case "!=":
                return not equal
            case "<":
                return a < b and not equal
            case "<=":
                return a < b or equal
            case ">":
                return a > b and not equal
        return a > b or equal


@dataclass(frozen=True, slots=True)
class Statement:
    """Clauses that hold all together: `0.1 <= p and p < 0.5`."""

    text: str
    clauses: tuple[_Clause, ...]

    @property
    def names(self) -> frozenset[str]:
        """The figures that it speaks of."""
        return frozenset(side.name for clause in self.clauses for side in (clause.left, clause.right) if side.name)

    @property
    def word(self) -> tuple[str, str] | None:
        """The figure and the word, where all it says is that the one is the other."""
        if len(self.clauses) != 1 or self.clauses[0].relation != "=":
            return None
        left, right = self.clauses[0].left, self.clauses[0].right
        return (left.name, right.value) if left.name and not right.name and isinstance(right.value, str) else None

    def holds(self, figures: Mapping[str, Value]) -> bool:
        """Whether it is so. KeyError where a figure is not known."""
        return all(clause.holds(figures) for clause in self.clauses)


def statement(text: str) -> Statement:
    """Read a statement. ValueError, with a clause that says what is wrong, where it is none."""
    if len(text) > LONGEST:
        raise ValueError(f"a statement of {len(text):,} characters is too long: {LONGEST} at most")
    clauses = []
    for part in text.split(" and "):
        found = _BETWEEN.split(f" {part.strip()} ")
        if len(found) != 3:
            raise ValueError(f"“{part.strip()}” is no statement: it needs one of < <= = != >= > between two sides")
        left, relation, right = found
        clauses.append(_Clause(_side(left), relation, _side(right)))
    return Statement(text, tuple(clauses))


def _side(text: str) -> _Side:
    text = text.strip()
    found = _SIDE.fullmatch(text)
    if found is None:
        raise ValueError(f"“{text}” is no figure's name, no number and no 'word'")
    if found["name"]:
        factor = float(found["factor"]) if found["factor"] else 1.0
        if factor == 0:
            raise ValueError(f"“{text}” multiplies or divides by 0")
        return _Side(found["name"], 1 / factor if found["sign"] == "/" else factor)
    if found["number"]:
        return _Side(value=float(found["number"]))
    return _Side(value=found["word"])
