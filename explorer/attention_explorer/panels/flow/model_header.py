"""What stands above the lanes: what the colours mean, and what the model says."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter

from attention_explorer.panels.flow.model_paint import legend_rows
from attention_explorer.panels.flow.model_scene import ModelScene, OutputGroup, Scales
from attention_explorer.panels.flow.output_paint import MOST_ROWS, OutputLayout, draw_outputs
from attention_explorer.theme import Theme

_OUTPUT_ROOM = 38  # letters
_LOW, _LOWEST = 21.0, 14.0  # lines


class ModelHeader:
    """A legend at the left, bars of the likeliest right of it, in a picture of `size`; lower ones list fewer."""

    def __init__(
        self, scene: ModelScene, scales: Scales, outputs: Sequence[OutputGroup], size: QSizeF, font: QFont
    ) -> None:
        self._font, self._metrics, self._width = font, QFontMetricsF(font), size.width()
        self._rows = legend_rows(scene, scales)
        is_low = size.height() < _LOW * self._metrics.height()
        if size.height() < _LOWEST * self._metrics.height():
            self._rows = self._rows[:3]  # what the bars are
        self._lines = max(len(self._rows), 3 if is_low else MOST_ROWS + 1)
        self._outputs = tuple(outputs)

    @property
    def height(self) -> float:
        return self._lines * (self._metrics.height() + 1) + 8

    def outputs(self) -> OutputLayout:
        """Where what the model says is drawn."""
        words = max((self._metrics.horizontalAdvance(words) for _, words in self._rows), default=0.0)
        left = min(words + 52, 0.52 * self._width)
        if len(self._outputs) == 1:  # towards the end of the text, where it mostly is said
            left = max(left, self._width - _OUTPUT_ROOM * self._metrics.averageCharWidth())
        rect = QRectF(left, 0, self._width - left, self.height - 8)
        return OutputLayout(self._outputs, rect, self._font)

    def tooltip_at(self, point: QPointF) -> str:
        """What is said of the row of outputs under a point."""
        outputs = self.outputs()
        for group in range(len(outputs.shown)):
            for row, each in enumerate(outputs.rows(group)):
                if outputs.row_rect(group, row).contains(point):
                    return each.tooltip
        return ""

    def said_at(self, point: QPointF) -> str:
        """The line of the legend at a point, "" beside it."""
        row = int(point.y() // (self._metrics.height() + 1))
        beside = point.x() >= self.outputs().rect.left() - 30
        return "" if beside or not 0 <= row < len(self._rows) else self._rows[row][1]

    def draw(self, painter: QPainter, theme: Theme, bold: QFont) -> OutputLayout:
        """Both; where the outputs are."""
        outputs = self.outputs()
        self._draw_legend(painter, theme, outputs.rect.left() - 30)
        draw_outputs(painter, outputs, theme, bold)
        return outputs

    def _draw_legend(self, painter: QPainter, theme: Theme, room: float) -> None:
        painter.setFont(self._font)
        for row, (role, words) in enumerate(self._rows):
            y = (row + 0.5) * (self._metrics.height() + 1)
            painter.setPen(Qt.PenStyle.NoPen)
            if role:
                painter.setBrush(QColor(getattr(theme, role)))
                low = 2.5 if role == "stream" else 3.5
                painter.drawRoundedRect(QRectF(2, y - low, 16, 2 * low), 2, 2)
            painter.setPen(QColor(theme.text_dim))
            text = self._metrics.elidedText(words, Qt.TextElideMode.ElideRight, room)
            painter.drawText(QPointF(26 if role else 4, y + self._metrics.ascent() / 2 - 1), text)
