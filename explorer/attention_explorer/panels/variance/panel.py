"""Why scores are divided by the square root of d: the textbooks' experiment, live, and the selected head beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from PySide6.QtCore import QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QSlider,
    QWidget,
)

from attention_explorer.look.text_size import smaller
from attention_explorer.panels.about import About
from attention_explorer.panels.base import Panel
from attention_explorer.panels.selected_head import head_name
from attention_explorer.session.hover import Hover
from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.number_field import RealBox, WholeBox
from attention_explorer.widgets.number_text import entropy_text, value_text
from attention_explorer.widgets.page import page_of, scrolling, wrapped
from attention_explorer.widgets.plot.figure import Axis, Figure, Series
from attention_explorer.widgets.plot.plot import Plot
from attention_explorer.widgets.themed import ThemedWidget
from attention_explorer.widgets.together import Together
from attention_models.protocol.information import Unit, from_bits
from attention_models.protocol.request import Request
from attention_models.protocol.values import CheckpointInfo
from attention_models.protocol.variance import Experiment, HeadScores, VarianceRequest, VarianceView

MOST_BARS = 32
_PAD = 8.0


class SoftmaxBars(ThemedWidget):
    """A heading, bars from 0 to 1, and lines of figures beneath. Draws at most MOST_BARS weights."""

    def __init__(self, heading: str, role: str, parent: QWidget | None = None) -> None:
        """`role` names the theme's colour of the bars."""
        super().__init__(heading, parent)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._heading, self._role = heading, role
        self._weights = np.zeros(0)
        self._figures: tuple[str, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    @property
    def figures(self) -> tuple[str, ...]:
        return self._figures

    def set_weights(self, weights: np.ndarray, figures: tuple[str, ...]) -> None:
        """Show `weights` (keys,), largest first, with `figures` written beneath."""
        if len(figures) != len(self._figures):
            self.updateGeometry()
        self._weights, self._figures = weights[:MOST_BARS], figures
        self.setAccessibleDescription(", ".join(figures))
        self.update()

    def sizeHint(self) -> QSize:
        lines = 1 + max(1, len(self._figures))
        return QSize(180, round(lines * self._line() + 84 + 2 * _PAD))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())

    def _line(self) -> float:
        return QFontMetricsF(self.font()).height() + 1

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme, line = self._theme, self._line()
        painter.setPen(QPen(QColor(theme.border), 1))
        painter.setBrush(QColor(theme.surface_alt))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
        inner = QRectF(self.rect()).adjusted(_PAD + 2, _PAD, -_PAD - 2, -_PAD)
        painter.setPen(QColor(theme.text))
        painter.setFont(self.bold_font())
        self._draw_line(painter, QRectF(inner.left(), inner.top(), inner.width(), line), self._heading)
        painter.setPen(QColor(theme.text_dim))
        for index, figure in enumerate(reversed(self._figures)):
            painter.setFont(self.font())
            top = inner.bottom() - (index + 1) * line
            self._draw_line(painter, QRectF(inner.left(), top, inner.width(), line), figure)
        bars = inner.adjusted(0, line + 6, 0, -len(self._figures) * line - 6)
        self._draw_bars(painter, bars)

    def _draw_line(self, painter: QPainter, rect: QRectF, text: str) -> None:
        """A little smaller, then cut, where it is too long."""
        font = painter.font()
        if QFontMetricsF(font).horizontalAdvance(text) > rect.width():
            font = smaller(font, 0.85)
            painter.setFont(font)
        shown = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
        painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter, shown)

    def _draw_bars(self, painter: QPainter, rect: QRectF) -> None:
        theme, count = self._theme, len(self._weights)
        painter.setPen(QPen(QColor(theme.border_strong), 1))
        painter.drawLine(rect.bottomLeft(), rect.bottomRight())
        painter.setPen(QPen(QColor(theme.border), 1, Qt.PenStyle.DashLine))
        painter.drawLine(rect.topLeft(), rect.topRight())
        if not count:
            return
        width = rect.width() / count
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(getattr(theme, self._role)))
        for index, weight in enumerate(self._weights):
            height = rect.height() * float(weight)
            painter.drawRect(QRectF(rect.left() + index * width, rect.bottom() - height, max(1.0, width - 1.5), height))


