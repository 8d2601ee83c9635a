"""The page of prepared experiments: choose one, run it, and see its runs learn side by side and what came out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from PySide6.QtCore import QPointF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from attention_explorer.look.theme import LIGHT, Theme
from attention_explorer.panels.about import About
from attention_explorer.panels.playground import experiment_words
from attention_explorer.panels.playground.plot_grid import PlotGrid
from attention_explorer.panels.playground.training_form import seed_box
from attention_explorer.paths import resource
from attention_explorer.session.experiment import ExperimentState
from attention_explorer.session.training import Curves
from attention_explorer.widgets.choices_kept import Choice, data_choice
from attention_explorer.widgets.layouts import clear, flowing, named
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.plot.figure import Axis, Figure, Line, Mark, Series
from attention_explorer.widgets.plot.geometry import LEGEND_KEY
from attention_explorer.widgets.plot.paint import paint_key
from attention_explorer.widgets.plot.plot import Plot
from attention_explorer.widgets.themed import ThemedWidget
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_models.protocol.experiment_messages import RunModel
from attention_models.protocol.training_messages import HeldOutPoint
from attention_models.training.prepared import Prepared, read_prepared

# The curves of an experiment's runs over each other. Pure.


@dataclass(frozen=True, slots=True)
class Style:
    """How a run is drawn: told apart by colour, by the kind of line and by the mark."""

    role: str
    line: Line
    mark: Mark


STYLES = (
    Style("query", "solid", "circle"),
    Style("key", "dashed", "square"),
    Style("feed_forward", "dash-dot", "diamond"),
    Style("cross", "dotted", "triangle"),
)


def style_of(run: int) -> Style:
    """Of a run by its place in the experiment."""
    return STYLES[run % len(STYLES)]


def training_loss(experiment: ExperimentState | None) -> Figure:
    """Of every batch."""
    series = []
    for number, (name, curve) in enumerate(_runs(experiment)):
        steps, losses = _values([point.step for point in curve.points]), _values([point.loss for point in curve.points])
        style = style_of(number)
        series.append(Series(name, steps, losses, style.role, style.line, 1.8))
    return Figure(_steps(experiment), Axis("loss of the batch, nats a token", low=0.0), tuple(series), names="legend")


def held_out_loss(experiment: ExperimentState | None) -> Figure:
    return _of_held_out(experiment, Axis("held-out loss, nats a token", low=0.0), lambda point: point.loss)


def tokens_right(experiment: ExperimentState | None) -> Figure:
    return _of_held_out(experiment, Axis("tokens right", low=0.0, high=1.0), lambda point: point.tokens_right)


def sequences_right(experiment: ExperimentState | None) -> Figure:
    return _of_held_out(experiment, Axis("sequences right", low=0.0, high=1.0), lambda point: point.sequences_right)


def _of_held_out(experiment: ExperimentState | None, y: Axis, value: Callable[[HeldOutPoint], float]) -> Figure:
    series = []
    for number, (name, curve) in enumerate(_runs(experiment)):
        steps, values = _values([point.step for point in curve.held_out]), _values(list(map(value, curve.held_out)))
        style = style_of(number)
        series.append(Series(name, steps, values, style.role, style.line, 2.0, style.mark, 6.0))
    return Figure(_steps(experiment), y, tuple(series), names="legend")


def _steps(experiment: ExperimentState | None) -> Axis:
    """As long as it will be in the end, so that the curves grow into it."""
    return Axis("step", low=0.0, high=None if experiment is None else float(experiment.prepared.steps), whole=True)


def _runs(experiment: ExperimentState | None) -> list[tuple[str, Curves]]:
    if experiment is None:
        return []
    names = [run.name for run in experiment.prepared.runs]
    return list(zip(names, experiment.curves, strict=True))


def _values(values: Sequence[float]) -> np.ndarray:
    return np.array(values, float)


# The figures of runs side by side: a column a run, headed by its line in the plots.


_NAME, _FIGURE = 16, 16  # average characters of a name beside figures, and of a figure


class LineKey(ThemedWidget):
    """The piece of line that stands for a run."""

    def __init__(self, style: Style) -> None:
        super().__init__("")
        self._style = style
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setFixedSize(self.sizeHint())

    def sizeHint(self) -> QSize:
        return QSize(int(LEGEND_KEY), 16)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colour = QColor(getattr(self.theme, self._style.role))
        paint_key(painter, self._style.line, self._style.mark, colour, QPointF(2, self.height() / 2))


class RunsTable(QWidget):
    def __init__(self, meaning: Callable[[str], str], parent: QWidget | None = None) -> None:
        """`meaning` is the tooltip of a figure's name."""
        super().__init__(parent)
        self.setAccessibleName("Figures of the runs")
        self._meaning = meaning
        self._runs: tuple[str, ...] = ()
        self._names: tuple[str, ...] = ()
        self._cells: list[list[QLabel]] = []
        self._is_narrow = False
        self._theme = LIGHT
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 4, 0, 4)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(4)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        for key in self.findChildren(LineKey):
            key.set_theme(theme)

    def show_figures(self, runs: Sequence[str], figures: Mapping[str, Sequence[str]]) -> None:
        """`figures` by name, one of each run."""
        if (tuple(runs), tuple(figures)) != (self._runs, self._names):
            self._runs, self._names = tuple(runs), tuple(figures)
            self._build()
        for line, row in zip(self._cells, figures.values(), strict=True):
            for label, text in zip(line, row, strict=True):
                label.setText(text)

    def texts(self) -> dict[str, tuple[str, ...]]:
        """What it shows."""
        return {
            name: tuple(label.text() for label in line) for name, line in zip(self._names, self._cells, strict=True)
        }

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._wants_lines_of_their_own() != self._is_narrow:
            texts = self.texts()
            self._build()
            self.show_figures(self._runs, texts)

    def _wants_lines_of_their_own(self) -> bool:
        """Whether there is no room for the names of figures beside these."""
        return self.width() < self.fontMetrics().averageCharWidth() * (_NAME + _FIGURE * len(self._runs))

    def _build(self) -> None:
        clear(self._grid)
        self._is_narrow = self._wants_lines_of_their_own()
        self._cells = []
        beside = 0 if self._is_narrow else 1  # columns
        for column in range(self._grid.columnCount()):  # of the runs before
            self._grid.setColumnStretch(column, 0)
        if not self._names:
            return
        for run, name in enumerate(self._runs):
            label = wrapped(name, "title")
            label.setMinimumWidth(max(label.fontMetrics().horizontalAdvance(f"{word} ") for word in name.split()))
            label.setAlignment(Qt.AlignmentFlag.AlignTop)
            key = LineKey(style_of(run))
            key.set_theme(self._theme)
            self._grid.addWidget(key, 0, run + beside, Qt.AlignmentFlag.AlignLeft)
            self._grid.addWidget(label, 1, run + beside)
        for column in range(len(self._runs) + beside):
            self._grid.setColumnStretch(column, 1)
        for number, name in enumerate(self._names):
            line = 2 + number * (2 - beside)
            label = wrapped(name, "dim")
            label.setToolTip(self._meaning(name))
            self._grid.addWidget(label, line, 0, 1, 1 if beside else len(self._runs))
            self._cells.append([QLabel() for _ in self._runs])
            for run, cell in enumerate(self._cells[-1]):
                cell.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
                self._grid.addWidget(cell, line + 1 - beside, run + beside)


