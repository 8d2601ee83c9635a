"""How "El → gato" is cut where there is too little room: what came out is kept longest."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetricsF

from attention_explorer.widgets.token_text import ARROW

_LEAST = 0.35  # of the room: for what went in, where both are long


def elided(metrics: QFontMetricsF, text: str, room: float) -> str:
    """`text` as it fits into `room` pixels: a pair on each side of its arrow, anything else in its middle."""
    read, arrow, wrote = text.partition(ARROW)
    if not arrow or metrics.horizontalAdvance(text) <= room:
        return metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, room)
    left = room - metrics.horizontalAdvance(arrow)
    for_read = max(_LEAST * left, left - metrics.horizontalAdvance(wrote))
    read = metrics.elidedText(read, Qt.TextElideMode.ElideRight, for_read)
    wrote = metrics.elidedText(wrote, Qt.TextElideMode.ElideRight, left - metrics.horizontalAdvance(read))
    return read + arrow + wrote