_WHAT = (
    "Why scores are divided by √d: a sum of d random products spreads like √d, and softmax of large scores picks one "
    "key and learns no more."
)
_TRY = (
    "Try: drag the slider of d to both ends, and compare the two rows of bars: scores as they are, and divided by √d."
)


def about(state: State, view: VarianceView | None, at: int, real: str) -> About:
    """`at` is the dimension that the slider shows, `real` what the panel says of the selected head."""
    if view is None:
        coming = "The plots appear when a checkpoint is open: what they draw is measured as you watch."
        return About((_WHAT, coming), _TRY)
    e = view.experiment
    d, unit = int(e.dimensions[at]), state.document.view.unit
    variance, law = value_text(float(e.variance[at])), value_text(float(e.law[at]))
    largest, entropies = ([float(values[i, at]) for i in (0, 1)] for values in (e.largest, e.entropy))
    softmax = (
        f"The largest weight of a row is {value_text(largest[0])} there, and {value_text(largest[1])} after dividing "
        f"by √{d:,}; its entropy {entropy_text(entropies[0], unit)}, and {entropy_text(entropies[1], unit)}."
    )
    measured = f"At d = {d:,} the variance of q · k was measured as {variance}; the law says {law}."
    return About.of((_WHAT, measured, softmax, real), _TRY)


UNSCALED, SCALED = 0, 1
_ROLES = ("query", "bar")
_NAMES = ("q·k", "q·k / √d")
_FIRST_DIMENSION = 64
_INTRO = (
    "q·k adds up d products. For random q and k its variance grows as m⁴ d, so long vectors give large scores, and "
    "softmax then picks one key and stops learning. Dividing by √d keeps the variance at m⁴."
)
_LEGEND = (
    "Gradient norm: ‖diag(p) − p pᵀ‖, the Frobenius norm of softmax's Jacobian. Law: Vaswani et al. 2017, section "
    "3.2.1, footnote 4. Each dot is the mean over B rows of T keys."
)
_RECURRENT = "The open model is recurrent: its scores are not scaled, so there is no head of it in the plot."
_PAUSE = 60  # ms without a change of the numbers before they are drawn anew


