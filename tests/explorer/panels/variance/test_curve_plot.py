"""Curves over a logarithmic axis. The variance panel's tests click and drag in one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from explorer.panels.variance.curve_plot import Curve, CurvePlot, _power_text, _powers_of_ten
from explorer.theme import DARK, LIGHT

X = np.array([1, 10, 100])


@pytest.fixture
def plot(qtbot) -> CurvePlot:
    plot = CurvePlot("d", "variance", log_y=True)
    qtbot.addWidget(plot)
    plot.resize(400, 200)
    plot.show()
    plot.set_curves([Curve(X, X**2, "key", "line", "law"), Curve(X, X, "query", "dots", "measured")])
    return plot


def test_curves_lie_where_their_numbers_are(plot):
    item = plot._view.getPlotItem()
    line, dots = item.listDataItems()
    np.testing.assert_allclose(line.getData(), [[0, 1, 2], [0, 2, 4]])  # pyqtgraph's log mode
    np.testing.assert_allclose(dots.getData(), [[0, 1, 2], [0, 1, 2]])
    (left, right), (low, high) = item.viewRange()
    assert left < 0 < 2 < right
    assert low < 0 < 4 < high


def test_again_does_not_add_up(plot):
    plot.set_curves(plot.curves)
    plot.set_theme(DARK)
    item = plot._view.getPlotItem()
    assert len(item.listDataItems()) == 2
    assert sum(type(i).__name__ == "TextItem" for i in item.items) == 2
    assert plot.accessibleDescription() == "law, measured"


def test_colours_come_from_the_theme(plot):
    line = plot._view.getPlotItem().listDataItems()[0]
    assert line.opts["pen"].color().name() == LIGHT.key
    plot.set_theme(DARK)
    line = plot._view.getPlotItem().listDataItems()[0]
    assert line.opts["pen"].color().name() == DARK.key


def test_moving_the_marker_by_program_says_nothing(qtbot, plot):
    with qtbot.assertNotEmitted(plot.marker_moved):
        plot.set_marker(10)
    assert float(plot._marker.value()) == pytest.approx(math.log10(10))


def test_powers_of_ten_are_written_short():
    assert [_power_text(p) for p in (-3, -2, 0, 3, 4, -12)] == ["10⁻³", "0.01", "1", "1000", "10⁴", "10⁻¹²"]
    assert [place for place, _ in _powers_of_ten(0.2, 2.9)] == [0, 1, 2, 3]
    assert len(_powers_of_ten(-9, 9)) <= 7
