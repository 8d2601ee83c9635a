"""A label that has an ellipsis where its text does not fit."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel

from attention_explorer.widgets.token_text import isolated

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