class VariancePanel(Panel):
    api_version = 1
    name = "variance"
    title = "Variance"
    hint = "Why attention divides by √d: random vectors of growing size, what softmax makes of them, and a real head."
    shows = frozenset({"variance", "score"})
    reads = ("document.view", "selection", "site", VarianceView)

    @classmethod
    def suits(cls, info: CheckpointInfo) -> bool:
        return not info.textbook

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self._view: VarianceView | None = None
        self._unit: Unit = "bits"
        self.deviation = RealBox()
        self.deviation.setRange(0.1, 4.0)
        self.deviation.setSingleStep(0.1)
        self.deviation.setDecimals(2)
        self.deviation.setValue(1.0)
        self.batch = _spin(1, 4096, 64)
        self.tokens = _spin(2, 4096, 32)
        self.seed = _spin(0, 999_999, 0)
        self.again = QPushButton("Draw again")
        self.again.setToolTip("Draw other random numbers: the next seed")
        self.again.clicked.connect(self.seed.stepUp)
        self.refusal = wrapped(role="mark")
        self.refusal.hide()
        self.law = Plot("Variance of q·k by dimension", 185)
        self.measured = wrapped()
        self.real = wrapped()
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName("Dimension d")
        self.slider.setToolTip("The d whose softmax is drawn")
        self.slider.setPageStep(1)
        self.at = QLabel()
        self.at.setProperty("role", "title")
        self.bars = tuple(SoftmaxBars(name, role) for name, role in zip(_NAMES, _ROLES, strict=True))
        self.largest = Plot("Largest weight by dimension", 160)
        self.entropy = Plot("Entropy by dimension", 160)
        self.gradient = Plot("Gradient norm by dimension", 160)
        self.saturation = wrapped()
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(_PAUSE)
        self._pause.timeout.connect(self._on_numbers)
        for box in (self.deviation, self.batch, self.tokens, self.seed):
            box.valueChanged.connect(lambda _value: self._pause.start())
        self.slider.valueChanged.connect(self._show_dimension)
        self.slider.valueChanged.connect(Together(self.slider, self.bars[0]).moved)
        for plot in (self.law, self.largest, self.entropy, self.gradient):
            plot.cursor_moved.connect(self._on_cursor)
        self.card = Card(self.title)
        self.card.set_subtitle("why scores are divided by √d")
        self.card.add_control(self.again)
        self.card.set_content(scrolling(self._page()))
        self.fill(self.card)
        for name, widget in (
            ("deviation", self.deviation),
            ("batch", self.batch),
            ("tokens", self.tokens),
            ("seed", self.seed),
            ("dimension", self.slider),
        ):
            self.keep(name, widget)

    # the page

    def _page(self) -> QWidget:
        return page_of(
            wrapped(_INTRO),
            self._numbers(),
            self.refusal,
            self.law,
            self.measured,
            self.real,
            _heading("What softmax makes of it"),
            _row(self.at, self.slider),
            _row(*self.bars),
            self.saturation,
            self.largest,
            self.entropy,
            self.gradient,
            wrapped(_LEGEND, "dim"),
        )

    def _numbers(self) -> QWidget:
        numbers = QWidget()
        grid = QGridLayout(numbers)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(2)
        fields: tuple[tuple[str, str, QWidget], ...] = (
            ("std m", "Standard deviation m of every component", self.deviation),
            ("rows B", "How many rows (batch entries) are drawn", self.batch),
            ("keys T", "How many keys each row has", self.tokens),
            ("seed", "The same seed draws the same numbers", self.seed),
        )
        for index, (text, tooltip, box) in enumerate(fields):
            label = QLabel(text)
            label.setProperty("role", "dim")
            label.setBuddy(box)
            box.setToolTip(tooltip)
            box.setAccessibleName(tooltip)
            box.setMinimumWidth(56)
            grid.addWidget(label, 0, index)
            grid.addWidget(box, 1, index)
            grid.setColumnStretch(index, 1)
        return numbers

    # what it asks for

    def request(self, state: State) -> VarianceRequest:
        """The experiment with the numbers as they stand, and the selected head where one ran."""
        ran, site = state.ran, state.site
        asked = VarianceRequest(
            batch=self.batch.value(),
            tokens=self.tokens.value(),
            deviation=round(self.deviation.value(), 2),
            seed=self.seed.value(),
        )
        if ran is None or site is None:
            return asked
        return replace(asked, run=ran.run, site=site.ref, head=state.selection.head)

    def figures(self) -> Iterable[QWidget]:
        return (self.real,)  # the rest is drawn at random

    def wants(self, state: State) -> Request | None:
        request = self.request(state)
        if state.results.loaded is None or request.refusal():
            return None  # opening a checkpoint calls off whatever else was asked
        return request

    def prints(self, state: State) -> Request | None:
        return self.wants(state)

    def _on_numbers(self) -> None:
        refusal = self.request(self.session.state).refusal()
        self.refusal.setText(refusal)
        self.refusal.setVisible(bool(refusal))
        if self.isVisible():
            self._refresh()

    # what it shows

    def render_state(self, state: State, old: State | None) -> None:
        view = state.results.of(VarianceView)
        if view is None:
            return  # the last experiment stays until the next one is here
        unit = state.document.view.unit
        if (view, unit) != (self._view, self._unit):
            before = None if self._view is None else self._view.experiment
            is_new = (view.experiment, unit) != (before, self._unit)
            self._view, self._unit = view, unit
            self._show_law(view.experiment, view.head, head_name(state))
            if is_new:
                self._show_experiment(view.experiment)
        loaded = state.results.loaded
        unseen = "" if loaded is None else _RECURRENT if loaded.info.textbook else _unseen(loaded.info)
        self.real.setText(unseen or _real_text(view.head, head_name(state)))

    def about(self, state: State) -> About:
        return about(state, self._view, self.slider.value(), self.real.text())

    def _show_law(self, experiment: Experiment, head: HeadScores | None, name: str) -> None:
        d = experiment.dimensions
        series = [
            Series("law m⁴ d", d, experiment.law, "key"),
            Series("measured", d, experiment.variance, "text", "none", mark="circle"),
        ]
        if head is not None and head.variance > 0:
            at = np.array([head.head_dim]), np.array([head.variance])
            series.append(Series(name[0].lower() + name[1:], *at, "query", "none", mark="diamond", mark_size=12))
        x = _dimension_axis("dimension d of q and k")
        self.law.set_figure(Figure(x, Axis("variance of q·k", log=True), tuple(series), names="curve"))

    def _show_experiment(self, experiment: Experiment) -> None:
        d = experiment.dimensions
        if self.slider.maximum() != len(d) - 1:
            self.slider.setRange(0, len(d) - 1)
            self.slider.setValue(int(np.argmin(np.abs(d - _FIRST_DIMENSION))))
        entropies = experiment.entropy * from_bits(1.0, self._unit)
        for plot, title, values, top in (
            (self.largest, "largest weight", experiment.largest, 1.0),
            (self.entropy, f"entropy, {self._unit}", entropies, float(entropies.max())),
            (self.gradient, "gradient norm", experiment.gradient, float(experiment.gradient.max())),
        ):
            pair = tuple(Series(_NAMES[i], d, values[i], _ROLES[i], mark="circle") for i in (UNSCALED, SCALED))
            y = Axis(title, 0.0, 1.2 * top)  # room for a name above
            plot.set_figure(Figure(_dimension_axis("dimension d"), y, pair, names="curve"))
        self._show_dimension()

    def _show_dimension(self) -> None:
        if self._view is None:
            return
        e, at = self._view.experiment, self.slider.value()
        d = int(e.dimensions[at])
        self.at.setText(f"d = {d:,}")
        for plot in (self.law, self.largest, self.entropy, self.gradient):
            plot.set_cursor(d)
        for i, bar in enumerate(self.bars):
            row = e.rows[i, at]
            bar.set_weights(row, _figures(e, i, at, self._unit))
        more = (
            f" The {MOST_BARS} heaviest of {e.rows.shape[2]:,} keys are drawn." if e.rows.shape[2] > MOST_BARS else ""
        )
        self.saturation.setText(f"Bars: one row's weights, largest first. Figures: means over all rows.{more}")
        off = float(e.variance[at] / e.law[at]) - 1
        error = float(e.standard_error[at] / e.law[at])
        self.measured.setText(
            f"d = {d:,}: measured variance {value_text(float(e.variance[at]))}, law {value_text(float(e.law[at]))}; "
            f"{_signed_percent(off)} off, where chance allows about ±{100 * error:.1f} %."
        )

    def _on_cursor(self, x: float) -> None:
        if self._view is not None:
            distance = np.abs(np.log(self._view.experiment.dimensions) - math.log(x))
            self.slider.setValue(int(np.argmin(distance)))
            self._show_dimension()  # the cursor may be at the head's own d, which was not measured


