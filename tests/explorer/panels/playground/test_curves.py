"""The curves of a training are the figures of its steps; those of a recurrent encoder's states are the newest."""

from __future__ import annotations

from dataclasses import astuple, replace

import pytest

from attention_explorer.panels.playground import curves as figures
from attention_explorer.panels.playground.curves import CurvesPage
from attention_explorer.session.training import Curves, TrainingState
from attention_models.protocol.training_messages import (
    Asked,
    HeldOutPoint,
    Learned,
    TrainingPoint,
    from_process,
    line_of,
)
from attention_models.training.experiment import experiment
from tests.explorer.drawn_text import text_on


def trained(steps: int, **switches: str) -> TrainingState:
    """What the window knows after so many steps of a small model, as its process tells it."""
    training = experiment("reverse:4", {"batch": "8", **switches}).training()
    points = tuple(TrainingPoint(*astuple(training.step())) for _ in range(steps))
    told = from_process(line_of(Learned(points, 1.0, 0.5, "running")))
    assert isinstance(told, Learned)
    return TrainingState(1, Asked("reverse:4")).learned(told)


@pytest.mark.parametrize("score", ["bahdanau", "none"])
def test_the_states_of_a_recurrent_encoder_are_those_of_the_newest_measured_step(score):
    curves = trained(12, model="recurrent", hidden="8", score=score).curves
    point = next(p for p in curves.points if p.step == 10)
    assert len(point.states) == 5  # four letters and the end
    figure = figures.states(curves)
    assert "training step 10" in figure.x.title
    for series, lengths in zip(figure.series, zip(*point.states, strict=True), strict=True):
        there = {place: length for place, length in enumerate(lengths) if length > 0}
        assert {int(x): y for x, y in zip(series.x, series.y, strict=True)} == there
    read = figure.series[1]
    assert read.name == "read by the decoder"
    assert len(read.x) == (5 if score == "bahdanau" else 2)  # the bottleneck: where either direction ends


def test_the_loss_has_a_curve_that_is_measured_as_held_out_rows_are(qtbot):
    training = trained(3, width="16", heads="2", layers="1")
    held = (
        HeldOutPoint(0, 3.4, 0.1, 0.0, 100, 3.5),
        HeldOutPoint(2, 2.9, 0.2, 0.0, 100),
        HeldOutPoint(3, 2, 0, 0, 9, 1.5),
    )
    curves = replace(training.curves, held_out=held)
    named = {series.name: series for series in figures.loss(curves).series}
    alike = named["training, measured as held out"]
    assert dict(zip(alike.x, alike.y, strict=True)) == {0: 3.5, 3: 1.5}, "where it was measured"
    page = CurvesPage()
    qtbot.addWidget(page)
    page.show()
    page.show_training(replace(training, curves=curves))
    assert not page.apart.isVisible(), "nothing sets the curves apart"
    page.show_training(replace(training, curves=curves, dropout=0.1, smoothing=0.25))
    assert "with dropout 0.1 and label smoothing 0.25" in page.apart.text()
    assert page.apart.isVisible()
    page.show_training(replace(training, curves=curves, dropout=0.1))
    assert "with dropout 0.1, which" in page.apart.text()


def test_the_head_has_a_curve_of_its_own_where_it_shares_its_matrix():
    curves = trained(11, width="16", heads="2", layers="1").curves
    named = {series.name: series for series in figures.gradients(curves).series}
    assert list(named)[-1] == "head"
    assert "embedding" in named
    for step in (1, 10):
        point = next(p for p in curves.points if p.step == step)
        for part, length in point.gradients:
            assert named[part].at(step) == pytest.approx(length)


def test_the_plot_of_states_is_there_for_a_recurrent_model_alone(qtbot):
    page = CurvesPage()
    qtbot.addWidget(page)
    page.resize(700, 900)
    page.show()
    states = page.plots[-1]
    assert not states.isVisible()
    page.show_training(trained(3, width="16", heads="2", layers="1"))
    assert not states.isVisible()
    page.show_training(trained(3, model="recurrent", hidden="8"))
    assert states.isVisible()
    page.show_training(None)
    assert not states.isVisible()
    assert figures.states(Curves()).is_empty


def test_what_was_learned_while_other_pages_were_in_front_is_there(qtbot):
    page = CurvesPage()
    qtbot.addWidget(page)
    page.resize(700, 900)
    for steps in (3, 5):
        page.show_training(trained(steps, width="16", heads="2", layers="1"))
    page.show()
    assert page.plots[0].figure.series[0].x.tolist() == [1, 2, 3, 4, 5]
    page.hide()
    page.show_training(trained(7, width="16", heads="2", layers="1"))
    page.show()
    assert page.plots[0].figure.series[0].x.tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_a_training_that_starts_does_not_ask_for_train(qtbot):
    page = CurvesPage()
    qtbot.addWidget(page)
    page.resize(700, 900)
    page.show()

    def drawn() -> str:
        return " ".join(piece.text for piece in text_on(page.plots[0]))

    assert "Press Train" in drawn()
    page.show_training(TrainingState(1, Asked("reverse:4")))
    assert "Press Train" not in drawn()
    assert "a few seconds" in drawn()
    page.show_training(replace(TrainingState(1, Asked("reverse:4")), phase="failed"))
    assert "Press Train" in drawn()


def test_where_curves_go_on_one_plot_is_drawn_a_turn_and_another_training_at_once(qtbot):
    page = CurvesPage()
    qtbot.addWidget(page)
    page.resize(700, 900)
    page.show()
    small = {"width": "16", "heads": "2", "layers": "1"}

    def steps_drawn() -> list[int]:
        return [len(plot.figure.series[0].x) if plot.figure.series else 0 for plot in page.plots[:4:3]]

    page.show_training(trained(3, **small))
    assert steps_drawn() == [3, 3]  # loss and learning rate
    page.show_training(trained(4, **small))
    assert steps_drawn() == [4, 3]
    page.show_training(trained(5, **small))  # before the others had their turn
    qtbot.waitUntil(lambda: steps_drawn() == [5, 5])
    page.show_training(replace(trained(2, **small), number=2))
    assert steps_drawn() == [2, 2]
