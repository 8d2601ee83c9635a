"""The colour maps: from a number to a colour, perceptually uniform and safe for colour-blind eyes."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from attention_explorer.look.theme import SEQUENTIAL_MAPS
from attention_explorer.paths import resource

ColourTable = NDArray[np.uint8]  # (256, 3): red, green, blue


@cache
def sequential(name: str = "viridis") -> ColourTable:
    """A perceptually uniform map from low to high, read-only, (256, 3) uint8.

    Raises ValueError when `name` is not one of SEQUENTIAL_MAPS.
    """
    if name not in SEQUENTIAL_MAPS:
        raise ValueError(f"There is no colour map {name!r}. Choose one of {', '.join(SEQUENTIAL_MAPS)}.")
    return _palette(name)


@cache
def diverging() -> ColourTable:
    """Blue below zero, pale at zero, red above; for a range of -high to high. Read-only, (256, 3) uint8."""
    return _palette("cet-d1a")


def _palette(name: str) -> ColourTable:
    """A file of `resources/palettes/`: a colour a line."""
    colours = resource(f"palettes/{name}.txt").read_text(encoding="ascii").split()
    table = np.array([tuple(bytes.fromhex(colour[1:])) for colour in colours], dtype=np.uint8)
    table.setflags(write=False)
    return table
