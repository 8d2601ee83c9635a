"""The player's widgets: buttons, settings, a sentence, the steps, the pages; they scroll to what was asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QKeyEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QSizePolicy,
    QSlider,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.look.text_size import is_read_from_afar
from attention_explorer.panels.decoding.beam_tree import BeamNode, BeamTree
from attention_explorer.panels.decoding.cache_page import CachePage
from attention_explorer.panels.decoding.knobs import DecodeKnobs
from attention_explorer.panels.decoding.side_by_side import SideText
from attention_explorer.panels.decoding.situation import column, count, dim, log_text, plain, ranked_text, say, score
from attention_explorer.panels.decoding.stages import (
    FilterBars,
    StageButtons,
    cuts_text,
    overview,
    stage_rows,
    stage_text,
    threshold,
    unapplied_text,
)
from attention_explorer.panels.decoding.step_timeline import StepTimeline, TimelineStep
from attention_explorer.session.branches import Branches, Node, Segment, outline
from attention_explorer.widgets.heat_map.heat_map import HeatMap
from attention_explorer.widgets.items_widget import RowsWidget
from attention_explorer.widgets.layouts import FlowLayout, in_row
from attention_explorer.widgets.number_text import MINUS
from attention_explorer.widgets.page import bring, scrolling, wrapped
from attention_explorer.widgets.scroll_areas import BoundedArea, scroll_to
from attention_explorer.widgets.segments import Segments
from attention_explorer.widgets.token_text import byte_note, shortened
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_models.protocol.decoding import Beam, DecodeRowsView, DecodeSettings, DecodeStepView
from attention_models.protocol.information import Unit, from_nats

# What a step chose from: the distribution with what the settings cut, or the tree of a beam search.


_IN_SIGHT, _LEAST_IN_SIGHT = 5, 3


class CandidatesPage(QWidget):
    """The distribution of one step, or the tree of a beam search."""

    candidate_chosen = Signal(int)  # a token id
    beam_picked = Signal(int)  # a node

    def __init__(self) -> None:
        super().__init__()
        self.bars = FilterBars()
        self.tree = BeamTree()
        self._is_low = False
        self.heading = wrapped(role="dim")
        self.note = wrapped(role="dim")
        self.stages = StageButtons()
        self.stages.stage_chosen.connect(self._show_stage)
        column(self, self.heading, self.stages, self.bars, self.tree, self.note)
        self.set_silent(False)
        self._ids: tuple[int, ...] = ()
        self._view: DecodeStepView | None = None
        self.tree.node_selected.connect(self.beam_picked.emit)
        self.bars.row_activated.connect(lambda row: self.candidate_chosen.emit(self._ids[row]))

    def set_low(self, is_low: bool) -> None:
        """Leave out the line above the candidates, where there is room for few."""
        if is_low != self._is_low:
            self._is_low = is_low
            self._say_heading(self.heading.text())

    def _say_heading(self, text: str) -> None:
        self.heading.setText(text)
        self.heading.setVisible(bool(text) and not self._is_low)

    def set_silent(self, silent: bool) -> None:
        """Whether the open model writes nothing, so that no step is to be waited for."""
        self.bars.set_empty_text("" if silent else "Press Step: the candidates for the next token appear here.")
        self.tree.set_empty_text("" if silent else "Press Step: the beams appear here, the likeliest on the left.")

    def show_step(self, view: DecodeStepView | None) -> None:
        self.tree.hide()
        self.bars.show()
        self._view = view
        self._ids = tuple(candidate.id for candidate in view.candidates) if view is not None else ()
        self.stages.show_stages([stage.filter for stage in view.stages] if view is not None else [])
        number = 0 if view is None else view.request.number
        self._say_heading(f"Step {number}: click another candidate to go that way." if number else "")
        self._show_stage()

    def _show_stage(self) -> None:
        """One filter, or all of them at once."""
        view, stage = self._view, self.stages.current
        if view is None:
            self.bars.set_rows(())
            say(self.note, "")
        elif stage is None:
            self.bars.set_rows(overview(view))
            say(self.note, cuts_text(view))
        else:
            settings, after = view.request.settings, view.stages[stage]
            self.bars.set_rows(
                stage_rows(view, stage), ("before", "after"), threshold(after, settings), always_two=True
            )
            say(self.note, stage_text(after, settings, stage + 1, len(view.stages)))

    @property
    def head(self) -> int:
        """The height of what should be in sight: down to the fifth candidate, or all of a tree."""
        if self.bars.isHidden() or not self.bars.rows:
            return self.height()
        return self._down_to(_IN_SIGHT)

    @property
    def least(self) -> int:
        """As `head`, where there is little room: down to the third candidate."""
        return self.height() if self.bars.isHidden() or not self.bars.rows else self._down_to(_LEAST_IN_SIGHT)

    @property
    def first(self) -> QWidget:
        """What has to be in sight before all else."""
        return self.tree if self.bars.isHidden() else self.bars

    def _down_to(self, count: int) -> int:
        return self.bars.y() + round(self.bars.row_rect(min(count, len(self.bars.rows)) - 1).bottom())

    def show_beams(self, views: Sequence[DecodeStepView], shown: Beam | None, unit: Unit) -> None:
        width = views[-1].request.settings.beams if views else 0
        self.bars.hide()
        self.stages.show_stages([])
        self.tree.show()
        self.tree.set_steps(beam_nodes(views, unit), -1 if shown is None else shown.node)
        self._say_heading(
            f"A line is a step: {width} beams go on, dashed ones are pruned, green ones finished. Numbers are "
            f"log-probabilities of the whole text, in {unit}. Any beam can be picked."
            if views
            else "",
        )
        last = views[-1] if views else None
        say(self.note, "" if last is None else " ".join((*last.own, unapplied_text(last))).strip())


def beam_nodes(views: Sequence[DecodeStepView], unit: Unit) -> list[list[BeamNode]]:
    """The tree of a search, a list a step, log-probabilities in `unit`.

    The way to the best text of the last step is marked.
    """
    best = views[-1].ids if views else ()
    return [[_beam_node(beam, best, unit) for beam in view.beams] for view in views]


def _beam_node(beam: Beam, best: tuple[int, ...], unit: Unit) -> BeamNode:
    fate = "finished" if beam.finished else "kept" if beam.kept else "pruned"
    text = f"{log_text(beam.log_probability, unit)} {unit}, {fate}"
    return BeamNode(
        id=beam.node,
        parent=beam.parent,
        label=beam.label,
        log_probability=from_nats(beam.log_probability, unit),
        fate=fate,  # type: ignore[arg-type]
        best=fate != "pruned" and beam.ids == best[: len(beam.ids)],
        tooltip=f"“{beam.label}”: log-probability {text}{byte_note(beam.label)}",
    )


# Branches of a text as an outline: one line a run of tokens, deeper where they fork.


_PAD = 8.0
_INDENT = 16.0
_DEEPEST = 8  # further forks do not move to the right: there would be no room for the words


@dataclass(frozen=True)
class BranchRow:
    text: str
    depth: int
    value: str  # at the right end
    on_path: bool = False  # part of the text in view
    current: bool = False
    tooltip: str = ""


class BranchList(RowsWidget):
    """A click, or Up and Down, chooses a line; Delete and F2 are asked of the chosen one."""

    row_selected = Signal(int)
    delete_asked = Signal()
    name_asked = Signal()

    def __init__(self, name: str = "Branches", parent: QWidget | None = None) -> None:
        super().__init__(name, parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._rows: tuple[BranchRow, ...] = ()

    def set_rows(self, rows: Sequence[BranchRow]) -> None:
        self._rows = tuple(rows)
        self._keep_items()
        self._current = next((i for i, row in enumerate(self._rows) if row.current), -1)
        self.setAccessibleDescription("; ".join(f"{row.text} {row.value}" for row in self._rows))
        self._look_changed()

    @property
    def rows(self) -> tuple[BranchRow, ...]:
        return self._rows

    def row_rect(self, row: int) -> QRectF:
        height = self._row_height()
        return QRectF(0, row * height, self.width(), height)

    def _row_height(self) -> float:
        return QFontMetricsF(self.font()).height() + 8

    def sizeHint(self) -> QSize:
        return QSize(360, round(max(3, len(self._rows)) * self._row_height()))

    def minimumSizeHint(self) -> QSize:
        return QSize(200, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self._rows:
            self._draw_empty_text(painter)
        for index in range(len(self._rows)):
            self._draw_row(painter, index)
        self._draw_focus_ring(painter)

    def _draw_row(self, painter: QPainter, index: int) -> None:
        theme, row, rect = self._theme, self._rows[index], self.row_rect(index)
        if index == self._hover or row.current:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.surface_hover))
            painter.drawRoundedRect(rect.adjusted(0, 1, 0, -1), 5, 5)
        left = _PAD + min(row.depth, _DEEPEST) * _INDENT
        bar = QRectF(left, rect.top() + 4, 3, rect.height() - 8)
        painter.setPen(QPen(QColor(theme.border), 1))
        for depth in range(min(row.depth, _DEEPEST)):
            x = _PAD + depth * _INDENT + 1.5
            painter.drawLine(QPointF(x, rect.top()), QPointF(x, rect.bottom()))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.query if row.on_path else theme.border_strong))
        painter.drawRoundedRect(bar, 1.5, 1.5)
        painter.setFont(self.bold_font() if row.current else self.font())
        metrics = QFontMetricsF(painter.font())
        number = metrics.horizontalAdvance(row.value) + _PAD
        words = rect.adjusted(left + _PAD, 0, -number - _PAD, 0)
        painter.setPen(QColor(theme.text if row.on_path else theme.text_dim))
        # the end of a branch tells more than its beginning
        shown = metrics.elidedText(row.text, Qt.TextElideMode.ElideMiddle, words.width())
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter, shown)
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        painter.drawText(rect.adjusted(0, 0, -_PAD, 0), flags, row.value)

    def _choose(self, item: int) -> None:
        self.row_selected.emit(item)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        asked = {Qt.Key.Key_Delete: self.delete_asked, Qt.Key.Key_F2: self.name_asked}.get(Qt.Key(event.key()))
        if asked is not None and self._current >= 0:
            asked.emit()
        else:
            super().keyPressEvent(event)


# Every way that was gone, as an outline, and any two of them compared.


class BranchesPage(QWidget):
    """Every way that was gone, with its log-probability; any two can be compared."""

    node_chosen = Signal(int)
    renamed = Signal(int, str)
    deleted = Signal(int)
    compared = Signal(int)
    """The branch that ends there is to be compared with the one in view."""

    def __init__(self) -> None:
        super().__init__()
        self.list = BranchList()
        self.list.set_empty_text("Every token you choose or the model writes is kept here as a branch.")
        self.name = QLineEdit()
        self.name.setPlaceholderText("Name of this branch")
        self.name.setAccessibleName("Name of this branch")
        self.name.setToolTip("Type a name for the branch that ends here, and press Enter (F2 in the list)")
        self.delete = QPushButton("Delete")
        self.delete.setToolTip(
            "Take this branch away, up to where it parts from the others (Delete). Ctrl+Z brings it back"
        )
        self.other = WholeListBox()
        self.other.setAccessibleName("Compare with")
        self.other.setToolTip("The branch to compare this one with")
        self.other.setMinimumContentsLength(14)
        self.comparison = wrapped()
        self.as_b = QPushButton("As B")
        self.as_b.setToolTip("Lay its attention beside that of this one, in Compare")
        self.as_b.clicked.connect(lambda: self.compared.emit(self.other.currentData()))
        self._compare = in_row(dim("Compare with"), self.other, self.as_b)
        column(self, self.list, in_row(self.name, self.delete), self._compare, self.comparison)
        self._segments: tuple[Segment, ...] = ()
        self._unit: Unit = "bits"
        self._branches = Branches()
        self.list.row_selected.connect(lambda row: self.node_chosen.emit(self._segments[row].last))
        self.name.returnPressed.connect(self._rename)
        self.delete.clicked.connect(self._delete)
        self.list.delete_asked.connect(self._delete)
        self.list.name_asked.connect(self._edit_name)
        self.other.activated.connect(lambda _: self._show_comparison())

    def _delete(self) -> None:
        self.deleted.emit(self._branches.current)

    def _edit_name(self) -> None:
        self.name.setFocus()
        self.name.selectAll()

    def _rename(self) -> None:
        self.list.setFocus()  # so that Ctrl+Z is the window's, not the field's
        self.renamed.emit(self._branches.current, self.name.text())

    def show_branches(self, branches: Branches, unit: Unit) -> None:
        self._branches, self._segments, self._unit = branches, outline(branches), unit
        path = branches.path()
        at = path[-1] if path else None
        self.list.set_rows(
            [
                BranchRow(
                    text=f"{segment.name}: {plain(segment.text)}" if segment.name else plain(segment.text),
                    depth=segment.depth,
                    value=log_text(segment.log_probability, unit),
                    on_path=segment.on_path,
                    current=at is not None and segment.last == at.id,
                    tooltip=f"{count(segment.tokens, 'token')}; all up to here has log-probability "
                    f"{from_nats(segment.log_probability, unit):.4f} {unit}".replace("-", MINUS)
                    + (". Ended" if segment.ended else ""),
                )
                for segment in self._segments
            ]
        )
        self.name.setEnabled(at is not None)
        if not self.name.hasFocus():
            self.name.setText(at.name if at is not None else "")
        self.delete.setEnabled(at is not None)
        others = [leaf for leaf in branches.leaves() if at is not None and leaf.id != at.id]
        kept = self.other.currentData()
        self.other.clear()
        for leaf in others:
            words = leaf.name or plain("".join(node.label for node in branches.path(leaf.id)))
            self.other.addItem(words if len(words) <= 40 else f"…{words[-38:]}", leaf.id)
        if kept is not None and self.other.findData(kept) >= 0:
            self.other.setCurrentIndex(self.other.findData(kept))
        self._compare.setVisible(bool(others))
        self._show_comparison()

    def _show_comparison(self) -> None:
        other = self.other.currentData()
        self.comparison.setVisible(other is not None)
        if other is not None:
            self.comparison.setText(comparison_text(self._branches, self._branches.current, other, self._unit))


def comparison_text(branches: Branches, first: int, second: int, unit: Unit) -> str:
    """Which of two branches is the likelier, and by how much; log-probabilities in `unit`."""
    a, b = branches.log_probability(first), branches.log_probability(second)
    lengths = len(branches.path(first)), len(branches.path(second))
    this, that = (f"{log_text(p, unit)} {unit} ({count(n, 'token')})" for p, n in zip((a, b), lengths, strict=True))
    words = f"This one {this}, the other {that}"
    apart = abs(a - b)
    if apart < 1e-9:
        return f"{words}: as likely."
    uneven = " Each further token can only make a text less likely." if lengths[0] != lengths[1] else ""
    return f"{words}: {'this one' if a > b else 'the other'} is {times_text(apart)} times as likely.{uneven}"


def times_text(apart: float) -> str:
    """e to the power of `apart`, with two digits: log-probabilities of two decimals tell no more. "about 26,000"."""
    times = math.exp(min(apart, 700.0))
    if times < 10:
        return f"{times:.1f}"
    if times >= 1e9:
        return f"about 10^{apart / math.log(10):.0f}"
    digits = 1 - math.floor(math.log10(times))  # two are kept
    rounded = round(times, digits)
    return f"about {rounded / 1e6:,.0f} million" if rounded >= 1e7 else f"about {rounded:,.0f}"


_BEAMS = "Beams, the best first{}, the number beside each. Pick one to look at:"
_SAMPLES = "Samples, each with its own draws. Pick one to look at:"
_OTHER_SEARCH = "Made with {}. Step begins another search, with what is set now."
_OTHER_SAMPLES = "Made with {}. Step goes on from here with what is set now."


class TextList(QWidget):
    """Hidden where only one text is written."""

    text_picked = Signal(int)  # the `id` of its `SideText`

    def __init__(self) -> None:
        super().__init__()
        self.heading = wrapped(role="dim")
        self.list = BranchList("Texts side by side")
        self.otherwise = wrapped(role="mark")
        column(self, self.otherwise, self.heading, self.list)
        self._ids: tuple[int, ...] = ()
        self.list.row_selected.connect(lambda row: self.text_picked.emit(self._ids[row]))

    def show_texts(
        self, texts: Sequence[SideText], search: DecodeSettings | None, unit: Unit, made_with: str = ""
    ) -> None:
        """Beams of a search with these settings, or samples. `made_with` says it where the settings are others now."""
        beams = search is not None
        otherwise = _OTHER_SEARCH if beams else _OTHER_SAMPLES
        say(self.otherwise, otherwise.format(made_with) if made_with else "")
        self.setVisible(bool(texts))
        self._ids = tuple(text.id for text in texts)
        say(self.heading, _SAMPLES if search is None else _BEAMS.format(_ranked(search.length_penalty)))
        self.list.set_rows(
            [
                BranchRow(
                    text=_words(text, beams),
                    depth=0,
                    value=_number(text, search, unit),
                    on_path=text.is_shown,
                    current=text.is_shown,
                    tooltip=_tooltip(text, search, unit),
                )
                for text in texts
            ]
        )


def _number(text: SideText, search: DecodeSettings | None, unit: Unit) -> str:
    """What beams are ranked by; of samples, which are not, the log-probability."""
    if search is None or not text.length:
        return log_text(text.log_probability, unit)
    return log_text(score(text.log_probability, text.length, search), unit)


def _tooltip(text: SideText, search: DecodeSettings | None, unit: Unit) -> str:
    exact = f"{from_nats(text.log_probability, unit):.4f} {unit}".replace("-", MINUS)
    ranked = ""
    if search is not None and search.length_penalty != 0 and text.length > 0:
        ranked = f", ranked by {ranked_text(text.log_probability, text.length, search, unit)}"
    ended = ". Ended" if text.ended else ""
    return f"“{plain(text.text)}”: log-probability {exact}{ranked}{ended}"


def _ranked(length_penalty: float) -> str:
    """By what."""
    if length_penalty == 0:
        return " by log-probability"
    length = (
        "the length" if length_penalty == 1 else f"the length to the power of {length_penalty:g}".replace("-", MINUS)
    )
    return f" by log-probability / {length}"


def _words(text: SideText, beams: bool) -> str:
    marks = [mark for mark, holds in (("best", text.is_best), ("ended", text.ended)) if holds]
    number = "" if beams else f"{text.id + 1}: "
    return f"{number}{plain(text.text)}" + (f"  ({', '.join(marks)})" if marks else "")


# The player's buttons: restart, back, play or pause, step, and how fast it plays.


_SLOWEST, _FASTEST = 2000, 0  # ms between an answer and the next step
_NOTCHES = 10


class Transport(QWidget):
    restart = Signal()
    back = Signal()
    play = Signal(bool)  # False: pause
    step = Signal()
    paced = Signal()  # `pause_ms` has another value

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.restart_button = _button("Restart", "Go back to the prompt. What was written stays in Branches")
        self.back_button = _button("Back", "One step back")
        self.play_button = _PlayButton("Play")
        self.play_button.setCheckable(True)
        self.step_button = _button("Step", "Let the model write one token")
        self.step_button.setProperty("role", "primary")
        self.speed = QSlider(Qt.Orientation.Horizontal)
        self.speed.setRange(0, _NOTCHES)
        self.speed.setValue(7)
        self.speed.setAccessibleName("Speed")
        self.speed.setToolTip("How fast it plays")
        self.speed.setFixedWidth(90)
        label = QLabel("Speed")
        label.setProperty("role", "dim")
        group = QWidget()
        line = QHBoxLayout(group)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(6)
        line.addWidget(label)
        line.addWidget(self.speed)
        self._row = FlowLayout(self, gap=6)
        for widget in (self.restart_button, self.back_button, self.play_button, self.step_button, group):
            self.add(widget)
        self.restart_button.clicked.connect(lambda: self.restart.emit())
        self.back_button.clicked.connect(lambda: self.back.emit())
        self.play_button.clicked.connect(lambda on: self.play.emit(on))
        self.step_button.clicked.connect(lambda: self.step.emit())
        self.speed.valueChanged.connect(lambda _: self.paced.emit())

    def add(self, widget: QWidget) -> None:
        """Put a widget at the end."""
        self._row.addWidget(widget)

    @property
    def pause_ms(self) -> int:
        """Milliseconds between an answer and the next step."""
        left = 1 - self.speed.value() / _NOTCHES
        return round(_FASTEST + (_SLOWEST - _FASTEST) * left**2)

    def show_state(self, playing: bool, can_go_back: bool, can_step: bool, steps: int) -> None:
        """`steps` is how many the model writes at most."""
        self.play_button.setToolTip(
            f"Let the model write until it ends the text or has written {count(steps, 'token')} (Steps, under Settings)"
        )
        self.play_button.setText("Pause" if playing else "Play")
        self.play_button.setChecked(playing)
        self.play_button.setEnabled(playing or can_step)
        self.step_button.setEnabled(can_step and not playing)
        self.back_button.setEnabled(can_go_back)
        self.restart_button.setEnabled(can_go_back)


class _PlayButton(QPushButton):
    """As wide as the wider of its names, so that the buttons beside it stay where they are."""

    def sizeHint(self) -> QSize:
        hint = super().sizeHint()
        widest = max(self._width_of(name) for name in ("Play", "Pause"))
        return QSize(hint.width() + widest - self._width_of(self.text()), hint.height())

    def _width_of(self, name: str) -> int:
        return self.fontMetrics().size(Qt.TextFlag.TextShowMnemonic, name).width()  # as Qt's own hint measures it


def _button(text: str, tooltip: str) -> QPushButton:
    button = QPushButton(text)
    button.setToolTip(tooltip)
    return button


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


_MAP_HEIGHT = 300


class AttentionPage(QWidget):
    """One head's weights over prompt and written tokens: a row more with each step."""

    def __init__(self) -> None:
        super().__init__()
        self.map = HeatMap()
        self.map.wheel_zooms = False
        self.map.setMinimumHeight(_MAP_HEIGHT)
        self.heading = wrapped(role="title")
        self.note = wrapped(role="dim")
        column(self, self.heading, self.note, self.map)
        self.map.hide()

    def show_rows(self, view: DecodeRowsView | None, name: str, empty: str, beam: Beam | None = None) -> None:
        self.heading.setText(name if beam is None else f"{name}, beam “{plain(beam.text)}”")
        self.map.setVisible(view is not None)
        if view is None:
            self.map.set_values(None, None, (), (), 0, 1)
            say(self.note, empty)
            return
        weights = view.weights
        self.map.set_values(weights, view.masked, view.queries, view.keys, 0, max(float(weights.max()), 1e-6))
        row = view.chose
        self.map.set_selection(row, int(weights[row].argmax()) if row >= 0 else -1)
        say(self.note, f"{_chooser(view)}{_extent(view)}.")


def _chooser(view: DecodeRowsView) -> str:
    """Which row shows how this step's token was chosen."""
    if view.chose < 0:
        return ""
    is_last = view.chose == len(view.queries) - 1
    which = "The last row" if is_last else f"The framed row “{view.queries[view.chose]}”"
    return f"{which} is where the head looked to choose this step's token. "


def _extent(view: DecodeRowsView) -> str:
    """Which rows there are, and where they come from."""
    rows, written = len(view.queries), len(view.queries) - view.prompt
    some = rows < len(view.keys) and view.request.site.stack != "cross"
    last = "The last " if some and view.chose in (-1, rows - 1) else ""
    if view.from_steps:
        return f"{last}{count(view.prompt, 'row')} of the prompt and {written} of written tokens, one a step"
    if some:
        return f"{last}{count(rows, 'row')}{'' if last else ' about it'}, from one pass over the text"
    return "All rows from one pass over the text"


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
