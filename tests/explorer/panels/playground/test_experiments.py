"""The page of experiments: what is pressed runs, and every figure on it is one of the runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QWidget

from attention_explorer.compute.experiment_link import ExperimentLink, connect_experiment
from attention_explorer.compute.gui_queue import GuiQueue
from attention_explorer.look.theme import DARK, LIGHT
from attention_explorer.panels.playground import experiment_words, experiments
from attention_explorer.panels.playground.experiments import STYLES, ExperimentsPage, LineKey, RunsTable
from attention_explorer.panels.playground.panel import CURVES, EXPERIMENTS, PlaygroundPanel
from attention_explorer.paths import resource
from attention_explorer.session.experiment import ExperimentState
from attention_explorer.session.intents import ExperimentTold, RunExperiment, TrainingTold
from attention_models.protocol.experiment_messages import (
    Finding,
    Measure,
    RunModel,
    RunsBegan,
    RunsEnded,
    RunsLearned,
    RunsMeasured,
)
from attention_models.protocol.training_messages import Began, Fell, HeldOutPoint, TrainingPoint
from attention_models.training.comparison import Comparison
from attention_models.training.prepared import MEASURES, read_prepared
from tests.explorer.prepared import tiny_experiment
from tests.explorer.silent import SilentSession, shown
from tests.explorer.window.test_terms import unexplained

EXPERIMENTS_THAT_COME_ALONG = read_prepared(resource("experiments.toml"))


def press(button: QWidget) -> None:
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def opened(qtbot, session: SilentSession) -> PlaygroundPanel:
    """The panel with the page of experiments in front, brought there by a click."""
    panel = shown(qtbot, PlaygroundPanel, session)
    press(panel.pages.button(EXPERIMENTS))
    return panel


def of(session: SilentSession) -> ExperimentState:
    assert session.live.experiment is not None
    return session.live.experiment


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    path, prepared = tiny_experiment(tmp_path)
    monkeypatch.setattr(experiments, "FILE", Path(path))
    return prepared


def test_every_experiment_can_be_chosen_and_says_what_to_look_for(qtbot):
    panel = opened(qtbot, SilentSession())
    page = panel.experiments
    for index, prepared in enumerate(EXPERIMENTS_THAT_COME_ALONG.values()):
        page.experiment.setCurrentIndex(index)
        assert page.experiment.currentText() == prepared.title
        assert page.compares.text() == prepared.compares
        assert page.look_for.text() == f"Look for: {prepared.look_for}"
        assert f"{len(prepared.runs)} runs of {prepared.steps}" in page.cost.text()
        assert len(prepared.runs) <= len(STYLES)  # no two look alike
    assert len({(style.role, style.line, style.mark) for style in STYLES}) == len(STYLES)


def test_every_word_of_every_experiment_is_plain_or_explained():
    texts = {experiment_words.meaning(name) for name in MEASURES}
    for prepared in EXPERIMENTS_THAT_COME_ALONG.values():
        texts |= {prepared.title, prepared.compares, prepared.look_for, prepared.claim, experiment_words.cost(prepared)}
        texts |= {run.name for run in prepared.runs}
    assert unexplained(texts) == {}


@pytest.mark.full
def test_run_trains_what_is_chosen_and_every_figure_is_that_of_the_runs(qtbot, tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_EXPLORER_HOME", str(tmp_path / "home"))
    session, link = SilentSession(), ExperimentLink(GuiQueue())
    connect_experiment(session, link)
    panel = opened(qtbot, session)
    page = panel.experiments
    QTest.keyClicks(page.seed, "7")
    press(page.run)
    try:
        qtbot.waitUntil(lambda: of(session).phase == "ended", timeout=120_000)
    finally:
        assert link.stop(10.0)
    seed = page.seed.value()
    assert (of(session).seed, seed != 0) == (seed, True)

    alone = Comparison(tiny, seed)
    measured = [[learner.training.measure() for learner in alone.learners]]
    while not alone.is_done:
        alone.step()
        measured.append([learner.training.measure() for learner in alone.learners])
    names = [run.name for run in tiny.runs]
    qtbot.waitUntil(lambda: [len(plot.figure.series[0].x) for plot in page.plots] == [20, 21, 21, 21])  # one a turn
    loss, held, tokens, sequences = (plot.figure.series for plot in page.plots)
    for run, learner in enumerate(alone.learners):
        assert [series[run].name for series in (loss, held, tokens, sequences)] == [names[run]] * 4
        assert loss[run].x.tolist() == [*range(1, 21)]
        np.testing.assert_allclose(loss[run].y, learner.losses, rtol=1e-6)
        found = [row[run] for row in measured]  # 20 steps, so held-out rows are looked at after each
        for series, wanted in (
            (held, [one.loss for one in found]),
            (tokens, [one.tokens_right for one in found]),
            (sequences, [one.sequences_right for one in found]),
        ):
            assert series[run].x.tolist() == [*range(21)]
            np.testing.assert_allclose(series[run].y, wanted, rtol=1e-6)
    texts = page.table.texts()
    for name, figures in (
        ("parameters", [f"{sum(p.numel() for p in one.training.model.parameters()):,}" for one in alone.learners]),
        ("loss of the last batch", [f"{one.losses[-1]:.3g}" for one in alone.learners]),
        ("held-out loss", [f"{one.loss:.3g}" for one in measured[-1]]),
        ("tokens right", [f"{one.tokens_right:.3g}" for one in measured[-1]]),
        ("sequences right", [f"{one.sequences_right:.3g}" for one in measured[-1]]),
        ("training loss", [f"{np.mean(one.losses):.3g}" for one in alone.learners]),
    ):
        assert texts[name] == tuple(figures)
    assert page.verdict.text() == f"The claim holds with seed {seed}."
    claim, first, second = page.checks.text().splitlines()
    assert claim == tiny.claim
    loss_now = f"{np.mean(alone.learners[0].losses):.3g}"
    assert first == f"✓  training loss of “positions” {loss_now}: at most 50 is claimed"
    assert second.endswith("(by the clock)")
    assert (
        "training loss: nats a token, the mean of the last 20 steps, with the dropout and label smoothing of the run."
        in page.meanings.text()
    )
    assert page.standing.text().startswith("Done · 20 steps in ")
    assert not page.stop.isEnabled()


# --------------------------------------------------------------------------- what its process tells


def point(step: int, loss: float) -> TrainingPoint:
    return TrainingPoint(step, loss, 0.5, 0.001, 1000.0)


def told(session: SilentSession, *messages) -> None:
    for message in messages:
        session.dispatch(ExperimentTold(of(session).number, message))


def test_where_it_stands_is_told_while_it_runs_and_stop_stops_it(qtbot, tiny):
    session = SilentSession()
    page = opened(qtbot, session).experiments
    assert not page.stop.isEnabled()
    press(page.run)
    assert page.standing.text() == "Starting …"
    held = (HeldOutPoint(0, 3.0, 0.25, 0.0, 100), None)
    told(session, RunsBegan((1200, 900)), RunsMeasured(held))
    told(session, RunsLearned(5, ((point(5, 2.5),), (point(5, 2.75),)), 2.0))
    assert page.standing.text() == "Learning · step 5 of 20 · 6 s left"
    assert page.table.texts() == {
        "parameters": ("1,200", "900"),
        "loss of the last batch": ("2.5", "2.75"),
        "held-out loss": ("3", "–"),
        "tokens right": ("0.25", "–"),
        "sequences right": ("0", "–"),
    }
    assert not page.verdict.isVisible()
    press(page.stop)
    assert of(session).is_stopping
    assert page.standing.text() == "Stopping … · step 5 of 20"
    assert not page.stop.isEnabled()
    told(session, RunsEnded("stopped", 6, 2.5, (Measure("training loss", ("2.4", "2.7")),)))
    assert page.standing.text() == "Stopped · step 6 of 20"
    assert "is not judged" in page.verdict.text()
    assert page.checks.isHidden()
    assert page.table.texts()["training loss"] == ("2.4", "2.7")


def test_a_claim_that_does_not_hold_and_a_run_that_diverged_are_said(qtbot, tiny):
    session = SilentSession()
    page = opened(qtbot, session).experiments
    press(page.run)
    findings = (Finding("training loss of “positions” 60: at most 50 is claimed", False, False),)
    told(session, RunsBegan((1, 1)), RunsEnded("done", 20, 2.5, (), findings, ("no positions: At step 3 it is over.",)))
    assert page.verdict.text() == "The claim does not hold with seed 0."
    assert page.checks.text().endswith("✗  training loss of “positions” 60: at most 50 is claimed")
    assert page.notices.text() == "no positions: At step 3 it is over."
    assert not page.models.isVisible()  # none was written


def test_the_model_of_a_run_is_opened_by_its_button(qtbot, tiny):
    session = SilentSession()
    page = opened(qtbot, session).experiments
    press(page.run)
    models = (RunModel("/private/1/tiny-positions", "hqb>"), RunModel("/private/1/tiny-no-positions", "abc>"))
    told(session, RunsBegan((1, 1)), RunsEnded("done", 20, 2.5, (), models=models))
    assert [button.text() for button in page.models.buttons] == ["positions", "no positions"]
    qtbot.waitUntil(page.models.buttons[1].isVisible)
    press(page.models.buttons[1])
    assert session.state.loading == "/private/1/tiny-no-positions"
    assert session.state.document.text == "abc>"
    press(page.run)
    assert not page.models.isVisible()


def test_lines_beside_the_names_have_the_colours_of_the_theme_that_was_chosen_before_they_came(qtbot, tiny):
    session = SilentSession()
    panel = opened(qtbot, session)
    panel.set_theme(DARK)
    press(panel.experiments.run)
    told(session, RunsBegan((1, 1)))
    keys = panel.findChildren(LineKey)
    assert [key.theme for key in keys] == [DARK, DARK]
    panel.set_theme(LIGHT)
    assert [key.theme for key in keys] == [LIGHT, LIGHT]


@pytest.mark.parametrize("width", [400, 900])
def test_no_name_or_figure_of_four_runs_is_cut(qtbot, width):
    table = RunsTable(experiment_words.meaning)
    qtbot.addWidget(table)
    table.resize(width, 600)
    table.show()
    runs = [run.name for run in EXPERIMENTS_THAT_COME_ALONG["without-feed-forward"].runs]
    figures = {"parameters": ("60,416", "26,752", "13,248", "4,832"), "loss of the last batch": ("0.00588",) * 4}
    table.show_figures(runs, figures)
    QTest.qWait(50)
    assert table.minimumSizeHint().width() <= width
    assert table.texts() == figures
    for label in table.findChildren(QLabel):
        widest = max(label.fontMetrics().horizontalAdvance(word) for word in label.text().split())
        assert label.isHidden() or label.width() >= widest


def test_run_again_takes_the_place_of_the_first(qtbot, tiny):
    session = SilentSession()
    page = opened(qtbot, session).experiments
    press(page.run)
    told(session, RunsBegan((1, 1)), RunsLearned(1, ((point(1, 2.5),), (point(1, 2.75),)), 2.0))
    press(page.run)
    assert of(session).number == 2
    assert page.standing.text() == "Starting …"
    assert all(plot.figure.is_empty for plot in page.plots)
    assert page.table.texts() == {}


def test_a_process_that_is_gone_is_said_on_the_page(qtbot, tiny):
    session = SilentSession()
    page = opened(qtbot, session).experiments
    press(page.run)
    told(session, RunsBegan((1, 1)), Fell(-9))
    assert page.standing.text() == "Broken off"
    assert "Press Run again" in page.remarks.text()
    assert not page.stop.isEnabled()


def test_the_buttons_of_the_training_are_away_and_a_training_that_waits_is_said(qtbot, tiny):
    session = SilentSession()
    panel = opened(qtbot, session)
    assert not panel.train.isVisible()
    press(panel.pages.button(CURVES))
    assert panel.train.isVisible()
    press(panel.train)
    session.dispatch(TrainingTold(1, Began("/x", "", "", 1)))
    press(panel.pages.button(EXPERIMENTS))
    press(panel.experiments.run)
    assert "“Go on” takes it up" in panel.experiments.remarks.text()
    told(session, RunsLearned(1, ((point(1, 2.5),), (point(1, 2.75),)), 2.0))  # before the training has paused
    assert "A training went on beside these runs" in panel.experiments.remarks.text()


def drawn(page: ExperimentsPage) -> list[int]:
    """How many steps of the first run each plot shows."""
    return [len(plot.figure.series[0].x) if plot.figure.series else 0 for plot in page.plots]


def test_another_experiment_can_be_looked_at_while_one_runs(qtbot):
    session = SilentSession()
    page = opened(qtbot, session).experiments
    first, second = list(EXPERIMENTS_THAT_COME_ALONG.values())[:2]
    session.dispatch(RunExperiment(str(page.file), first, 0))
    told(session, RunsBegan((1, 1)), RunsLearned(1, ((point(1, 2.5),), (point(1, 2.75),)), 2.0))
    qtbot.waitUntil(lambda: drawn(page) == [1, 0, 0, 0])  # one plot a turn
    page.experiment.setCurrentIndex(1)
    assert page.look_for.text() == f"Look for: {second.look_for}"
    assert drawn(page) == [0, 0, 0, 0]
    assert page.standing.text().startswith(f"“{first.title}” is under way: Learning · step 1 of 250")
    assert page.stop.isEnabled()
    page.experiment.setCurrentIndex(0)
    assert drawn(page) == [1, 0, 0, 0]


def test_what_is_chosen_is_kept(qtbot):
    panel = opened(qtbot, SilentSession())
    panel.experiments.experiment.setCurrentIndex(3)
    panel.experiments.seed.setValue(5)
    kept = panel.chosen()
    assert (kept["page"], kept["experiment"], kept["seed of the experiment"]) == (EXPERIMENTS, "norm-place", 5)
    other = shown(qtbot, PlaygroundPanel, SilentSession())
    other.choose_again(kept)
    assert other.stack.currentIndex() == EXPERIMENTS
    assert not other.train.isVisible()
    assert other.experiments.prepared.name == "norm-place"
    assert other.experiments.seed.value() == 5
