"""The curves of an experiment's runs over each other. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from attention_explorer.session.experiment import ExperimentState
from attention_explorer.session.training import Curves
from attention_explorer.widgets.plot.figure import Axis, Figure, Line, Mark, Series
from attention_models.protocol.training_messages import HeldOutPoint


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
