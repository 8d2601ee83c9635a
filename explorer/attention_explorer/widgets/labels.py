"""A label for a sentence that may hold a token or a name."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel

from attention_explorer.widgets.token_text import ARROW, isolated

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


_LEAST_ROOM = 5  # letters: less than that says nothing


class ElidedLabel(QLabel):
    """A label of one line that is cut with "…" where it has no room, and stays empty where it has next to none."""

    elide_mode = Qt.TextElideMode.ElideRight  # where the "…" stands

    def setText(self, text: str) -> None:
        super().setText(isolated(text))

    def paintEvent(self, event: QPaintEvent) -> None:
        metrics = self.fontMetrics()
        fits = metrics.horizontalAdvance(self.text()) <= self.width()
        if not fits and self.width() < _LEAST_ROOM * metrics.averageCharWidth() + metrics.horizontalAdvance("…"):
            return
        text = metrics.elidedText(self.text(), self.elide_mode, self.width())
        QPainter(self).drawText(self.rect(), Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)


class SaidLabel(QLabel):
    """Shows plain text, for a token may look like mark-up, and keeps what is quoted in its own direction."""

    def __init__(self, text: str = "") -> None:
        super().__init__(isolated(text))
        self.setTextFormat(Qt.TextFormat.PlainText)

    def setText(self, text: str) -> None:
        super().setText(isolated(text))
