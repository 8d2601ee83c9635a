"""The small painted pieces of the lookup and variance pages."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtWidgets import QWidget

from attention_explorer.look.theme import DARK, LIGHT
from attention_explorer.panels.lookup.arrows_page import MatrixView, MixView, Share
from attention_explorer.panels.lookup.dictionary_page import AnswerBox
from attention_explorer.panels.lookup.entries import ENTRIES, colour_text, number, percent, value_vectors
from attention_explorer.panels.variance.panel import MOST_BARS, SoftmaxBars
from tests.explorer.widgets.pictures import rendered


@pytest.fixture
def show(qtbot):
    def show(widget: QWidget, width: int = 200) -> QWidget:
        qtbot.addWidget(widget)
        widget.resize(width, widget.sizeHint().height())
        widget.show()
        return widget

    return show


def pixels(widget: QWidget, colour: str) -> int:
    image = rendered(widget)
    return sum(image.pixelColor(x, y).name() == colour for x in range(image.width()) for y in range(image.height()))


def test_a_long_answer_is_made_smaller_rather_than_cut(show):
    box = AnswerBox("the dictionary")
    show(box)
    box.set_answer("1.20", kind="ok", colour="#0000ff")
    assert pixels(box, LIGHT.ok) > 0
    assert pixels(box, "#0000ff") > 100
    box.set_answer("KeyError: 'x'", kind="error")
    assert pixels(box, LIGHT.error) > 0
    assert box._fitting(80).pointSizeF() < box._fitting(400).pointSizeF()


def test_shares_are_as_wide_as_their_weights(show):
    mix = MixView("the answer")
    show(mix)
    mix.set_mix("1.00", "#808080", (Share("a", "#ff0000", 0.25), Share("b", "#00ff00", 0.75)))
    assert 3 * pixels(mix, "#ff0000") == pytest.approx(pixels(mix, "#00ff00"), rel=0.1)
    assert pixels(mix, "#808080") > 1000
    assert mix.accessibleDescription() == "1.00, mixed from a 25 %, b 75 %"


def test_matrices_are_read_and_drawn(show):
    view = MatrixView((("W_q", ((1.0, -0.5), (0.0, 2.0))), ("v", ((1.5,), (1.0,)))))
    show(view, 400)
    assert view.accessibleDescription() == "W_q is 1.0 −0.5; 0.0 2.0, v is 1.5; 1.0"
    light = rendered(view)
    view.set_theme(DARK)
    assert rendered(view) != light
    assert view.sizeHint().width() < 400


def test_softmax_bars_draw_the_heaviest(show):
    bars = SoftmaxBars("q·k", "bar")
    bars.set_weights(np.full(100, 0.5), ("largest 0.5",))
    show(bars)
    half = pixels(bars, LIGHT.bar)
    bars.set_weights(np.ones(MOST_BARS), ("largest 1.0",))
    assert pixels(bars, LIGHT.bar) == pytest.approx(2 * half, rel=0.06)
    assert bars.accessibleDescription() == "largest 1.0"


def test_numbers_and_shares():
    assert [number(x) for x in (-0.001, -1.5, 2)] == ["0.00", "−1.50", "2.00"]
    assert [percent(x) for x in (0.0, 0.004, 0.005001, 1.0)] == ["0 %", "< 1 %", "1 %", "100 %"]
    assert [percent(x, 1) for x in (0.0, 0.0004, 0.268)] == ["0.0 %", "< 0.1 %", "26.8 %"]


def test_values_are_prices_and_colours():
    values = value_vectors()
    assert values.shape == (len(ENTRIES), 4)
    assert [colour_text(row) for row in values] == [entry.colour for entry in ENTRIES]
    np.testing.assert_array_equal(values[:, 0], [entry.price for entry in ENTRIES])
