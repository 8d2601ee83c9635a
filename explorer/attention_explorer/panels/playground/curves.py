"""The page of a training: where it stands in words, and its plots."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout, QWidget

from attention_explorer.panels.playground import figures
from attention_explorer.panels.playground.plot_grid import PlotGrid
from attention_explorer.panels.playground.training_sentences import measured_apart, right, standing
from attention_explorer.session.training import Curves, TrainingState
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.plot.plot import Plot

_EMPTY = "Nothing has been learned yet. Press Train, and the curve grows."
_STARTING = "The first steps come in a few seconds, and the curve grows."
_FIGURES = (figures.loss, figures.accuracy, figures.gradients, figures.rate, figures.states)
_STATES = "Length of the gradient of each hidden state of the encoder"
_PARTS = "Length of the gradient by part of the model"
_WITH_MANY = (_PARTS, _STATES)  # curves: their names take lines
_NAMES = ("Loss", "Accuracy", _PARTS, "Learning rate", _STATES)


class CurvesPage(QWidget):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.right, self.standing, self.sentence = wrapped(role="heading"), wrapped(role="dim"), wrapped()
        self.apart = wrapped(role="dim")
        self.plots = [Plot(name, 230 if name in _WITH_MANY else 170, grows=True) for name in _NAMES]
        self._grid = PlotGrid(self.plots)
        self._curves: Curves | None = None
        self._number: int | None = None  # of the training on screen
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 2, 6, 4)
        column.setSpacing(6)
        for label in (self.right, self.standing, self.sentence, self.apart):
            column.addWidget(label)
        column.addWidget(self._grid, 1)
        self.show_training(None)

    def show_training(self, training: TrainingState | None) -> None:
        for label, text in (
            (self.right, right(training)),
            (self.standing, standing(training)),
            (self.sentence, "" if training is None else training.sentence),
            (self.apart, measured_apart(training)),
        ):
            label.setText(text)
            label.setVisible(bool(text))
        is_coming = training is not None and training.phase in ("starting", "running")
        for plot in self.plots:
            plot.set_empty_text(_STARTING if is_coming else _EMPTY)
        curves = Curves() if training is None else training.curves
        if curves is self._curves:
            return
        self._curves = curves
        number = None if training is None else training.number
        self._grid.show_figures(lambda: [figure(curves) for figure in _FIGURES], go_on=number == self._number)
        self._number = number
        self.plots[-1].setVisible(any(point.states for point in curves.norms[-1:]))
