"""Numbered steps in a row, one of them current: a page that is read in order, where any step can be gone to."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.text_size import wide
from attention_explorer.widgets.items_widget import ItemsWidget

_GAP = 8.0


class StepBar(ItemsWidget):
    """A click, or Left and Right, goes to a step.

    Steps share the width evenly; where their labels would not fit, only the current one has its label.
    """

    axis = Qt.Orientation.Horizontal
    step_selected = Signal(int)

    def __init__(self, labels: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__("Steps", parent)
        self._labels = tuple(labels)
        self._current = 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._describe()

    @property
    def current(self) -> int:
        return self._current

    def set_current(self, step: int) -> None:
        """Mark `step` as the one that is shown."""
        if step != self._current and 0 <= step < len(self._labels):
            self._current = step
            self._describe()
            self.update()

    def step_rect(self, step: int) -> QRectF:
        """Where a step lies."""
        count, width = len(self._labels), float(self.width())
        if self._labels_fit():
            return QRectF(step * width / count, 0, width / count, self.height())
        bare = self._diameter() + 2 * _GAP
        left = step * bare + (width - count * bare if step > self._current else 0)
        return QRectF(left, 0, width - (count - 1) * bare if step == self._current else bare, self.height())

    def _describe(self) -> None:
        self.setAccessibleDescription(f"Step {self._current + 1} of {len(self._labels)}: {self._labels[self._current]}")

    # geometry

    def _diameter(self) -> float:
        return QFontMetricsF(self.font()).height() + 6

    def _labels_fit(self) -> bool:
        metrics = QFontMetricsF(self.bold_font())
        room = self.width() / len(self._labels) - self._diameter() - 2 * _GAP
        return all(metrics.horizontalAdvance(label) <= room for label in self._labels)

    def sizeHint(self) -> QSize:
        return QSize(360, round(self._diameter() + 14))

    def minimumSizeHint(self) -> QSize:
        return QSize(240, self.sizeHint().height())

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for step in range(len(self._labels)):
            self._draw_step(painter, step)
        self._draw_focus_ring(painter)

    def _draw_step(self, painter: QPainter, step: int) -> None:
        theme, rect, current = self._theme, self.step_rect(step), step == self._current
        font = self.bold_font() if current else QFont(self.font())
        metrics, diameter = QFontMetricsF(font), self._diameter()
        room = rect.width() - diameter - 2 * _GAP
        shown = metrics.elidedText(self._labels[step], Qt.TextElideMode.ElideRight, room)
        if step == self._hover and not current:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.surface_hover))
            painter.drawRoundedRect(rect.adjusted(1, 2, -3, -4), 6, 6)
        circle = QRectF(rect.left() + 4, (self.height() - 4 - diameter) / 2, diameter, diameter)
        painter.setPen(QPen(QColor(theme.query if current else theme.border_strong), wide(1.5)))
        painter.setBrush(QColor(theme.query) if current else Qt.BrushStyle.NoBrush)
        painter.drawEllipse(circle)
        painter.setFont(font)
        painter.setPen(QColor(theme.on_accent if current else theme.text_dim))
        painter.drawText(circle, Qt.AlignmentFlag.AlignCenter, str(step + 1))
        painter.setPen(QColor(theme.text if current else theme.text_dim))
        label = QRectF(circle.right() + _GAP, circle.top(), room, diameter)
        if current or self._labels_fit():
            painter.drawText(label, Qt.AlignmentFlag.AlignVCenter, shown)
        painter.setPen(QPen(QColor(theme.query if current else theme.border), wide(3 if current else 1)))
        y = self.height() - 2.0
        painter.drawLine(QPointF(rect.left() + 4, y), QPointF(rect.right() - 6, y))

    # pointer and keyboard

    def item_count(self) -> int:
        return len(self._labels)

    def item_rect(self, item: int) -> QRectF:
        return self.step_rect(item)

    def tooltip_of(self, item: int) -> str:
        return f"Step {item + 1}: {self._labels[item]}"

    def _choose(self, item: int) -> None:
        if item != self._current:
            self.set_current(item)
            self.step_selected.emit(item)
