"""What stands above the lanes: what the colours mean, and what the model says."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter

from attention_explorer.look.theme import Theme
from attention_explorer.panels.flow.ground import draw_stripes
from attention_explorer.panels.flow.model_paint import legend_rows
from attention_explorer.panels.flow.model_scene import ModelScene, OutputGroup, OutputRow, Scales
from attention_explorer.widgets.token_text import isolated

# What the model says, drawn above its lanes: bars of the likeliest, or the text's vector as stripes.


MOST_ROWS = 4
_MOST_LABEL = 14  # times the width of a letter
_LEAST_GROUP = 150.0
_GAP = 14.0
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class OutputLayout:
    """Where groups and their rows lie in a rectangle."""

    def __init__(self, groups: Sequence[OutputGroup], rect: QRectF, font: QFont) -> None:
        bold = QFont(font)
        bold.setBold(True)
        self.metrics, self.bold = QFontMetricsF(font), QFontMetricsF(bold)
        self.groups, self.rect, self.font = tuple(groups), rect, font
        most = max(1, int((rect.width() + _GAP) / (_LEAST_GROUP + _GAP)))
        self.shown = self.groups[:most]
        self.left_out = len(self.groups) - len(self.shown)

    @property
    def line(self) -> float:
        return self.metrics.height() + 1

    def group_rect(self, group: int) -> QRectF:
        width = (self.rect.width() - _GAP * (len(self.shown) - 1)) / max(1, len(self.shown))
        return QRectF(self.rect.left() + group * (width + _GAP), self.rect.top(), width, self.rect.height())

    def row_rect(self, group: int, row: int) -> QRectF:
        """A row under its group's heading."""
        rect = self.group_rect(group)
        return QRectF(rect.left(), rect.top() + (row + 1) * self.line, rect.width(), self.line)

    def stripes_rect(self, group: int) -> QRectF:
        """Where a vector is drawn."""
        head = self.group_rect(group)
        return QRectF(head.left(), head.top() + 1.2 * self.line, min(head.width(), 220.0), 1.2 * self.line)

    def rows(self, group: int) -> tuple[OutputRow, ...]:
        return self.shown[group].rows[: max(0, int(self.rect.height() / self.line) - 1)][:MOST_ROWS]

    def bar_rect(self, group: int, row: int) -> QRectF:
        """The whole room of a bar."""
        rect, rows = self.row_rect(group, row), self.rows(group)
        label = min(
            max(self.bold.horizontalAdvance(each.label) for each in rows), _MOST_LABEL * self.metrics.averageCharWidth()
        )
        text = max(self.metrics.horizontalAdvance(each.text) for each in rows)
        width = max(10.0, min(150.0, rect.width() - label - text - 16))
        return QRectF(rect.left() + label + 8, rect.top() + 0.18 * self.line, width, 0.64 * self.line)


def draw_outputs(painter: QPainter, layout: OutputLayout, theme: Theme, bold: QFont) -> None:
    for group in range(len(layout.shown)):
        shown, head = layout.shown[group], layout.group_rect(group)
        painter.setFont(layout.font)
        painter.setPen(QColor(theme.text_dim))
        heading = isolated(shown.heading)
        if layout.left_out and group == len(layout.shown) - 1:
            heading += f"  (+ {layout.left_out} more)"
        heading = layout.metrics.elidedText(heading, Qt.TextElideMode.ElideRight, head.width())
        painter.drawText(QRectF(head.left(), head.top(), head.width(), layout.line), _LEFT, heading)
        if shown.vector is not None and len(shown.vector):
            draw_stripes(painter, layout.stripes_rect(group), shown.vector, theme)
        for row, each in enumerate(layout.rows(group)):
            _draw_row(painter, layout, group, row, each, theme, bold if row == 0 else layout.font)


def _draw_row(
    painter: QPainter, layout: OutputLayout, group: int, row: int, each: OutputRow, theme: Theme, font: QFont
) -> None:
    rect, room = layout.row_rect(group, row), layout.bar_rect(group, row)
    painter.setFont(font)
    painter.setPen(QColor(theme.text))
    label = QRectF(rect.left(), rect.top(), room.left() - rect.left() - 8, rect.height())
    painter.drawText(
        label, _RIGHT, QFontMetricsF(font).elidedText(each.label, Qt.TextElideMode.ElideRight, label.width() + 1)
    )
    painter.setPen(Qt.PenStyle.NoPen)
    bar = QRectF(room.left(), room.top(), max(2.0, room.width() * each.share), room.height())
    if each.before is not None:
        painter.setBrush(QColor(theme.border_strong))
        painter.drawRoundedRect(QRectF(bar.left(), bar.top() - 1, max(2.0, room.width() * each.before), 3), 1.5, 1.5)
        bar.adjust(0, 3, 0, 0)
    painter.setBrush(QColor(theme.bar))
    painter.drawRoundedRect(bar, 2, 2)
    painter.setFont(layout.font)
    painter.setPen(QColor(theme.text_dim))
    end = max(bar.right(), room.left() + room.width() * (each.before or 0))
    painter.drawText(QRectF(end + 6, rect.top(), rect.right() - end, rect.height()), _LEFT, each.text)


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
