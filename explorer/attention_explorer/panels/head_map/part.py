"""Which part of a map shows, as a line of text."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """How far a map is zoomed, how many rows and columns lie before the first that shows, and how many there are."""

    zoom: float
    down: float
    right: float
    rows: int
    columns: int

    @property
    def text(self) -> str:
        return " ".join(f"{value:.6g}" for value in astuple(self))

    @classmethod
    def of(cls, text: object) -> Part | None:
        """The part that a text says; None where it says none."""
        try:
            zoom, down, right, rows, columns = (float(value) for value in str(text).split())
        except ValueError:
            return None
        if not all(math.isfinite(value) and value >= 0 for value in (zoom, down, right, rows, columns)):
            return None
        return cls(zoom, down, right, int(rows), int(columns))
