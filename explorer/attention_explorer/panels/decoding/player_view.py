"""The player's widgets: buttons, settings, a sentence, the steps, the pages; they scroll to what was asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QEvent, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QCheckBox, QLabel, QPushButton, QVBoxLayout, QWidget

from attention_explorer.panels.decoding.attention_page import AttentionPage
from attention_explorer.panels.decoding.branches_page import BranchesPage
from attention_explorer.panels.decoding.cache_page import CachePage
from attention_explorer.panels.decoding.candidates_page import CandidatesPage
from attention_explorer.panels.decoding.knobs import DecodeKnobs
from attention_explorer.panels.decoding.step_timeline import TimelineStep
from attention_explorer.panels.decoding.step_timeline_area import StepTimelineArea
from attention_explorer.panels.decoding.text_list import TextList
from attention_explorer.panels.decoding.transport import Transport
from attention_explorer.session.branches import Node
from attention_explorer.text_size import is_read_from_afar
from attention_explorer.widgets.page import bring, scrolling
from attention_explorer.widgets.segments import Segments
from attention_explorer.widgets.token_text import byte_note, shortened
from attention_models.protocol.decoding import DecodeStepView

CANDIDATES, BRANCHES, ATTENTION, CACHE = range(4)

_STATUS_LINES, _TIMELINE_LINES = 3, 2
"""Reserved from the start, so that nothing below moves while a text grows."""

_LAID_OUT = 100
"""ms: by then widgets have their new sizes."""

_LOW = 16
"""Lines below which the candidates need what else has more than one."""


class PlayerView(QWidget):
    """All that stands in the panel's card; `follow` and `use` are for its title line."""

    page_chosen = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.transport = Transport()
        self.knobs = DecodeKnobs()
        self.status = _Reserving(_STATUS_LINES)
        self.timeline_area = StepTimelineArea(_TIMELINE_LINES)
        self.timeline = self.timeline_area.timeline
        self.texts = TextList()
        self.use = QPushButton("Use this text")
        self.use.setToolTip("Put what was written into the input, so that every panel shows it")
        self.follow = QCheckBox("Follow")
        self.follow.setToolTip(
            "The whole window follows: text, tokens, arcs, map, ribbons and Flow show every token as it is written. "
            "Off: they stay with the text that was typed"
        )
        self.again = QPushButton("Another sample")
        self.transport.add(self.again)
        self.again.setToolTip("Write once more from the prompt with the next seed; what is here stays as branches")
        self.candidates, self.branches = CandidatesPage(), BranchesPage()
        self.attention, self.cache = AttentionPage(), CachePage()
        self.tabs = Segments(
            (
                ("Candidates", "What the step chose from, and what the settings cut"),
                ("Branches", "Every way that was gone"),
                ("Attention", "Where the selected head looked, a row a step"),
                ("Cache", "Keys and values: stored, reused, computed"),
            ),
            "What to look at",
            wraps=True,
        )
        self.pages = (self.candidates, self.branches, self.attention, self.cache)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 2, 6, 4)
        column.setSpacing(8)
        for widget in (self.knobs, self.status, self.timeline_area, self.texts, self.tabs):
            column.addWidget(widget)
        for index, each in enumerate(self.pages):
            column.addWidget(each, 1)
            each.setVisible(index == CANDIDATES)
        column.addStretch(0)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 2, 0, 0)
        whole.setSpacing(6)
        whole.addWidget(self.transport)  # what stops the player never scrolls away
        self.area = scrolling(page, keeps_width=True)
        whole.addWidget(self.area, 1)
        self._bring = QTimer(self)  # when it has been laid out
        self._bring.setSingleShot(True)
        self._bring.timeout.connect(lambda: bring(self.area, page, *self._wanted_in_sight()))
        self._settled = QTimer(self)  # the input above may have become higher by the step, and the room less
        self._settled.setSingleShot(True)
        self._settled.setInterval(_LAID_OUT)
        self._settled.timeout.connect(self._bring_again)
        self._awaits_step = False  # whether a step that a person asked for is to be brought into sight
        self._keeps_step = False  # whether it was, and nobody has scrolled since: it stays there in a lower window too
        self.area.verticalScrollBar().actionTriggered.connect(lambda _: self._let_go())
        self._last_step: DecodeStepView | None = None
        for pressed in (self.transport.step, self.transport.play, self.transport.back, self.transport.restart):
            pressed.connect(self._await_step)
        self.timeline.step_selected.connect(self._await_step)
        self.tabs.chosen.connect(self._show_page)
        self.candidates.stages.stage_chosen.connect(self._bring_later)

    @property
    def page(self) -> int:
        """The page that shows: CANDIDATES, BRANCHES, ATTENTION or CACHE."""
        return self.tabs.current

    def show_path(self, tokens: Sequence[Node], at: int) -> None:
        """The tokens of one text as steps, the one in view framed."""
        steps = [
            TimelineStep(
                shortened(node.label),
                math.exp(node.log_probability),
                f"Step {i + 1}: “{node.label}”{byte_note(node.label)}",
            )
            for i, node in enumerate(tokens)
        ]
        self.timeline_area.set_steps(steps, at)

    def show_search(self, steps: int, at: int) -> None:
        """The steps of a beam search, which have no token each."""
        self.timeline_area.set_steps([TimelineStep(f"step {i + 1}", 0.0) for i in range(steps)], at)

    def settle_on(self, view: DecodeStepView | None) -> None:
        """Bring a step that a person asked for into sight; of many the first, so that one may scroll on."""
        if view is self._last_step:
            return
        self._last_step = view
        if self._awaits_step and view is not None:
            self._bring_later()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()
        if self._keeps_step and event.size().height() != event.oldSize().height():
            self._settled.start()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fit()

    def _fit(self) -> None:
        """Where there are few lines the candidates get them, so that they are in sight with the settings."""
        is_presented = is_read_from_afar()
        is_low = is_presented or self.height() < _LOW * self.fontMetrics().lineSpacing()
        self.status.set_lines(1 if is_presented else _STATUS_LINES)
        self.timeline_area.set_lines(1 if is_low else _TIMELINE_LINES)
        self.candidates.set_low(is_low)

    def _bring_again(self) -> None:
        if self._keeps_step:
            self._awaits_step = True
            self._bring_later()

    def _let_go(self) -> None:
        self._keeps_step = False

    def settings_changed(self, is_newly_wrong: bool) -> None:
        """A person has changed the settings; what is wrong with them is brought into sight."""
        self._awaits_step = False
        if is_newly_wrong:
            self._bring_later()

    def _await_step(self) -> None:
        self._awaits_step = True

    def _show_page(self, index: int) -> None:
        for place, each in enumerate(self.pages):
            each.setVisible(place == index)
        self.page_chosen.emit()
        self._bring_later()

    def _bring_later(self) -> None:
        self._bring.start(0)

    def _wanted_in_sight(self) -> tuple[QWidget, QWidget, int | None]:
        """The first and the last of what a person has just asked for, and how much of the last is enough."""
        awaits, self._awaits_step = self._awaits_step, False
        self._keeps_step = awaits
        if self.knobs.problem:
            return self.knobs.remark, self.knobs.remark, None
        if awaits and self.page == CANDIDATES:
            return self._first_above_candidates(), self.candidates, self.candidates.head
        return self.tabs, self.pages[self.page], None

    def _first_above_candidates(self) -> QWidget:
        """What stands above them is in sight too where that leaves room for the first few."""
        page, room = self.candidates, self.area.viewport().height()
        bottom = page.y() + page.least
        above: tuple[QWidget, ...] = (self.timeline_area, self.tabs)
        if is_read_from_afar():  # the settings are seen with what they change
            above = (self.knobs, *above)
        return next((first for first in above if bottom - first.y() <= room), page.first)


class _Reserving(QLabel):
    """A sentence that breaks its lines, in the room of so many lines also where it is shorter."""

    def __init__(self, lines: int) -> None:
        super().__init__()
        self._lines = lines
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(True)
        self.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)

    def set_lines(self, lines: int) -> None:
        """How many lines there is room for at least."""
        if lines != self._lines:
            self._lines = lines
            self.updateGeometry()

    def minimumSizeHint(self) -> QSize:
        return QSize(40, self._reserved())

    def heightForWidth(self, width: int) -> int:
        return max(super().heightForWidth(width), self._reserved())

    def _reserved(self) -> int:
        return self.fontMetrics().lineSpacing() * self._lines
