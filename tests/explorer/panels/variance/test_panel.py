"""The variance panel, driven by mouse and keyboard, with experiments that are real and heads that are made up."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QScrollArea, QWidget

from attention_explorer.look.theme import DARK
from attention_explorer.panels.variance.panel import VariancePanel
from attention_explorer.session.intents import SelectHead
from attention_explorer.session.state import State
from attention_models.protocol.values import SiteRef
from attention_models.protocol.variance import HeadScores, VarianceRequest, VarianceView
from attention_models.views.variance import measure
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown
from tests.explorer.widgets.pictures import rendered, rgb
from tests.explorer.widgets.pointer import move_pointer

FIVE = SiteRef("decoder", 5)
HEAD = HeadScores(FIVE, 5, head_dim=32, cells=105, mean=1.0, variance=256.0, scale=0.25, independent=300.0)


def answer(request: VarianceRequest) -> VarianceView:
    """What the engine would say, with a head made up."""
    experiment = measure(request.batch, request.tokens, request.deviation, request.seed)
    head = HEAD if request.run is not None else None
    return VarianceView(request=request, experiment=experiment, head=head)


@pytest.fixture
def session() -> SilentSession:
    session = SilentSession(answers.after(State(), answers.loaded(), answers.ran()))
    session.dispatch(SelectHead(FIVE, 5))
    return session


@pytest.fixture
def panel(qtbot, session) -> VariancePanel:
    panel = shown(qtbot, VariancePanel, session)
    panel.resize(430, 540)
    session.arrive(answer(session.asked[-1]))
    return panel


def asked(session: SilentSession) -> list[VarianceRequest]:
    return [request for request in session.asked if isinstance(request, VarianceRequest)]


def test_it_asks_once_for_the_experiment_and_the_selected_head(panel, session):
    assert asked(session) == [
        VarianceRequest(batch=64, tokens=32, deviation=1.0, seed=0, run=1, site=FIVE, head=5),
    ]
    assert not panel.is_waiting()
    session.dispatch(SelectHead(FIVE, 4))
    assert [request.head for request in asked(session)] == [5, 4]


def test_before_a_checkpoint_is_open_it_asks_for_nothing(qtbot):
    session = SilentSession(State())
    shown(qtbot, VariancePanel, session)
    assert asked(session) == []
    session.arrive(answers.loaded())
    assert [request.run for request in asked(session)] == [None]


def test_another_number_is_another_experiment(qtbot, panel, session):
    line = panel.batch.lineEdit()
    line.selectAll()
    qtbot.keyClicks(line, "16")
    assert len(asked(session)) == 1  # a number half typed is not drawn
    qtbot.keyClick(line, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: len(asked(session)) == 2)
    qtbot.keyClick(panel.deviation, Qt.Key.Key_Up)
    qtbot.waitUntil(lambda: len(asked(session)) == 3)
    qtbot.mouseClick(panel.again, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(asked(session)) == 4)
    last = asked(session)[-1]
    assert (last.batch, last.tokens, last.deviation, last.seed) == (16, 32, 1.1, 1)


def test_numbers_that_are_too_large_are_refused_in_place(qtbot, panel, session):
    panel.batch.setValue(4096)
    qtbot.waitUntil(panel.refusal.isVisible)
    assert "Choose B × T of at most 16,384." in panel.refusal.text()
    assert len(asked(session)) == 1
    assert not panel.is_waiting()
    panel.batch.setValue(512)
    qtbot.waitUntil(lambda: not panel.refusal.isVisible())
    assert len(asked(session)) == 2


def test_dots_and_line_are_the_experiments(panel, session):
    found = session.state.results.of(VarianceView).experiment
    law, measured, head = panel.law.figure.series
    np.testing.assert_array_equal(law.y, [2.0**i for i in range(11)])
    np.testing.assert_array_equal(measured.y, found.variance)
    np.testing.assert_array_equal(measured.x, found.dimensions)
    assert (head.x.tolist(), head.y.tolist(), head.name) == ([32], [256.0], "layer 5, head 5")
    for plot, values in (
        (panel.largest, found.largest),
        (panel.entropy, found.entropy),
        (panel.gradient, found.gradient),
    ):
        for series, row in zip(plot.figure.series, values, strict=True):
            np.testing.assert_array_equal(series.y, row)


def test_the_slider_shows_the_rows_and_figures_of_its_d(qtbot, panel, session):
    found = session.state.results.of(VarianceView).experiment
    assert panel.at.text() == "d = 64"
    qtbot.keyClick(panel.slider, Qt.Key.Key_Right)
    assert panel.at.text() == "d = 128"
    for i, bar in enumerate(panel.bars):
        np.testing.assert_array_equal(bar._weights, found.rows[i, 7])
        shown_figures = [float(figure.split()[1]) for figure in bar.figures]
        expected = [found.largest[i, 7], found.entropy[i, 7], found.gradient[i, 7]]
        np.testing.assert_allclose(shown_figures, expected, rtol=5e-3)
    assert "law 128.0" in panel.measured.text()
    off = found.variance[7] / 128 - 1
    assert f"{100 * abs(off):.1f} % off" in panel.measured.text()
    n = 64 * 32
    error = math.sqrt((3 + 6 / 128 - (n - 3) / (n - 1)) / n)
    assert f"±{100 * error:.1f} %" in panel.measured.text()


def test_a_click_in_a_plot_moves_the_cursor_to_a_measured_d(qtbot, panel):
    qtbot.mouseClick(panel.law, Qt.MouseButton.LeftButton, pos=panel.law.point(300, 10).toPoint())
    assert panel.at.text() == "d = 256"
    for plot in (panel.law, panel.largest, panel.entropy, panel.gradient):
        assert plot.cursor_place == 256


def test_the_cursor_can_be_dragged(qtbot, panel):
    plot = panel.law
    qtbot.mousePress(plot, Qt.MouseButton.LeftButton, pos=plot.point(64, 10).toPoint())
    for d in (40, 10, 4.2):
        move_pointer(plot, plot.point(d, 10).toPoint(), Qt.MouseButton.LeftButton)
    qtbot.mouseRelease(plot, Qt.MouseButton.LeftButton, pos=plot.point(4.2, 10).toPoint())
    assert panel.at.text() == "d = 4"


def test_the_head_can_be_read_at_a_d_of_its_own(qtbot, session):
    """Its 40 dimensions are none of those drawn: the nearest of these is shown, and the cursor goes there."""
    head = replace(HEAD, head_dim=40)
    panel = shown(qtbot, VariancePanel, session)
    session.arrive(replace(answer(asked(session)[-1]), head=head))
    move_pointer(panel.law, panel.law.point(40, 256).toPoint())
    assert panel.law.readout() == "40:  layer 5, head 5 256.0"
    qtbot.mouseClick(panel.law, Qt.MouseButton.LeftButton, pos=panel.law.point(40, 256).toPoint())
    assert panel.at.text() == "d = 32"
    assert panel.law.cursor_place == 32


def test_the_head_is_told_in_numbers(panel):
    text = panel.real.text()
    assert text.startswith("Layer 5, head 5 on this text: d = 32, 105 allowed cells.")
    assert "variance 256.0 (standard deviation 16.00)" in text
    assert "the scale 0.250 it is 16.00" in text  # 256 / 16
    assert "would give 300.0" in text


def test_the_wheel_over_a_plot_scrolls_the_page(qtbot, panel):
    area = panel.findChild(QScrollArea)
    assert area is not None
    before = area.verticalScrollBar().value()
    wheel(panel.law)
    assert area.verticalScrollBar().value() > before


def test_the_theme_reaches_the_plots(panel):
    panel.set_theme(DARK)
    assert rgb(rendered(panel.law).pixelColor(3, 100)) == rgb(QColor(DARK.surface))


def wheel(widget: QWidget) -> None:
    """Two notches down over the middle of `widget`, as a mouse would send them."""
    window = widget.window()
    where = QPointF(widget.mapTo(window, widget.rect().center()))
    QTest.wheelEvent(window.windowHandle(), where, QPoint(0, -240))


def test_a_model_that_shows_no_scores_has_no_head_in_the_plot(qtbot):
    loaded = answers.loaded()
    info = replace(loaded.info, weights_only="It gives its weights alone.")
    session = SilentSession(answers.after(State(), replace(loaded, info=info), answers.ran()))
    panel = shown(qtbot, VariancePanel, session)
    session.arrive(replace(answer(asked(session)[-1]), head=None))
    assert panel.real.text() == "There is no head of the open model in the plot: It gives its weights alone."
