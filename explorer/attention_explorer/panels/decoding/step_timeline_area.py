"""A timeline in a scroll area of a bounded height."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from attention_explorer.panels.decoding.step_timeline import StepTimeline, TimelineStep
from attention_explorer.widgets.bounded_area import BoundedArea
from attention_explorer.widgets.in_sight import scroll_to


class StepTimelineArea(BoundedArea):
    """Holds a `timeline`, always as high as `lines` lines of steps; of more it follows the current one.

    So what stands below stays where it is, however long the text becomes.
    """

    def __init__(self, lines: int, parent: QWidget | None = None) -> None:
        self.timeline = StepTimeline()
        super().__init__(self.timeline, parent)
        self._lines = lines
        self.fit_height()

    def set_steps(self, steps: Sequence[TimelineStep], current: int) -> None:
        """As the timeline's own, with the height that it then needs."""
        if self.timeline.set_steps(steps, current):
            self.fit_height()
            self._follow()

    def set_lines(self, lines: int) -> None:
        """How many lines there is room for."""
        if lines != self._lines:
            self._lines = lines
            self.fit_height()
            self._follow()

    def sizeHint(self) -> QSize:
        return QSize(360, self.height())

    def minimumSizeHint(self) -> QSize:
        return QSize(200, self.minimumHeight())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._follow()

    def wanted_height(self) -> int:
        return self.timeline.height_of(self._lines)

    def _follow(self) -> None:
        """Scroll, if need be, until the current step shows."""
        width = self.viewport().width()
        self.timeline.resize(width, max(self.timeline.heightForWidth(width), self.viewport().height()))
        rect = self.timeline.step_rect(self.timeline.current)
        if not rect.isEmpty():
            scroll_to(self, rect.center().toPoint(), 0, round(rect.height() / 2) + 2)