# Buttons that open the models of an experiment's runs, once these are over.


class OpenRuns(QWidget):
    chosen = Signal(object)
    """The `RunModel` whose button was pressed."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._models: tuple[RunModel | None, ...] = ()
        self.buttons: list[QPushButton] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self.hide()

    def show_models(self, names: Sequence[str], models: tuple[RunModel | None, ...]) -> None:
        """Of the runs of those names; hidden where there are none."""
        self.setVisible(any(models))
        if models == self._models:
            return
        self._models = models
        clear(self._column)
        self.buttons = []
        for name, model in zip(names, models, strict=False):
            if model is not None:
                button = QPushButton(name)
                button.setToolTip("Open the model of this run: every panel shows it")
                button.clicked.connect(partial(self.chosen.emit, model))
                self.buttons.append(button)
        if self.buttons:
            self._column.addWidget(flowing(QLabel("Open the model of"), *self.buttons))


FILE = resource("experiments.toml")

_EMPTY = "Press Run, and a curve for each run grows here."
_FIGURES = (
    training_loss,
    held_out_loss,
    tokens_right,
    sequences_right,
)
_NAMES = ("Loss of each batch", "Loss on held-out rows", "Held-out tokens right", "Held-out sequences right")


class ExperimentsPage(QWidget):
    run_asked = Signal(object, int)
    """An experiment, and the seed for its runs."""
    stop_asked = Signal()
    open_asked = Signal(object)
    """The `RunModel` of a run."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.file = FILE
        self._experiments: Mapping[str, Prepared] = read_prepared(self.file)
        self._state: ExperimentState | None = None
        self._number: int | None = None  # of the experiment on screen
        self._build_choices()
        self.compares, self.look_for = wrapped(), wrapped(role="title")
        self.cost = wrapped(role="dim")
        self.standing, self.remarks = wrapped(role="title"), wrapped(role="warning")
        self.plots = tuple(Plot(name, 170, grows=True) for name in _NAMES)
        for plot in self.plots:
            plot.set_empty_text(_EMPTY)
        self.grid = PlotGrid(self.plots)
        self.table = RunsTable(experiment_words.meaning)
        self.verdict, self.checks = wrapped(role="heading"), wrapped()
        self.notices, self.meanings = wrapped(role="warning"), wrapped(role="dim")
        self.models = OpenRuns()
        self._lay_out()
        self.models.chosen.connect(self.open_asked)
        self.experiment.currentIndexChanged.connect(self._on_chosen)
        self.run.clicked.connect(lambda: self.run_asked.emit(self.prepared, self.seed.value()))
        self.stop.clicked.connect(self.stop_asked)
        self._show_prepared()
        self.show_experiment(None)

    def _build_choices(self) -> None:
        self.experiment = WholeListBox()
        self.experiment.setMinimumContentsLength(30)
        self.experiment.setAccessibleName("Experiment")
        self.experiment.setToolTip("What is compared")
        for prepared in self._experiments.values():
            self.experiment.addItem(prepared.title, prepared.name)
        self.seed = seed_box()
        self.seed.setToolTip("Decides the first weights and the rows of every run: the same seed, the same runs")
        self.run, self.stop = QPushButton("Run"), QPushButton("Stop")
        self.run.setProperty("role", "primary")
        self.run.setToolTip("Train all runs from the beginning, side by side; those before go")
        self.stop.setToolTip("End the runs where they stand")

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 2, 6, 4)
        column.setSpacing(8)
        column.addWidget(flowing(self.experiment, named("Seed", self.seed), self.run, self.stop))
        for text in (self.compares, self.look_for, self.cost, self.standing, self.remarks, self.verdict, self.checks):
            column.addWidget(text)
        column.addWidget(self.notices)
        column.addWidget(self.models)
        column.addWidget(self.grid, 1)
        column.addWidget(self.table)
        column.addWidget(self.meanings)

    @property
    def prepared(self) -> Prepared:
        """The experiment that is chosen."""
        return self._experiments[self.experiment.currentData()]

    def kept(self) -> dict[str, Choice | QWidget]:
        """What a session file keeps, by name."""
        return {"experiment": data_choice(self.experiment), "seed of the experiment": self.seed}

    def about(self) -> About:
        return experiment_words.about(self._state, self.prepared)

    def show_experiment(self, experiment: ExperimentState | None) -> None:
        """Show where the experiment of this window stands, if it is the one that is chosen."""
        self._state = experiment
        self.stop.setEnabled(experiment is not None and experiment.is_under_way and not experiment.is_stopping)
        here = experiment if experiment is not None and experiment.prepared.name == self.prepared.name else None
        number = None if here is None else here.number
        self.grid.show_figures(lambda: [figure(here) for figure in _FIGURES], go_on=number == self._number)
        self._number = number
        if here is None:
            self.table.show_figures((), {})
            self.models.show_models((), ())
            self._say(standing=experiment_words.elsewhere(experiment))
            return
        figures = experiment_words.figures(here)
        names = [run.name for run in here.prepared.runs]
        self.table.show_figures(names, figures)
        ended = here.ended
        self.models.show_models(names, () if ended is None else ended.models)
        self._say(
            standing=experiment_words.standing(here),
            remarks="\n".join(experiment_words.remarks(here)),
            verdict=experiment_words.verdict(here),
            checks=experiment_words.checks(here),
            notices="" if ended is None else "\n".join(ended.notices),
            meanings="\n".join(filter(None, map(experiment_words.meaning, figures))),
        )

    def _say(self, **texts: str) -> None:
        """Texts by the name of their label; those that are not named say nothing."""
        for name in ("standing", "remarks", "verdict", "checks", "notices", "meanings"):
            label: QLabel = getattr(self, name)
            text = texts.get(name, "")
            label.setText(text)
            label.setVisible(bool(text))

    def _on_chosen(self) -> None:
        self._show_prepared()
        self.show_experiment(self._state)

    def _show_prepared(self) -> None:
        prepared = self.prepared
        self.compares.setText(prepared.compares)
        self.look_for.setText(f"Look for: {prepared.look_for}")
        self.cost.setText(f"{experiment_words.cost(prepared)} Source: {prepared.source}.")
