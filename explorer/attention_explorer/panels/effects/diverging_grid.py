"""Cells about 0 with their numbers in them: blue below, red above. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attention_explorer.panels.effects.value_grid import Grid
from attention_explorer.widgets.number_text import MINUS


def _short(value: float) -> str:
    """ "+1.26", "0" for what rounds to it."""
    text = f"{value:+.2f}".replace("-", MINUS)
    return "0" if text[1:] == "0.00" else text


def diverging_grid(
    values: np.ndarray,
    rows: tuple[str, ...],
    columns: tuple[str, ...],
    row_name: str,
    column_name: str,
    tips: Sequence[Sequence[str]],
    least_width: float = 30.0,
) -> Grid:
    high = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    padded = tuple(tuple(line) + ("",) * (values.shape[1] - len(line)) for line in tips)
    words = tuple(tuple("" if np.isnan(v) else _short(float(v)) for v in line) for line in values)
    return Grid(
        values=values,
        row_labels=rows,
        column_labels=columns,
        low=-high,
        high=high,
        row_name=row_name,
        column_name=column_name,
        words=words,
        tips=padded,
        least_width=least_width,
        has_numbers=True,
    )
