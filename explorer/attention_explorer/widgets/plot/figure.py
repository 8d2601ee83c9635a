"""What a plot shows, as plain frozen values: series of points over two axes, bars beneath them, and remarks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from attention_explorer.widgets.number_text import MINUS, value_text

Values = np.ndarray
Mark = Literal["none", "circle", "square", "diamond", "triangle"]
Line = Literal["solid", "dashed", "dotted", "dash-dot", "none"]
Names = Literal["legend", "end", "curve"]


@dataclass(frozen=True, slots=True)
class Axis:
    """A title, and what the axis reaches from and to: by default what the points need.

    On a logarithmic axis all points and ends are above 0. `ticks` are chosen where none are given; with `whole` they
    are whole numbers. `text` says a value of this axis in words, where it is more than the number.
    """

    title: str = ""
    low: float | None = None
    high: float | None = None
    log: bool = False
    whole: bool = False
    ticks: tuple[float, ...] = ()
    text: Callable[[float], str] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Points (points,), `x` ascending, joined by a line, marked, or both.

    `role` names a colour of the theme. A series that is `context` stands in the background: it is drawn and exported,
    but neither named nor read out. `hollow` (points,) says which marks are only outlined.
    """

    name: str
    x: Values
    y: Values
    role: str = "bar"
    line: Line = "solid"
    width: float = 2.0  # of the line, pixels
    mark: Mark = "none"
    mark_size: float = 7.0  # pixels across
    hollow: Values | None = None
    context: bool = False

    def at(self, place: float) -> float:
        """y where x is `place`; NaN where the series has no point there."""
        index = self._index(place)
        return math.nan if index is None else float(self.y[index])

    def is_hollow(self, place: float) -> bool:
        """Whether the mark at x = `place` is only outlined."""
        index = self._index(place)
        return self.hollow is not None and index is not None and bool(self.hollow[index])

    def _index(self, place: float) -> int | None:
        index = int(np.searchsorted(self.x, place))
        return index if index < len(self.x) and self.x[index] == place else None


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """How much each stretch of the x axis stands on: pale columns at the foot, with their numbers below the axis.

    `low`, `high` and `counts` are (columns,). They have a scale of their own.
    """

    name: str
    low: Values
    high: Values
    counts: Values


@dataclass(frozen=True, slots=True)
class Rule:
    """An upright dashed line at `x`, and what it stands for."""

    x: float
    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """A ring around a point, and what is to be said of it."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """Everything that a plot shows.

    `names` says where the names of the series stand: above with the values that are read, at the right ends of the
    lines, or beside the lines where there is room.
    """

    x: Axis = Axis()
    y: Axis = Axis()
    series: tuple[Series, ...] = ()
    counts: Counts | None = None
    rules: tuple[Rule, ...] = ()
    notes: tuple[Note, ...] = ()
    names: Names = "end"

    @property
    def is_empty(self) -> bool:
        return self.counts is None and all(not len(series.x) for series in self.series)

    @property
    def named(self) -> tuple[Series, ...]:
        """The series that are named and read out."""
        return tuple(series for series in self.series if not series.context)

    def place_text(self, x: float) -> str:
        """A place on the x axis in words: "12", "1,024", "−0.5", or as the axis has it."""
        return self.x.text(x) if self.x.text is not None else f"{x:,.6g}".replace("-", MINUS)

    def value_text(self, y: float) -> str:
        return self.y.text(y) if self.y.text is not None else value_text(y)

    def longest_texts(self, series: Series) -> list[str]:
        """The values of `series` in words, without most of those that are no longer than another."""
        values = series.y.astype(float)
        if self.y.text is not None:
            return [self.y.text(y) for y in values.tolist()]
        # the sign and the power of ten decide, but for what is rounded up to the next power: the largest of its kind
        values = values[np.argsort(np.abs(values))]
        with np.errstate(divide="ignore"):
            powers = np.floor(np.log10(np.abs(values)))
        kinds = zip(np.signbit(values).tolist(), powers.tolist(), strict=True)
        return [value_text(y) for y in dict(zip(kinds, values.tolist(), strict=True)).values()]

    def places(self) -> Values:
        """Every x at which something can be read, ascending, (places,)."""
        return _union(self.named)

    def columns(self) -> dict[str, Values]:
        """The data as named columns of one length: x under its axis's title, then y of each series.

        NaN stands where a series has no point.
        """
        places = _union(self.series)
        table = {self.x.title: places}
        for series in self.series:
            column = np.full(len(places), np.nan)
            column[np.searchsorted(places, series.x)] = series.y
            table[series.name] = column
        return table


def _union(series: tuple[Series, ...]) -> Values:
    return np.unique(np.concatenate([np.zeros(0), *(each.x.astype(float) for each in series)]))
