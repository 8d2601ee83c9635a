"""What the steps of both kinds of attention share: a step with its meaning, and the formulas that are the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontMetricsF, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.widgets.items_widget import ItemsWidget
from attention_explorer.widgets.number_text import MINUS, added, counted, value_text
from attention_explorer.widgets.token_text import isolated
from attention_models.protocol.cell import CellView

# Steps of a calculation, one under the other: what it is called, the formula with its numbers, and a remark.


_PAD = 10.0
_GAP = 3.0
_NAME_CHARS = 13  # room for a name, in average characters
_FORMULA_CHARS = 27  # room that a formula keeps before the remark goes below it
_NOTE_CHARS = 30


@dataclass(frozen=True, slots=True)
class Step:
    """One line. `tone` "result" takes the query's accent, "warning" says that something is not as trained."""

    name: str
    formula: str
    note: str = ""
    tone: Literal["plain", "result", "warning"] = "plain"


@dataclass(frozen=True, slots=True)
class _Places:
    name: QRectF
    formula: QRectF
    note: QRectF
    note_side: Qt.AlignmentFlag


class StepList(ItemsWidget):
    """Steps that can be chosen with a click or with Up and Down.

    Where the width allows it the remark stands at the right end, else below the formula: the width and the font
    decide, never the numbers, so that nothing moves when these change.
    """

    step_selected = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Steps of the calculation", parent)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self._steps: tuple[Step, ...] = ()

    def set_steps(self, steps: Sequence[Step]) -> None:
        """Show `steps`; the chosen one stays chosen where there still is one at its place."""
        count = len(self._steps)
        self._steps = tuple(steps)
        self._current = min(self._current, len(steps) - 1)
        self._keep_items()
        self.setAccessibleDescription("; ".join(f"{step.name}: {step.formula}" for step in steps))
        if len(steps) != count:
            self.updateGeometry()
        self.update()

    @property
    def steps(self) -> tuple[Step, ...]:
        return self._steps

    @property
    def current(self) -> int:
        """The chosen step, -1 for none."""
        return self._current

    def select(self, index: int) -> None:
        """Choose a step, -1 for none."""
        index = max(-1, min(index, len(self._steps) - 1))
        if index != self._current:
            self._current = index
            self.update()
            self.step_selected.emit(index)

    def show_current(self) -> None:
        """Scroll, if need be, until the chosen step can be seen."""
        if self._current >= 0:
            self._keep_visible(self.step_rect(self._current))

    def said_at(self, position: QPoint) -> str:
        step = self._item_at(position.toPointF())
        return f"{self._steps[step].name} {self._steps[step].note}" if step >= 0 else ""

    def step_rect(self, index: int) -> QRectF:
        """Where a step lies."""
        height = self._step_height(self.width())
        return QRectF(0, index * (height + _GAP), self.width(), height)

    # geometry

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return round(max(1, len(self._steps)) * (self._step_height(width) + _GAP) - _GAP)

    def sizeHint(self) -> QSize:
        width = max(self.width(), 320)
        return QSize(width, self.heightForWidth(width))

    def minimumSizeHint(self) -> QSize:
        return QSize(240, self.heightForWidth(max(self.width(), 240)))

    def _char(self) -> float:
        return QFontMetricsF(self.font()).averageCharWidth()

    def _is_wide(self, width: float) -> bool:
        return width >= (_NAME_CHARS + _FORMULA_CHARS + _NOTE_CHARS) * self._char() * 1.15 + 2 * _PAD

    def _step_height(self, width: float) -> float:
        line = QFontMetricsF(self.font()).height()
        return line + 14 if self._is_wide(width) else 2 * line + 8

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()  # a layout keeps the size hint, which depends on the width

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        shown = QRectF(event.rect())
        for index, step in enumerate(self._steps):
            rect = self.step_rect(index)
            if rect.intersects(shown):
                self._draw_step(painter, step, rect, index)
        self._draw_focus_ring(painter)

    def _draw_step(self, painter: QPainter, step: Step, rect: QRectF, index: int) -> None:
        theme, chosen = self._theme, index == self._current
        painter.setPen(QColor(theme.focus if chosen else theme.surface_alt))
        painter.setBrush(QColor(theme.surface_hover if index == self._hover or chosen else theme.surface_alt))
        painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), 5, 5)
        places = self._places(rect.adjusted(_PAD, 0, -_PAD, 0), step)
        colour = {"plain": theme.text, "result": theme.query, "warning": theme.warning}[step.tone]
        self._draw_text(painter, step.name, self.bold_font(), theme.text, places.name)
        self._draw_text(painter, step.formula, number_font(self.font()), colour, places.formula)
        self._draw_text(painter, step.note, self.font(), theme.text_dim, places.note, places.note_side)

    def _places(self, inner: QRectF, step: Step) -> _Places:
        """All in one line; or the remark below the formula; or, where it is narrow, the formula below the rest."""
        left, right = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight
        name_width, digits = _NAME_CHARS * self._char(), QFontMetricsF(number_font(self.font()))
        if self._is_wide(inner.width() + 2 * _PAD):
            column = inner.adjusted(name_width, 0, 0, 0)
            used = digits.horizontalAdvance(step.formula) + 2 * _PAD
            return _Places(_cut(inner, name_width), column, column.adjusted(used, 0, 0, 0), right)
        upper = QRectF(inner.left(), inner.top() + 3, inner.width(), (inner.height() - 6) / 2)
        column = upper.adjusted(name_width, 0, 0, 0)
        if column.width() >= _FORMULA_CHARS * digits.averageCharWidth():
            return _Places(_cut(upper, name_width), column, column.translated(0, upper.height()), left)
        name_width = QFontMetricsF(self.bold_font()).horizontalAdvance(step.name) + 2
        note = upper.adjusted(name_width + _PAD, 0, 0, 0)
        return _Places(_cut(upper, name_width), upper.translated(0, upper.height()), note, right)

    @staticmethod
    def _draw_text(
        painter: QPainter,
        text: str,
        font: QFont,
        colour: str,
        rect: QRectF,
        side: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft,
    ) -> None:
        painter.setFont(font)
        painter.setPen(QColor(colour))
        elided = QFontMetricsF(font).elidedText(isolated(text), Qt.TextElideMode.ElideRight, rect.width())
        painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter | side, elided)

    # pointer and keyboard

    def item_count(self) -> int:
        return len(self._steps)

    def item_rect(self, item: int) -> QRectF:
        return self.step_rect(item)

    def tooltip_of(self, item: int) -> str:
        return f"{self._steps[item].formula}\n{self._steps[item].note}".strip()

    def _choose(self, item: int) -> None:
        self.select(item)


