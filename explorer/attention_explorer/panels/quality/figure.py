"""A measurement as a figure: a series a model over the length of a sentence, and how many sentences each length has."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from attention_explorer.panels.quality.quality_sentences import (
    BLEU,
    EXACT,
    FEW,
    noun_of,
    styles,
    text_of_value,
    value_of,
)
from attention_explorer.widgets.plot.figure import Axis, Counts, Figure, Rule, Series
from attention_models.protocol.information import Unit
from attention_models.protocol.quality import QualityView

_TITLES = ("BLEU", "right, %", "log p a token, {}")
_COLUMN = 0.42  # of a length, to each side


def figure_of(view: QualityView, measure: int, unit: Unit) -> Figure:
    """A point stands at the middle of its bin, hollow for fewer than `FEW` sentences. All planned bins have room.

    Log-probabilities are drawn in `unit`.
    """
    first, last, counts = (np.array(column) for column in zip(*view.planned, strict=True))
    middles, measured = (first + last) / 2, len(view.bins)
    series = tuple(
        Series(
            style.name,
            middles[:measured],
            np.array([value_of(bin_.scores[i], bin_.sentences, measure, unit) for bin_ in view.bins]),
            style.role,
            "dashed" if style.dashed else "solid",
            mark=style.mark,
            mark_size=9,
            hollow=counts[:measured] < FEW,
        )
        for i, style in enumerate(styles(view))
    )

    def bin_text(middle: float) -> str:
        at = int(np.abs(middles - middle).argmin())
        return f"{first[at]} to {last[at]} {view.unit}, {counts[at]:,} {noun_of(view)}"

    def value_text(value: float) -> str:
        return text_of_value(value, measure)

    low, high = _y_range([float(value) for each in series for value in each.y], measure)
    title = "words in the English sentence" if view.unit == "words" else "characters in the date"
    trained = min((longest for longest in view.trained_to if longest is not None), default=None)
    return Figure(
        Axis(title, float(first[0]) - 0.5, float(last[-1]) + 0.5, whole=True, text=bin_text),
        Axis(_TITLES[measure].format(unit), low, high, text=value_text),
        series,
        Counts("n", first - _COLUMN, last + _COLUMN, counts),
        () if trained is None else (Rule(trained + 0.5, f"trained up to {trained} words"),),
        names="legend",
    )


def _y_range(values: Sequence[float], measure: int) -> tuple[float, float]:
    """Round ends that hold every value."""
    if measure == EXACT:
        return 0.0, 100.0
    if measure == BLEU:
        return 0.0, max(40.0, 10.0 * math.ceil(max(values, default=0.0) / 10))
    low = min(values, default=-1.0)
    step = 1.0 if low < -1 else 0.1 if low < -0.1 else 0.01
    return step * math.floor(low / step), 0.0
