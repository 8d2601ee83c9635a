"""The vector of a text as bars: its first values beside the largest of all. Pure."""

from __future__ import annotations

import numpy as np

from attention_explorer.widgets.bar_list import BarRow
from attention_explorer.widgets.number_text import value_text
from attention_models.protocol.sentence import SentenceView

FIRST = 16
"""Values that are shown of a vector."""

NO_VECTOR = "This model gives no vector for each token, so there is none to make of them."


def vector_rows(view: SentenceView) -> list[BarRow]:
    size = float(np.abs(view.vector).max(initial=0.0)) or 1.0
    return [
        BarRow(
            str(place),
            abs(float(value)) / size,
            value_text(float(value)),
            tooltip=f"value {place}: {value:.8g}",
            acts=False,
        )
        for place, value in enumerate(view.vector[:FIRST])
    ]


def vector_heading(view: SentenceView) -> str:
    """How the vector was made, and how much of it is shown."""
    count = len(view.vector)
    shown = f"the first {FIRST} of {count:,} values" if count > FIRST else f"{count} values"
    return f"{view.words} · {shown}"


def vector_subtitle(view: SentenceView) -> str:
    return f"norm {value_text(view.norm)}" if len(view.vector) else ""