def _dimension_axis(title: str) -> Axis:
    return Axis(title, log=True, ticks=(1, 4, 16, 64, 256, 1024))


def _figures(e: Experiment, scaled: int, at: int, unit: Unit) -> tuple[str, ...]:
    return (
        f"largest {value_text(float(e.largest[scaled, at]))}",
        f"entropy {entropy_text(float(e.entropy[scaled, at]), unit)}",
        f"gradient {value_text(float(e.gradient[scaled, at]))}",
    )


def _real_text(head: HeadScores | None, name: str) -> str:
    if head is None:
        return "The selected head appears in the plot when the model has run."
    scaled = head.scaled_variance
    return (
        f"{name} on this text: d = {head.head_dim}, {head.cells:,} allowed cells. q·k has variance "
        f"{value_text(head.variance)} (standard deviation {value_text(head.deviation)}); times the scale "
        f"{value_text(head.scale)} it is {value_text(scaled)}. Independent components as large as these would give "
        f"{value_text(head.independent)}: a trained head is no random draw."
    )


def _unseen(info: CheckpointInfo) -> str:
    why = "its scores are v · tanh(q + k), and no products." if info.additive else info.weights_only
    return f"There is no head of the open model in the plot: {why}" if why else ""


def _signed_percent(share: float) -> str:
    sign = "+" if share >= 0 else "−"
    return f"{sign}{abs(100 * share):.1f} %"


def _spin(low: int, high: int, value: int) -> WholeBox:
    box = WholeBox()
    box.setRange(low, high)
    box.setValue(value)
    box.setKeyboardTracking(False)  # a number half typed is not drawn
    return box


def _row(*widgets: QWidget) -> QWidget:
    """Widgets beside each other; the last one takes what room is left, bars share it."""
    row = QWidget()
    line = QHBoxLayout(row)
    line.setContentsMargins(0, 0, 0, 0)
    line.setSpacing(8)
    for widget in widgets:
        line.addWidget(widget)
    return row


def _heading(text: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("role", "title")
    return label
