"""The page of a training: where it stands in words, and its plots."""

from __future__ import annotations

import numpy as np
from PySide6.QtWidgets import QVBoxLayout, QWidget

from attention_explorer.panels.playground.plot_grid import PlotGrid
from attention_explorer.panels.playground.training_sentences import measured_apart, right, standing
from attention_explorer.session.training import Curves, TrainingState
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.plot.figure import Axis, Figure, Mark, Series
from attention_explorer.widgets.plot.plot import Plot

# The curves of a training as figures. Pure.


_ROLES = ("query", "key", "attention", "cross", "feed_forward", "text_dim", "ok", "warning")
_WAYS: tuple[tuple[str, str, Mark], ...] = (
    ("in all", "bar", "none"),
    ("read by the decoder", "attention", "circle"),
    ("by way of other states", "feed_forward", "square"),
)
_MOST_PARTS = 8  # that can be told apart


def loss(curves: Curves) -> Figure:
    """The loss of each step as it learns, and two measured alike: of held-out rows and of those just learned."""
    points, held = curves.points, curves.held_out
    alike = {p.step: p.of_learned for p in held if p.of_learned is not None}
    return Figure(
        Axis("step", whole=True),
        Axis(f"loss, nats a {curves.of}", low=0.0),
        (
            _series("training", [p.step for p in points], [p.loss for p in points], "bar", 1.5),
            _series("training, measured as held out", [*alike], [*alike.values()], "key", 2.0),
            _series("held out", [p.step for p in held], [p.loss for p in held], "query", 2.5),
        ),
        names="legend",
    )


def accuracy(curves: Curves) -> Figure:
    points, held, of = curves.points, curves.held_out, curves.of
    series = [
        _series(f"training {of}s", [p.step for p in points], [100 * p.accuracy for p in points], "bar", 1.5),
        _series(f"held-out {of}s", [p.step for p in held], [100 * p.tokens_right for p in held], "feed_forward", 2.0),
    ]
    if of == "token":  # of which a row has many
        rows = [100 * p.sequences_right for p in held]
        series.append(_series("held-out rows", [p.step for p in held], rows, "query", 2.5))
    return Figure(Axis("step", whole=True), Axis("right, %", low=0.0, high=100.0), tuple(series), names="legend")


def gradients(curves: Curves) -> Figure:
    """The length of each part's gradient, on a logarithmic scale; of many parts evenly chosen ones."""
    norms = curves.norms
    parts = [name for name, _ in norms[-1].gradients] if norms else []
    if len(parts) > _MOST_PARTS:
        parts = [parts[i] for i in np.linspace(0, len(parts) - 1, _MOST_PARTS).round().astype(int)]
    steps: dict[str, list[int]] = {part: [] for part in parts}
    lengths: dict[str, list[float]] = {part: [] for part in parts}
    for point in norms:
        for part, length in point.gradients:
            if part in steps and length > 0:
                steps[part].append(point.step)
                lengths[part].append(length)
    found = [_series(part, steps[part], lengths[part], role, 1.8) for part, role in zip(parts, _ROLES, strict=False)]
    return Figure(Axis("step", whole=True), Axis("gradient length by part", log=True), tuple(found), names="legend")


def states(curves: Curves) -> Figure:
    """Of a recurrent encoder's hidden states: how long the gradient of each is, and by which way it comes. The newest.

    Attention reads every state; without it the gradient of an early one comes by way of all later ones, and vanishes.
    """
    newest = next((point for point in reversed(curves.norms) if point.states), None)
    ways = zip(*newest.states, strict=True) if newest is not None else ((), (), ())
    step = "" if newest is None else f", at training step {newest.step:,}"
    found = []
    for (name, role, mark), lengths in zip(_WAYS, ways, strict=True):
        there = [(place, length) for place, length in enumerate(lengths) if length > 0]
        x, y = np.array([p for p, _ in there], float), np.array([length for _, length in there], float)
        found.append(Series(name, x, y, role, width=2.0, mark=mark))
    return Figure(
        Axis(f"position{step}", whole=True),
        Axis("gradient length by hidden state of the encoder", log=True),
        tuple(found),
        names="legend",
    )


def rate(curves: Curves) -> Figure:
    points = curves.points
    return Figure(
        Axis("step", whole=True),
        Axis("learning rate", low=0.0),
        (_series("learning rate", [p.step for p in points], [p.rate for p in points], "key", 2.0),),
        names="legend",
    )


def _series(name: str, x: list[int], y: list[float], role: str, width: float) -> Series:
    return Series(name, np.array(x, float), np.array(y, float), role, width=width)


_EMPTY = "Nothing has been learned yet. Press Train, and the curve grows."
_STARTING = "The first steps come in a few seconds, and the curve grows."
_FIGURES = (loss, accuracy, gradients, rate, states)
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
