"""What was written, a chip a step: any step can be gone to, and a line under each says how likely it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.look.text_size import wide
from attention_explorer.widgets.items_widget import ItemsWidget

_GAP = 4.0
_PAD = 7.0
_LONGEST = 160.0


@dataclass(frozen=True)
class TimelineStep:
    label: str
    probability: float  # 0 to 1; the line under the chip is as long
    tooltip: str = ""


class StepTimeline(ItemsWidget):
    """The prompt and one chip a step, in lines. A click, or Left, Right, Home and End, goes to a step; 0 is the prompt.

    Steps after the current one are dim: they were written, and are not gone.
    """

    axis = Qt.Orientation.Horizontal
    step_selected = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Steps", parent)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self._steps: tuple[TimelineStep, ...] = ()
        self._rects: list[QRectF] = []
        self._current = 0

    def set_steps(self, steps: Sequence[TimelineStep], current: int) -> bool:
        """Show `steps`; `current` counts from 1, 0 stands for the prompt. Whether anything is another one."""
        changed = tuple(steps) != self._steps
        if not changed and current == self._current:
            return False
        self._steps, self._current = tuple(steps), current
        self.setAccessibleDescription(f"Step {current} of {len(self._steps)}")
        if changed:
            self._look_changed()
            self._hover = -1
            self.setToolTip("")  # of a step that was there
        self.update()
        return True

    @property
    def current(self) -> int:
        return self._current

    @property
    def count(self) -> int:
        return len(self._steps)

    def step_rect(self, step: int) -> QRectF:
        """Where a step's chip lies; 0 is the prompt's."""
        return self._rects[step] if 0 <= step < len(self._rects) else QRectF()

    # geometry

    def _labels(self) -> list[str]:
        return ["prompt", *(step.label for step in self._steps)]

    def _chip_height(self) -> float:
        return QFontMetricsF(self.font()).height() + 10

    def _place(self, width: float) -> list[QRectF]:
        metrics, height = QFontMetricsF(self.font()), self._chip_height()
        x = y = 0.0
        rects = []
        for label in self._labels():
            wide = min(_LONGEST, metrics.horizontalAdvance(label)) + 2 * _PAD
            if x > 0 and x + wide > width:
                x, y = 0.0, y + height + _GAP
            rects.append(QRectF(x, y, wide, height))
            x += wide + _GAP
        return rects

    def height_of(self, lines: int) -> int:
        """What so many lines need."""
        return round(lines * (self._chip_height() + _GAP) - _GAP + 2)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return round(self._place(width)[-1].bottom() + 2)

    def sizeHint(self) -> QSize:
        return QSize(360, self.heightForWidth(max(self.width(), 240)))

    def minimumSizeHint(self) -> QSize:
        return QSize(200, round(self._chip_height() + 2))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._rects = self._place(self.width())

    def _look_changed(self) -> None:
        self._rects = self._place(self.width())
        super()._look_changed()

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for step, (label, rect) in enumerate(zip(self._labels(), self._rects, strict=True)):
            if rect.intersects(QRectF(event.rect())):
                self._draw_chip(painter, step, label, rect)
        self._draw_focus_ring(painter)

    def _draw_chip(self, painter: QPainter, step: int, label: str, rect: QRectF) -> None:
        theme, current = self._theme, step == self._current
        frame = theme.query if current else theme.border_strong if step == self._hover else theme.border
        painter.setPen(QPen(QColor(frame), wide(2 if current else 1)))
        painter.setBrush(QColor(theme.surface_hover if step == self._hover else theme.surface_alt))
        painter.drawRoundedRect(rect.adjusted(1, 1, -1, -1), 5, 5)
        painter.setPen(QColor(theme.text if 0 < step <= self._current else theme.text_dim))
        shown = QFontMetricsF(self.font()).elidedText(label, Qt.TextElideMode.ElideRight, rect.width() - 2 * _PAD + 2)
        painter.drawText(rect.adjusted(0, 0, 0, -3), Qt.AlignmentFlag.AlignCenter, shown)
        if step:
            line = QRectF(rect.left() + 5, rect.bottom() - 6, rect.width() - 10, 3)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.border))
            painter.drawRect(line)
            line.setWidth(line.width() * min(1.0, max(0.0, self._steps[step - 1].probability)))
            painter.setBrush(QColor(theme.bar))
            painter.drawRect(line)

    # pointer and keyboard

    def item_count(self) -> int:
        return len(self._rects)

    def item_rect(self, item: int) -> QRectF:
        return self.step_rect(item)

    def tooltip_of(self, item: int) -> str:
        return self._steps[item - 1].tooltip if item else "Before the first step"

    def _choose(self, item: int) -> None:
        if item != self._current:
            self.step_selected.emit(item)
