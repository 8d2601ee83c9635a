"""The page of prepared experiments: choose one, run it, and see its runs learn side by side and what came out."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from attention_explorer.panels.about import About
from attention_explorer.panels.playground import experiment_figures, experiment_words
from attention_explorer.panels.playground.open_runs import OpenRuns
from attention_explorer.panels.playground.plot_grid import PlotGrid
from attention_explorer.panels.playground.runs_table import RunsTable
from attention_explorer.panels.playground.training_form import seed_box
from attention_explorer.paths import resource
from attention_explorer.session.experiment import ExperimentState
from attention_explorer.widgets.choices_kept import Choice, data_choice
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.plot.plot import Plot
from attention_explorer.widgets.rows import flowing, named
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_models.training.prepared import Prepared, read_prepared

FILE = resource("experiments.toml")

_EMPTY = "Press Run, and a curve for each run grows here."
_FIGURES = (
    experiment_figures.training_loss,
    experiment_figures.held_out_loss,
    experiment_figures.tokens_right,
    experiment_figures.sequences_right,
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