def _cut(rect: QRectF, width: float) -> QRectF:
    return QRectF(rect.left(), rect.top(), width, rect.height())


def number_font(like: QFont) -> QFont:
    """The system's fixed-width font in the size of `like`: figures under each other keep their places."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setPointSizeF(like.pointSizeF())
    return font


_SHARE = "Divided by the sum over the row: its weights then sum to 1. A cell of the map. Vaswani et al. 2017, eq. 1."
_SHARE_BESIDE_A_SINK = (
    "Divided by the sum over the row and a sink, a learned score that belongs to no key: the weights sum to 1 less its "
    "share, and no value is taken for that. A cell of the map. Xiao et al. 2023; OpenAI 2025 (gpt-oss)."
)


@dataclass(frozen=True, slots=True)
class Explained:
    """A step, and what it is: the equation and where it comes from. `meaning` holds no numbers."""

    step: Step
    meaning: str


def score_step(view: CellView, formula: str, meaning: str) -> Explained:
    """The sum of the products that the bars show."""
    step = Step("score", f"{formula} = {value_text(view.raw)}", f"sum of {counted(len(view.products), 'product')}")
    return Explained(step, meaning)


def mask_step(view: CellView, name: str, why: str, meaning: str, *, edited: bool = False) -> Explained:
    """Whether the cell takes part in the softmax, and why."""
    formula = f"masked: {MINUS}∞ in its place" if view.masked else "allowed"
    return Explained(Step(name, formula, why, "warning" if edited else "plain"), meaning)


def softmax_step(view: CellView) -> Explained:
    """The cell's own numerator."""
    if view.shift is None:
        step = Step(
            "softmax", "no key to share between", f"all {counted(len(view.row_masked), 'key')} masked", "warning"
        )
    elif view.masked:
        step = Step("softmax", f"e^({MINUS}∞) = 0", "masked")
    else:
        exponent = f"{value_text(view.score)} {added(-view.shift)}"
        step = Step("softmax", f"e^({exponent}) = {value_text(view.numerator)}", "less the row's largest")
    return Explained(
        step,
        "Taking the row's largest score off all leaves the quotient as it is, and no power overflows. "
        "Vaswani et al. 2017, eq. 1.",
    )


def sink_share(view: CellView) -> float:
    """What the sink takes of the row."""
    assert view.sink is not None
    return view.sink / view.denominator


def weight_step(view: CellView) -> Explained:
    """The numerator's share of the row."""
    if view.shift is None:
        step = Step("weight", "0", "the model then takes no value at all", "warning")
        return Explained(step, "0 / 0 is no number: where a row has no key left, its weights are set to 0.")
    quotient = f"{value_text(view.numerator)} / {value_text(view.denominator)}"
    note = f"share among {counted(int((~view.row_masked).sum()), 'key')}"
    if view.sink is not None:
        note += f"; the sink takes {sink_share(view):.1%}"
    step = Step("weight", f"{quotient} = {value_text(view.weight)}", note, "result")
    return Explained(step, _SHARE if view.sink is None else _SHARE_BESIDE_A_SINK)


def mixed_step(view: CellView, letter: str, meaning: str) -> Explained:
    """The weight times the vector that is read, in lengths. `letter` is what that vector is called."""
    numbers = f"{value_text(view.weight)} × {value_text(view.value_norm)} = {value_text(view.mixed_norm)}"
    return Explained(
        Step(f"× {letter}", f"w ‖{letter}‖ = {numbers}", f"length of {counted(len(view.value), 'number')}"), meaning
    )


def sum_step(view: CellView, name: str, letter: str, of: str, meaning: str) -> Explained:
    """The sum over the row of weight times vector, in length; `of` says over what."""
    return Explained(Step(name, f"‖Σ w {letter}‖ = {value_text(view.head_output_norm)}", f"{of} together"), meaning)
