"""The little dictionary of the textbook pages: words, each with a price and a colour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attention_explorer.widgets.number_text import MINUS


@dataclass(frozen=True)
class Entry:
    """`place` is the key's arrow when the page opens."""

    key: str
    price: float
    colour: str
    place: tuple[float, float]


ENTRIES = (
    Entry("apple", 1.20, "#cf3f45", (1.35, 1.05)),
    Entry("banana", 0.80, "#e3b321", (-1.0, 1.3)),
    Entry("grape", 3.50, "#7d4fb3", (1.2, -0.95)),
    Entry("lime", 0.50, "#4c9f38", (-1.2, -0.8)),
)
QUERY_PLACE = (1.3, 0.4)


def value_vectors() -> NDArray[np.float64]:
    """(entries, 4): price, red, green and blue, the last three between 0 and 255."""
    rows = [(e.price, *(int(e.colour[i : i + 2], 16) for i in (1, 3, 5))) for e in ENTRIES]
    return np.array(rows, np.float64)


def colour_text(value: NDArray[np.float64]) -> str:
    """The colour of a mixed value vector, "#rrggbb"."""
    return "#" + "".join(f"{round(min(max(float(channel), 0.0), 255.0)):02x}" for channel in value[1:4])


def number(value: float, decimals: int = 2) -> str:
    """With a true minus sign, and no minus before a zero."""
    text = f"{value:.{decimals}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", MINUS)


def percent(weight: float, decimals: int = 0) -> str:
    """A weight as a share; one too small to write says so rather than 0."""
    least = 0.5 * 10.0**-decimals
    if 0 < 100 * weight < least:
        return f"< {10.0**-decimals:g} %"
    return f"{100 * weight:.{decimals}f} %"
